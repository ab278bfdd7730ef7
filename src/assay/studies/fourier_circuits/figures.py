"""What is shown of all trained networks, and of all transformers, together."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .full_data.arms import SETTINGS as FULL
from .full_data.arms import SMALL
from .grokking.arms import EQUAL, SUMS
from .grokking.figures import words
from .heads.arms import SETTINGS as HEADS
from .study import Params, study

_MARGINS = {"margin_ratio": "smallest margin", "mean_margin_ratio": "mean margin", "alignment_ratio": "bound J"}


def _networks(m: Measurements[Params]) -> list[tuple[str, str]]:
    """The arms and settings of the networks trained with the penalty, on all inputs and on half of them."""
    return [("full-data", setting) for setting in FULL] + [("network", setting) for setting in m.params.networks]


@study.figure(
    "margins",
    caption="Normalised margins over training as shares of γ*, the largest possible: smallest and mean margin over the "
    "training inputs (at most 4,096) and the closed form J that bounds them on all inputs. Mean and 95 % interval.",
    shows=("C1k", "C4z", "C7a", "C7b", "C7c"),
)
def margins(m: Measurements[Params]) -> alt.VConcatChart:
    panels = [_margins(m, arm, setting) for arm, setting in _networks(m)]
    return alt.vconcat(*(alt.hconcat(*panels[i : i + 3]) for i in range(0, len(panels), 3)))


def _margins(m: Measurements[Params], arm: str, setting: str) -> alt.LayerChart | alt.FacetChart:
    rows = m.rows(list(_MARGINS), arm=arm, setting=setting)
    frame = charts.summarise(rows.with_columns(curve=pl.col("metric").replace_strict(_MARGINS)), "curve", "step")
    title = f"{m.params_of(setting).sizes}, {'all' if arm == 'full-data' else 'half of the'} data"
    lines = charts.band(
        frame, x="step", y="share of γ*", colour="curve", domain=(-0.25, 1.05), width=210, height=150, title=title
    )
    return alt.layer(charts.rules({"γ*": 1.0}, width=210), lines)


_COLUMNS = {
    "test_accuracy": "test",
    "power_median": "median share",
    "power_weighted": "weighted by norm^(k+1)",
    "power_by_norm": "by norm",
    "power_mean": "plain mean",
    "frequencies": "frequencies",
    "frequency_ratio": "max/min",
    "phase_residual": "|Σθ − θ_w|",
    "shared_frequency": "one frequency in all vectors",
    "alive": "live",
    "margin_ratio": "smallest margin",
    "mean_margin_ratio": "mean margin",
    "alignment_ratio": "J",
}


@study.table(
    "networks",
    caption="Trained networks, means and 95 % intervals over seeds: share of one frequency by several averages, "
    "frequencies present, phases, the weight (norm^(k+1)) of neurons with one frequency in all vectors, the share of "
    "the logits' power that depends on the sum minus the label alone, and margins on training inputs and on all inputs "
    "as shares of γ*. Last rows: weight decay in place of the penalty, and shuffled labels.",
    shows=(
        *("C2d", "C2e", "C3f", "C4a", "C4b", "C4c", "C4d", "C4f", "C4g", "C4h", "C4i", "C4j", "C4k", "C4m", "C4n"),
        *("C4o", "C4p", "C4q", "C4r", "C4t", "C4u", "C4v", "C4w", "C4x", "C4y", "N1", "N5"),
    ),
)
def networks(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for arm, setting in [*_networks(m), ("weight-decay", "k3-decay"), ("shuffled", "full-k2")]:
        where = {"arm": arm, "setting": setting}
        params = m.params_of(setting)
        try:
            found = {name: charts.plus_minus(m.at(metric, params.steps, **where)) for metric, name in _COLUMNS.items()}
            start = charts.plus_minus(m.at("power_mean", 0, **where))
            least = charts.plus_minus(m.final("full_margin_ratio", **where))
            # The spectrum of the logits is measured where all inputs are few enough.
            diagonal = charts.plus_minus(m.final("logit_share", **where)) if params.problem.size <= SMALL else "–"
        except NotMeasured:
            continue
        row = {"arm": arm, "network": params.sizes, "share at the start": start}
        rows.append(row | found | {"logits by sum − label": diagonal, "smallest margin, all inputs": least})
    return pl.DataFrame(rows)


@study.table(
    "transformers",
    caption="Transformers: mean steps to 0.99 (validation: at least, where some seeds never got there), the delay, and "
    "the share of two modes in the median head, untrained, trained, and with the key-query weights of the start under "
    "the trained embeddings, and trained with the tokens in a random order (shuffled). At k = 2 also the accuracy on "
    "validation pairs whose mirror image (b, a) was trained on, and on the others. Weight decay as in the source "
    "unless said.",
    shows=(
        *("C5a", "C5b", "C5c", "C5d", "C5e", "C5f", "C5g", "C5h", "C5i", "C5j"),
        *("C6d", "C6e", "C6f", "C6g", "C6h", "C6j", "C6k", "N6"),
    ),
)
def transformers(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    arms = {"grokking": SUMS, "equal-counts": EQUAL, "attention": HEADS}
    for arm, setting in [(arm, setting) for arm, settings in arms.items() for setting in settings]:
        where = {"arm": arm, "setting": setting}
        try:
            generalised = m.final("generalised", **where).array
        except NotMeasured:
            continue
        params = m.params_of(setting)
        shares = {
            name: charts.plus_minus(m.final(f"top2_{name}", **where))
            for name in ("untrained", "trained", "embedding", "shuffled")
        }
        mirrored = {
            words: charts.plus_minus(m.final(f"{name}_accuracy", **where)) if params.terms == 2 else "–"
            for name, words in (("mirrored", "mirrored pairs"), ("unmirrored", "other pairs"))
        }
        row = {
            "arm": arm,
            "task": words(m, setting),
            "training inputs": params.training_inputs,
            "train ≥ .99": float(m.final("train_step", **where).array.mean()),
            "validation ≥ .99": float(m.final("validation_step", **where).array.mean()),
            "generalised": f"{int(generalised.sum())} of {len(generalised)}",
            "log10 ratio": charts.plus_minus(m.final("log_ratio", **where), 2),
            "validation at the end": charts.plus_minus(m.final("validation_accuracy", **where)),
        }
        rows.append(row | mirrored | shares)
    return pl.DataFrame(rows)
