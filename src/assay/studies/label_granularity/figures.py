"""What spans the parts: coarse and fine training side by side, and the source's tables in small."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, NotMeasured, Values, charts

from .coarse.claims import slope_over_constant
from .few_samples.arms import GRAINS, SPLITS
from .images.figures import printed
from .params import EXACT, RANDOM
from .study import Params, study

_LABELS = {"coarse": "coarse labels", "fine": "fine labels"}
_SAMPLES = {"easy_error": "easy samples", "hard_error": "hard samples"}
_DASH = alt.Scale(domain=["easy samples", "hard samples"], range=[[1, 0], [6, 5]])


def under_both_laws(rows: Iterable[tuple[str, str, Callable[[str], Values | Every], str]]) -> pl.DataFrame:
    """A table of unlike quantities that are asked of a setting: the claims that each belongs to, what it is, what was
    measured with exact and with random numbers of patches, and what is expected."""
    laws = {"exact counts": EXACT["setting"], "random counts": RANDOM["setting"]}
    return pl.DataFrame(
        [
            {"claim": claim, "quantity": what}
            | {name: charts.measured(query(setting)) for name, setting in laws.items()}
            | {"expected": expected}
            for claim, what, query, expected in rows
        ]
    )


def _log_steps() -> alt.X:
    return alt.X("step:Q", title="updates", scale=alt.Scale(type="log", nice=False))


@study.figure(
    "errors",
    caption="Error on easy samples (common feature present) and on hard ones (common feature missing, faint copies of "
    "the other superclass' one) over training, mean and interval over seeds. By the theory coarse labels solve the "
    "easy samples at once and never the hard ones; fine labels, read out by the maximum over subclasses, solve both. "
    "The line marks T0.",
    shows=("C1b", "C2a", "C2b", "C3a", "C3b", "C3e"),
)
def errors(m: Measurements[Params]) -> alt.HConcatChart:
    parts = []
    for arm, title in _LABELS.items():
        rows = m.rows(list(_SAMPLES), arm=arm, setting="exact").filter(pl.col("step") >= 1)
        rows = rows.with_columns(samples=pl.col("metric").replace_strict(_SAMPLES))
        frame = charts.summarise(rows, "samples", "step")
        base = alt.Chart(frame, width=320, height=250, title=title).encode(
            x=_log_steps(),
            color=alt.Color("samples:N", title=None),
            strokeDash=alt.StrokeDash("samples:N", legend=None, scale=_DASH),
        )
        y = alt.Y("mean:Q", title="error", scale=alt.Scale(domain=[0, 1], clamp=True))
        band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="error"), y2="high:Q")
        layers = [band, base.mark_line(strokeWidth=3).encode(y=y)]
        if arm == "fine":
            reached = pl.DataFrame({"step": [float(m.final("t0", arm="fine", setting="exact").array.mean())]})
            layers.append(alt.Chart(reached).mark_rule(strokeDash=[3, 3], color="#777").encode(x="step:Q"))
        parts.append(alt.layer(*layers))
    return alt.HConcatChart(hconcat=parts)


@study.figure(
    "responses",
    caption="Top: the response relu(⟨w, v⟩ + b) of one detector of the common and of a subclass feature, mean over "
    "seeds. Bottom: the ratio of their growth (dots) and what the theory predicts (dashed): k at all times with "
    "coarse labels; k/(2k − 1) at first with fine labels, within [¼, ⅔] until T0 and falling afterwards.",
    shows=("C5a", "C5b", "C5c", "C6c", "C6f"),
)
def responses(m: Measurements[Params]) -> alt.VConcatChart:
    k = m.params.subclasses
    top = [_response_chart(m, arm) for arm in _LABELS]
    bottom = [
        _ratio_chart(m, "coarse", "growth_ratio", "growth", {"k": float(k)}, 1.25 * k),
        _ratio_chart(m, "fine", "growth_per_step_ratio", "growth per step", {"k/(2k − 1)": k / (2 * k - 1)}, 0.8),
    ]
    return alt.VConcatChart(vconcat=[alt.hconcat(*top), alt.hconcat(*bottom)])


def _response_chart(m: Measurements[Params], arm: str) -> alt.Chart:
    words = {"response_common": "common feature", "response_subclass": "subclass feature"}
    rows = m.rows(list(words), arm=arm, setting="exact")
    rows = rows.with_columns(feature=pl.col("metric").replace_strict(words))
    frame = charts.summarise(rows, "feature", "step")
    lines = alt.Chart(frame, width=320, height=200, title=_LABELS[arm]).mark_line(strokeWidth=3)
    y, color = alt.Y("mean:Q", title="response per detector"), alt.Color("feature:N", title=None)
    chart: alt.Chart = lines.encode(x=_log_steps(), y=y, color=color)
    return chart


def _ratio_chart(
    m: Measurements[Params], arm: str, metric: str, word: str, predicted: dict[str, float], top: float
) -> alt.LayerChart:
    frame = charts.summarise(m.rows(metric, arm=arm, setting="exact"), "step")
    dots = alt.Chart(frame, width=320, height=170).mark_point(filled=True, color="#444", opacity=0.6)
    y = alt.Y("mean:Q", title=f"{word}, common/subclass", scale=alt.Scale(domain=[0, top]))
    return alt.LayerChart(layer=[dots.encode(x=_log_steps(), y=y), charts.rules(predicted, width=320)])


@study.table(
    "theory",
    caption="The theory's quantities: errors at the end, growth ratio common/subclass, fitted over predicted slope of "
    "the logarithmic law (neurons that fire at the end, or detectors of the start), T0 and its prediction. Settings: "
    "exact patch counts, the source's random ones (bernoulli), and strengths that vary (jitter).",
    shows=("C1b", "C1e", "C2a", "C2j", "C5b", "C5o", "C6g", "C6n", "C8a", "C8e", "C8c"),
)
def theory_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for labels in ("coarse", "fine"):
        for setting in study.settings:
            where = {"arm": labels, "setting": setting}
            try:
                row: dict[str, Any] = {"labels": labels, "setting": setting}
                row |= {name: charts.plus_minus(m.final(f"{name}_error", **where)) for name in ("easy", "hard")}
            except NotMeasured:
                continue
            row["growth ratio"] = charts.plus_minus(m.final("growth_ratio", **where), 2)
            law, fine = labels == "coarse", labels == "fine"
            row["slope/C, firing"] = charts.plus_minus(slope_over_constant(m, "firing", setting)) if law else None
            row["slope/C, initial"] = charts.plus_minus(slope_over_constant(m, "initial", setting)) if law else None
            row["T0"] = charts.plus_minus(m.final("t0", **where), 1) if fine else None
            row["seeds that reach T0"] = int(m.final("t0_reached", **where).array.sum()) if fine else None
            row["T0 predicted"] = charts.plus_minus(m.final("predicted_t0", **where), 1) if fine else None
            row["fewest detectors"] = int(m.final("fewest_detectors", **where).array.min())
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "other-tables",
    caption="The other tables of the source in small, errors in %: checkpoints of the backbone, a larger network, "
    "ways to read out (the source prints accuracies, shown as errors), few images per class, and classes never seen "
    "(the source: ImageNet-21k at 38 to 21,843 classes to ImageNet-1k). Sizes differ; the order within a block is "
    "what compares.",
    shows=("C9i", "C9j", "C9k", "C9l", "C9w", "C10a", "C10b", "C11b", "C12"),
)
def other_tables(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []

    def add(table: str, what: str, source: float | None, **where: Any) -> None:
        error = charts.plus_minus(m.final("error", **where), 2, 100)
        rows.append({"table": table, "what": what, "error %": error, "source %": source})

    for n in (50, 70, 90):
        for scheme, classes in (("groups", 51), ("classes", 1103)):
            source = printed(m, "Table 2", f"manual after {n} epochs", classes)
            add("Table 2", f"{scheme}, checkpoint {n} of 90", source, arm="checkpoints", scheme=scheme, epochs=n)
    wider = {
        "coarse": ("manual", 11),
        "groups": ("manual", 51),
        "classes": ("manual", 1103),
        "random": ("random", None),
    }
    for scheme, (name, number) in wider.items():
        source = printed(m, "Table 3", name, number)
        add("Table 3", f"twice as wide, {scheme}", source, arm="larger-network", scheme=scheme)
    for scheme in ("classes", "coarse"):
        for readout in ("finetune", "short finetune", "probe", "max"):
            accuracy = printed(m, "Table 5", f"{scheme}: {readout} batch 4096")
            source = round(100 - accuracy, 2) if accuracy else None
            add("Table 5", f"{scheme}, {readout}", source, arm="read-outs", scheme=scheme, readout=readout)
    for scheme in ("one pass", "coarse"):
        add("Table 6", f"few images, {scheme}", printed(m, "Table 6", scheme), arm="few-samples", scheme=scheme)
    for scheme, name in (("clusters per class", "clusters per class (ViT-L CLIP)"), ("random within", "random within")):
        for n in SPLITS:
            source = printed(m, "Table 6", name, 1000 * n)
            add("Table 6", f"few images, {scheme}, {n} per class", source, arm="few-samples", scheme=scheme, splits=n)
    for readout, table in (("finetune", "Table 7"), ("probe", "Table 8")):
        for grain, classes in zip(GRAINS, (38, 160, 519, 5995, 21843), strict=True):
            source = round(100 - float(printed(m, table, readout, classes) or 0), 2)
            add(table, f"{grain} classes, {readout}", source, arm="cross", grain=grain, readout=readout)
    return pl.DataFrame(rows, infer_schema_length=None)
