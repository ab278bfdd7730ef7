"""What training on subclass labels solves and how detectors grow, under both laws of the numbers of patches."""

from __future__ import annotations

from functools import partial

import altair as alt
import polars as pl

from assay.lab import Measurements, Values, charts

from ..figures import under_both_laws
from ..params import EXACT, RANDOM
from .arms import Params, part
from .claims import fine
from .theory import fine_common_envelope, fine_ratio_envelope

_KINDS = {"easy": "easy samples, superclass", "hard": "hard samples, superclass"}
_FINE_KINDS = {"easy": "easy samples, subclass", "hard": "hard samples, subclass"}
_ORDER = [*_KINDS.values(), *_FINE_KINDS.values()]
_STAGES = ("at T0", "at the end", "finetuned")


@part.figure(
    "fine-labels",
    caption="Errors of networks trained on subclass labels (mean and 95 % interval over seeds) when an output first "
    "reaches log 3/2 (T0), at the end of training, and after finetuning on superclass labels, with exact numbers of "
    "feature patches and with random ones, the source's law. The superclass is read out by the maximum over "
    "subclasses. Under both laws hard samples are right as early as T0: their error lies below the 0.05 that counts as "
    "none for them (dashed).",
    shows=("C3a", "C3b", "C3c", "C3d", "C3e", "C3f", "C3g", "C3j", "C3k", "C3l", "C3m", "C3n", "C3o", "C3p"),
)
def fine_labels(m: Measurements[Params]) -> alt.HConcatChart:
    chart: alt.HConcatChart = alt.hconcat(*(_errors(m, **law) for law in (EXACT, RANDOM))).resolve_scale(y="shared")
    return chart


def _errors(m: Measurements[Params], setting: str, law: str) -> alt.LayerChart:
    """The errors under one law, from T0 to the end."""
    metrics = {}
    for samples, kind in _KINDS.items():
        metrics[f"{samples}_error_at_t0"] = ("at T0", kind)
        metrics[f"{samples}_error"] = ("at the end", kind)
        metrics[f"finetuned_{samples}_error"] = ("finetuned", kind)
    for samples, kind in _FINE_KINDS.items():
        metrics[f"{samples}_fine_error_at_t0"] = ("at T0", kind)
        metrics[f"{samples}_fine_error"] = ("at the end", kind)
    frames = []
    for metric, (stage, kind) in metrics.items():
        found = m.final(metric, arm="fine", setting=setting).by_seed
        rows = pl.DataFrame({"seed": list(found), "value": list(found.values())})
        frames.append(rows.with_columns(stage=pl.lit(stage), kind=pl.lit(kind)))
    frame = charts.summarise(pl.concat(frames), "stage", "kind")
    base = alt.Chart(frame, width=300, height=230, title=law).encode(
        x=alt.X("stage:N", title=None, sort=list(_STAGES), axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("kind:N", sort=_ORDER),
        color=alt.Color("kind:N", title=None, sort=_ORDER),
    )
    y = alt.Y("low:Q", title="error", scale=alt.Scale(domainMin=0, clamp=True))
    bars = base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(y="mean:Q")
    return alt.LayerChart(layer=[charts.rules({"hard samples count as right below": 0.05}, width=300), bars, dots])


@part.table(
    "fine-growth",
    caption="How detectors grow with subclass labels until an output reaches log 3/2 (T0), with exact numbers of "
    "feature patches and with random ones (means over seeds with 95 % intervals; where no step or detector may miss a "
    "bound, from the least to the largest seed). Growth is that of detectors of the common feature over that of "
    "subclass detectors, k the number of subclasses; the coefficient is that of a common detector's updates. Last row: "
    "the least change of any one detector's response in a step of finetuning on superclass labels afterwards.",
    shows=("C6c", "C6j", "C6d", "C6k", "C6e", "C6l", "C6f", "C6m", "C6h", "C6o", "C6i", "C6p", "C3h", "C3q"),
)
def fine_growth(m: Measurements[Params]) -> pl.DataFrame:
    k = m.params.subclasses
    (low, high), (least, most) = fine_common_envelope(k), fine_ratio_envelope(k)

    def first(setting: str) -> Values:
        return m.at("growth_ratio", 1, **fine(setting)) / (k / (2 * k - 1))

    def made(kind: str, setting: str) -> Values:
        return m.final(f"{kind}_output_at_t0", **fine(setting)) / m.final(f"least_{kind}_output", **fine(setting))

    return under_both_laws(
        [
            ("C6c, C6j", "growth of the first step, over k/(2k − 1)", first, "1"),
            (
                "C6d, C6k",
                "lowest coefficient until T0",
                lambda s: m.every("lowest_coefficient", **fine(s)),
                f"{low:.3g} at least",
            ),
            (
                "C6e, C6l",
                "highest coefficient until T0",
                lambda s: m.every("highest_coefficient", **fine(s)),
                f"{high:.3g} at most",
            ),
            (
                "C6f, C6m",
                "growth until T0",
                lambda s: m.final("growth_ratio_at_t0", **fine(s)),
                f"{least:.3g} to {most:.3g}",
            ),
            ("C6h, C6o", "output made by common detectors/guaranteed", partial(made, "common"), "1 at least"),
            ("C6i, C6p", "output made by subclass detectors/guaranteed", partial(made, "subclass"), "1 at least"),
            (
                "C3h, C3q",
                "least change of a response in finetuning",
                lambda s: m.every("least_response_change", **fine(s)),
                "0 at least",
            ),
        ]
    )
