"""Accuracies on RainbowMNIST with the source's numbers beside them, miniImagenet's, and the tuning grids."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..learners import SPLITS, TT, TV
from .arms import VARIANTS, Params, part

_TUNED = {"fomaml-tuned": TV, "reptile": "reptile"}  # arm: the name it has in pictures and tables


@part.figure(
    "rainbow",
    caption="Accuracy on the 16 meta-testing tasks of RainbowMNIST after adaptation (mean and 95 % interval over "
    "seeds), by variant and split; Reptile and FOMAML with tuned rates at the end.",
    shows=("C8a", "C8b", "C8c", "C8d", "C8e", "C8f", "C8i", "C8j"),
)
def rainbow(m: Measurements[Params]) -> alt.LayerChart:
    last = m.rows("accuracy", arm="rainbow")
    last = last.filter(pl.col("step") == pl.col("step").max())
    tuned = []
    for arm, name in _TUNED.items():
        rows = m.rows("accuracy", arm=arm).filter(pl.col("step") == pl.col("step").max())
        tuned.append(rows.with_columns(split=pl.lit(name), variant=pl.lit("tuned")))
    frame = charts.summarise(pl.concat([last, *tuned], how="diagonal_relaxed"), "variant", "split")
    order, splits = [*VARIANTS, "tuned"], [TT, TV, "reptile"]
    base = alt.Chart(frame, width=alt.Step(26), height=240).encode(
        x=alt.X("variant:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("split:N", sort=splits),
        color=alt.Color("split:N", sort=splits, title=None),
    )
    dots = base.mark_point(filled=True, size=80).encode(
        y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(zero=False)), tooltip=["variant", "split", "mean", "seeds"]
    )
    return alt.LayerChart(layer=[base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"), dots])


@part.table(
    "rainbow",
    caption="The RainbowMNIST columns of Tables 1 to 4 on the configured image set: accuracy in percent on "
    "meta-testing tasks after adaptation (± 95 % over seeds), before it, that of the untrained network after "
    "adaptation, and the source's number. The miniImagenet columns of the same rows are the source's alone; nothing of "
    "it was run here.",
    shows=("C8a", "C8b", "C8c", "C8d", "C8e", "C8f", "C8g", "C8h", "C8i", "C8j", "N6"),
)
def rainbow_table(m: Measurements[Params]) -> pl.DataFrame:
    cells = [(variant, split, "rainbow") for variant in VARIANTS for split in SPLITS]
    rows = []
    for variant, split, arm in [*cells, *(("tuned", name, arm) for arm, name in _TUNED.items())]:
        where = {"arm": arm} if arm in _TUNED else {"arm": arm, "variant": variant, "split": split}
        row: dict[str, Any] = {"variant": variant, "method": split, "images": m.params.images}
        row["accuracy"] = charts.plus_minus(m.final("accuracy", **where), 1, 100)
        row["un-adapted"] = charts.plus_minus(m.final("unadapted_accuracy", **where), 1, 100)
        row["untrained"] = charts.plus_minus(m.at("accuracy", 0, **where), 1, 100)
        row["meta-loss"] = charts.plus_minus(m.final("meta_loss", **where), 2)
        # The source has one row of Reptile, whose rates it does not give.
        theirs = {"split": split, "variant": "huberized" if split == "reptile" else variant}
        row["paper"] = m.paper_value(data="rainbow", **theirs)
        row["paper, miniImagenet"] = m.paper_value(data="miniimagenet", **theirs)
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "rainbow-larger",
    caption="Tables 5 and 6 in small, on tasks as in RainbowMNIST of the configured image set: a network of six blocks "
    "and five samples per class, accuracy in percent on meta-testing tasks after adaptation (± 95 % over seeds), and "
    "what a split gains, paired over seeds. Runs at the preset paper, or with --arms +rainbow-larger.",
    shows=("C8k", "C8l"),
)
def rainbow_larger(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for setting in m.rows("accuracy", arm="rainbow-larger")["setting"].unique(maintain_order=True):
        found = {split: m.final("accuracy", arm="rainbow-larger", setting=setting, split=split) for split in SPLITS}
        row: dict[str, Any] = {"setting": setting, "images": m.params.images}
        row |= {split: charts.plus_minus(values, 1, 100) for split, values in found.items()}
        rows.append({**row, "gain": charts.plus_minus(found[TV] - found[TT], 1, 100)})
    return pl.DataFrame(rows)


@part.table(
    "miniimagenet",
    caption="Tables 5 and 6 of the source: miniImagenet, which was not run (its 100 classes are in no set at hand). "
    "RainbowMNIST with the same learners stands in for it.",
)
def miniimagenet(m: Measurements[Params]) -> pl.DataFrame:
    return m.paper.filter(pl.col("where").is_in(["Table 5", "Table 6"])).select(
        "where", "variant", "split", paper="value", interval="interval"
    )


@part.table(
    "tuning",
    caption="Accuracy of the candidates (inner rate, and ε of Reptile or outer rate of FOMAML with "
    "a split) on seeds and images kept for tuning.",
    shows=("N5", "N7"),
)
def tuning(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    p = m.params
    for method, tuned, candidates in (
        ("reptile", p.reptile, p.reptile_candidates),
        ("fomaml", p.fomaml, p.fomaml_candidates),
    ):
        for candidate in candidates:
            values = m.final("tuning_accuracy", arm=f"{method}-tuning", candidate=candidate)
            found = {"accuracy": charts.plus_minus(values), "chosen": candidate == tuned}
            rows.append({"method": method, "candidate": candidate, **found})
    return pl.DataFrame(rows)
