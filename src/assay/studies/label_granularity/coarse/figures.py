"""The logarithmic law, and what else the theory says of training on superclass labels, under both laws of patches."""

from __future__ import annotations

import math
from functools import partial

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, Values, charts, pool

from ..figures import under_both_laws
from ..params import EXACT, RANDOM
from .arms import SIGNS, Params, part
from .claims import coarse, fitted_slopes
from .theory import printed_log_law_constant


@part.figure(
    "log-law",
    caption="exp of the right class' mean output on easy samples against time, coarse labels (dots: mean over seeds "
    "and superclasses), with exact numbers of feature patches and with random ones, the source's law. If the output "
    "grows as log(Ct + t0), this is a line of slope C, and the output gains log 2 from half of the time to all of it. "
    "With exact numbers it is a line, and the corrected constant, counting the neurons that fire at the end, fits; "
    "counting those of the start is off. Whether the same constant holds with random numbers is to be seen on the "
    "right. The printed one is far too small under both.",
    shows=("C5g", "C5q", "C8a", "C8b", "C8e", "C8f"),
)
def log_law(m: Measurements[Params]) -> alt.HConcatChart:
    chart: alt.HConcatChart = alt.hconcat(*(_log_law(m, **law) for law in (EXACT, RANDOM)))
    return chart


def _log_law(m: Measurements[Params], setting: str, law: str) -> alt.LayerChart:
    rows = m.rows("own_output", **coarse(setting)).filter(pl.col("step") % 10 == 0)
    grown = rows.with_columns(value=pl.col("value").exp())
    frame = grown.group_by("step", maintain_order=True).agg(pl.col("value").mean()).sort("step")
    first, last = frame.row(len(frame) // 4), frame.row(-1)
    constants = {
        "corrected, firing neurons": _mean_constant(m, "firing", setting),
        "corrected, initial detectors": _mean_constant(m, "initial", setting),
        "printed": _printed_constant(m),
    }
    ends = (first[0], last[0])
    points = [(name, step, first[1] + c * (step - first[0])) for name, c in constants.items() for step in ends]
    lines = alt.Chart(pl.DataFrame(points, schema=["constant", "step", "value"], orient="row"))
    dots = (
        alt.Chart(frame, width=330, height=270, title=law)
        .mark_point(filled=True, color="#444", opacity=0.7)
        .encode(x=alt.X("step:Q", title="updates t"), y=alt.Y("value:Q", title="exp of the mean output"))
    )
    color = alt.Color("constant:N", title="predicted slope", sort=list(constants))
    line = lines.mark_line(strokeWidth=2).encode(x="step:Q", y="value:Q", color=color)
    return alt.LayerChart(layer=[dots, line])


def _mean_constant(m: Measurements[Params], counted: str, setting: str) -> float:
    rows = m.rows("log_law_constant", counted=counted, **coarse(setting))
    return float(rows.select(pl.col("value").mean()).item())


def _printed_constant(m: Measurements[Params]) -> float:
    p = m.params
    return printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches)


@part.table(
    "coarse-labels",
    caption="What the theory says of training on superclass labels, with exact numbers of feature patches and with "
    "random ones (means over seeds with 95 % intervals; where every step looked at counts, from the least to the "
    "largest). Growth is that of detectors of the common feature over that of subclass detectors. Bias: its fall for "
    "each unit of a detector's growth, over the bias rate ρ. Made up: an output computed as patches × firing neurons × "
    "one detector's response. Slope: that of exp(output), over the constant that the source prints.",
    shows=(
        "C1a",
        "C1d",
        "C2b",
        "C2k",
        "C5a",
        "C5n",
        "C5c",
        "C5p",
        "C5k",
        "C5l",
        "C5m",
        "C5r",
        "C8b",
        "C8f",
        "C8d",
        "C8g",
    ),
)
def coarse_labels(m: Measurements[Params]) -> pl.DataFrame:
    k, low = m.params.subclasses, 1 / math.log(m.params.dim)
    return under_both_laws(
        [
            ("C1a, C1d", "training loss at the end", lambda s: m.final("train_loss", **coarse(s)), "0.02 at most"),
            ("C2b, C2k", "least error on hard samples from step 1 on", partial(_least_hard_error, m), "0.4 at least"),
            ("C5a, C5n", "growth/k, first step", lambda s: m.at("growth_ratio", 1, **coarse(s)) / k, "1"),
            ("C5c, C5p", "growth/k, every step", lambda s: m.every("growth_ratio", **coarse(s)) / k, "½ to 2"),
            ("C5k", "bias of common detectors", partial(_bias_fall, m, "common"), "1"),
            ("C5l", "bias of subclass detectors", partial(_bias_fall, m, "subclass"), "1"),
            (
                "C5m, C5r",
                "growth of the slower superclass/of the faster, every step",
                lambda s: m.every("balance", **coarse(s)),
                f"1/log d = {low:.3g} at least",
            ),
            ("C8b, C8f", "slope/printed constant", partial(_slope_over_printed, m), "1 as printed"),
            ("C8d, C8g", "made up/output", partial(_made_up, m), "1"),
        ]
    )


def _least_hard_error(m: Measurements[Params], setting: str) -> Values:
    curve = m.curve("hard_error", **coarse(setting)).filter(pl.col("step") >= 1)
    return m.per_seed(curve, lambda rows: rows["value"].min(), "least hard error", trials=int(curve["trials"][0]))


def _bias_fall(m: Measurements[Params], kind: str, setting: str) -> Values:
    return m.final(f"bias_fall_{kind}", **coarse(setting)) / m.params.bias_rate


def _slope_over_printed(m: Measurements[Params], setting: str) -> Values:
    slopes = fitted_slopes(m, setting)
    return (slopes[0] + slopes[1]) * (0.5 / _printed_constant(m))


def _made_up(m: Measurements[Params], setting: str) -> Values:
    """Outputs made up of detectors over the outputs themselves, mean of both superclasses."""
    parts = [
        m.final("decomposed_output", superclass=y, **coarse(setting))
        / m.final("own_output", superclass=y, **coarse(setting))
        for y in SIGNS
    ]
    return (parts[0] + parts[1]) * 0.5


@part.table(
    "first-phase",
    caption="When the first phase of training on superclass labels ends (T0: an output reaches 1/d), in slow motion "
    "from the source's own initial scale: the step measured and what the first update predicts, means over seeds with "
    "95 % intervals. T0 is a whole step, so that in every network it should be the first one after the predicted time "
    "(difference: least to largest network).",
    shows=("C5h",),
)
def first_phase(m: Measurements[Params]) -> pl.DataFrame:
    measured, predicted = (m.final(metric, arm="first-phase") for metric in ("t0", "predicted_t0"))
    late = pool([measured - predicted], "T0 − predicted")
    cells: dict[str, Values | Every] = {"T0": measured, "predicted": predicted, "T0 − predicted": late}
    return pl.DataFrame([{name: charts.measured(found) for name, found in cells.items()} | {"expected": "0 to 1"}])
