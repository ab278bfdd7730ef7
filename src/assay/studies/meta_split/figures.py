"""Losses and alignments over time, phase maps with the predicted boundary, amplification against theory; tables."""

from __future__ import annotations

import itertools
import math
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from . import theory
from .claims import APART, LEARNED, TT, TV
from .setup import prediction, rates_of
from .study import PRINTED_RATES, PRINTED_VARIANTS, SETTINGS, study

_NAMES = {TT: "train-train", TV: "train-validation"}
_TUNED = {"fomaml-tuned": TV, "reptile": "reptile"}  # arm: the name it has in pictures and tables
_CASES = {"base": "ten tasks (base)", "pooled": "no inner step (pooled)", "relu": "ReLU"}


def _curves(m: Measurements, metric: str, arm: str, **where: Any) -> pl.DataFrame:
    return charts.summarise(m.rows(metric, arm=arm, **where), "split", "step")


def _band(frame: pl.DataFrame, title: str, y: str, **options: Any) -> Any:
    return charts.band(frame, x="step", y=y, colour="split", title=title, **options)


@study.figure(
    "test-loss",
    caption="Test loss on new tasks without adaptation over outer steps (mean and 95 % interval over seeds). With "
    "five inner steps (left) the split decides; without inner steps (middle: gradient descent on pooled data, or on "
    "the validation halves) it does not; ReLU (right) shows the same order. Dashed: log 2, the loss of a constant "
    "answer.",
)
def test_loss(m: Measurements) -> alt.HConcatChart:
    parts = []
    for setting, title in _CASES.items():
        frame = _curves(m, "test_loss", "fomaml", setting=setting)
        chart = _band(frame, title, "test loss", width=230, height=230, domain=(0, 0.75))
        parts.append(chart + charts.rules({"log 2": math.log(2)}, width=230))
    return alt.hconcat(*parts)


@study.figure(
    "long-run",
    caption="The same over 5,000 steps, meta-training loss beside it (logarithmic). "
    "Without a split everything is memorised at once and the small gradient that is left teaches the feature slowly.",
)
def long_run(m: Measurements) -> alt.HConcatChart:
    parts = []
    for metric, title, scale in (("test_loss", "test loss", "linear"), ("meta_loss", "meta-training loss", "log")):
        frame = _curves(m, metric, "fomaml", setting="long").with_columns(low=pl.col("low").clip(1e-5))
        parts.append(_band(frame, title, title, scale=scale, width=300, height=230))
    return alt.hconcat(*parts)


@study.figure(
    "alignment",
    caption="Alignment over time in the base setting: the shared feature (the smaller Λ) and the noise of the "
    "samples in the outer loss (mean Ξ), before the inner steps. Without a split noise overtakes and stops the "
    "feature; with one the feature grows and validation noise stays behind.",
)
def alignment(m: Measurements) -> alt.HConcatChart:
    names = {"feature_alignment": "shared feature Λ", "noise_alignment": "noise Ξ"}
    rows = m.rows(list(names), arm="fomaml", setting="base").with_columns(
        what=pl.col("metric").replace_strict(names), value=pl.col("value").clip(1e-7)
    )
    parts = []
    for split, title in _NAMES.items():
        frame = charts.summarise(rows.filter(split=split), "what", "step").with_columns(pl.col("low").clip(1e-7))
        axis = {"scale": "log", "domain": (1e-5, 10)}
        parts.append(charts.band(frame, x="step", y="alignment", colour="what", title=title, width=300, **axis))
    return alt.hconcat(*parts)


@study.figure(
    "amplification",
    caption="What J inner steps multiply while everything is small: measured against predicted, s = 4 and 8 and J = "
    "1, 2, 3, 5 (mean over seeds; line: equal). Own noise without a split follows (1 + γ‖ξ‖²/(2hn))^J; the feature "
    "(1 + γπ‖ν‖²/(2h))^J in both; validation noise is not amplified.",
)
def amplification(m: Measurements) -> alt.LayerChart:
    labels = {("noise", TT): "own noise, train-train", ("noise", TV): "validation noise, train-validation",
              ("feature", TT): "feature, train-train", ("feature", TV): "feature, train-validation"}  # fmt: skip
    keys = ["energy", "inner", "split"]
    frames = []
    for (kind, split), label in labels.items():
        measured = m.rows(f"{kind}_gain", arm="early-growth", split=split).group_by(keys).agg(pl.col("value").mean())
        predicted = m.rows(f"predicted_{kind}_gain", arm="early-growth", split=split).group_by(keys)
        both = measured.join(predicted.agg(predicted=pl.col("value").mean()), on=keys)
        frames.append(both.with_columns(what=pl.lit(label)))
    frame = pl.concat(frames).sort(keys)
    ends = pl.DataFrame({"predicted": [0.9, 1.15 * float(frame["predicted"].max())]})
    scale = alt.Scale(type="log", nice=False, domain=ends["predicted"].to_list())
    line = alt.Chart(ends).mark_line(color="#999").encode(x="predicted:Q", y="predicted:Q")
    dots = (
        alt.Chart(frame, width=380, height=320)
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("predicted:Q", title="predicted factor", scale=scale),
            y=alt.Y("value:Q", title="measured factor", scale=scale),
            color=alt.Color("what:N", title=None, sort=list(labels.values()), legend=alt.Legend(labelLimit=260)),
            shape=alt.Shape("what:N", sort=list(labels.values()), legend=None),
            tooltip=["what:N", "energy:Q", "inner:Q", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    return alt.layer(line, dots)


def _map(m: Measurements, arm: str, x: str, y: str, titles: tuple[str, str], boundary: Any) -> alt.HConcatChart:
    """Test loss per cell, and the predicted boundary as a line through the cells' own scale of places."""
    parts = []
    for split, title in _NAMES.items():
        mean = m.rows("test_loss", arm=arm, split=split).group_by(x, y).agg(loss=pl.col("value").mean()).sort(x, y)
        xs, ys = mean[x].unique().sort().to_list(), mean[y].unique().sort().to_list()
        frame = mean.with_columns(
            x=pl.col(x).map_elements(lambda v, xs=xs: float(xs.index(v)), return_dtype=pl.Float64),
            y=pl.col(y).map_elements(lambda v, ys=ys: float(ys.index(v)), return_dtype=pl.Float64),
            winner=pl.when(pl.col("loss") < LEARNED).then(pl.lit("feature")).otherwise(pl.lit("noise")),
        ).with_columns(x0=pl.col("x") - 0.5, x1=pl.col("x") + 0.5, y0=pl.col("y") - 0.5, y1=pl.col("y") + 0.5)
        parts.append(_map_panel(frame, xs, ys, titles, title, boundary(split, xs, ys)))
    return alt.hconcat(*parts)


def _axis(values: list[float]) -> alt.Axis:
    labels = "".join(f"datum.value == {place} ? '{value:g}' : " for place, value in enumerate(values))
    return alt.Axis(values=list(range(len(values))), labelExpr=labels + "''", grid=False)


def _map_panel(frame: pl.DataFrame, xs: list[Any], ys: list[Any], titles: Any, title: str, line: pl.DataFrame) -> Any:
    across = alt.Scale(domain=[-0.5, len(xs) - 0.5], nice=False)
    along = alt.Scale(domain=[-0.5, len(ys) - 0.5], nice=False)
    base = alt.Chart(frame, width=42 * len(xs), height=36 * len(ys), title=title)
    cells = base.mark_rect(stroke="white").encode(
        x=alt.X("x0:Q", scale=across, axis=_axis(xs), title=titles[0]), x2="x1:Q",
        y=alt.Y("y0:Q", scale=along, axis=_axis(ys), title=titles[1]), y2="y1:Q",
        color=alt.Color("loss:Q", title="test loss", scale=alt.Scale(domain=[0, 0.7], scheme="viridis", reverse=True)),
        tooltip=[alt.Tooltip("loss:Q", format=".3f"), "winner:N"],
    )  # fmt: skip
    words = base.mark_text(fontSize=9).encode(
        x="x:Q", y="y:Q", text=alt.Text("loss:Q", format=".2f"),
        color=alt.condition("datum.loss > 0.45", alt.value("white"), alt.value("black")),
    )  # fmt: skip
    if not len(line):
        return alt.layer(cells, words)
    curve = alt.Chart(line).mark_line(color="#d7191c", strokeWidth=2.5, clip=True)
    return alt.layer(cells, words, curve.encode(x="x:Q", y="y:Q", order="order:Q"))


def _place(value: float, values: list[Any]) -> float | None:
    """Where a value lies on the axis of equally spaced grid values, interpolated; None outside."""
    for i, (a, b) in enumerate(itertools.pairwise(values)):
        if a <= value <= b:
            return i + (value - a) / (b - a)
    return None


def _line(points: list[tuple[float | None, float | None]]) -> pl.DataFrame:
    kept = [(i, x, y) for i, (x, y) in enumerate(points) if x is not None and y is not None]
    return pl.DataFrame(kept, schema={"order": pl.Int64, "x": pl.Float64, "y": pl.Float64}, orient="row")


def _fine(values: list[Any], count: int = 60) -> list[float]:
    """Values between and at the grid's, evenly over its places."""
    points = []
    for a, b in itertools.pairwise(values):
        points += [a + (b - a) * i / (count // len(values)) for i in range(count // len(values))]
    return [*points, float(values[-1])]


@study.figure(
    "phase-steps-tasks",
    caption="Test loss on new tasks after training, over inner steps J and tasks K (mean over seeds), without a "
    "split (left) and with one. Red: where the formulas make the rates of feature and noise equal; below the "
    "line noise is predicted to win.",
)
def phase_steps_tasks(m: Measurements) -> alt.HConcatChart:
    def boundary(split: str, xs: list[Any], ys: list[Any]) -> pl.DataFrame:
        points = []
        for steps in _fine(xs):
            rates = rates_of(prediction(m.params, inner_steps=steps, tasks=1), split)
            points.append((_place(steps, xs), _place(rates.noise / rates.feature, ys)))
        return _line(points)

    return _map(m, "phase-steps-tasks", "inner_steps", "tasks", ("inner steps J", "tasks K"), boundary)


@study.figure(
    "phase-noise-rate",
    caption="The same over noise energy s and inner rate γ. Red: equal rates; to the right of the line noise is "
    "predicted to win. Without a split a larger inner rate helps the noise, with one it helps the feature.",
)
def phase_noise_rate(m: Measurements) -> alt.HConcatChart:
    def boundary(split: str, xs: list[Any], ys: list[Any]) -> pl.DataFrame:
        points = []
        for rate in _fine(ys):
            effect = prediction(m.params, inner_rate=rate)
            level = effect.critical_noise_energy if split == TT else effect.critical_noise_energy_train_val
            points.append((_place(level, xs), _place(rate, ys)))
        return _line(points)

    return _map(m, "phase-noise-rate", "noise_energy", "inner_rate", ("noise energy s", "inner rate γ"), boundary)


@study.figure(
    "printed",
    caption="Figure 1 in the printed synthetic configuration, both pairs of printed rates: un-adapted test loss (left) "
    "and accuracy (right). Noise alone makes logits of size 25, so the loss starts near 10. Without a split nothing "
    "moves; with one the noise-driven logits shrink or grow with the rates, and accuracy stays at chance.",
)
def printed(m: Measurements) -> alt.VConcatChart:
    rows = []
    for rates in m.rows("test_loss", arm="printed")["rates"].unique(maintain_order=True):
        parts = []
        for metric, y, domain in (("test_loss", "test loss", None), ("test_accuracy", "accuracy", (0.4, 0.7))):
            frame = _curves(m, metric, "printed", rates=rates, variant="huberized")
            title = f"rates {rates} (inner/outer)"
            parts.append(_band(frame, title, y, domain=domain, width=280, height=190))
        rows.append(alt.hconcat(*parts))
    return alt.vconcat(*rows)


@study.figure(
    "rainbow",
    caption="Accuracy on the 16 meta-testing tasks of RainbowMNIST after adaptation (mean and 95 % interval over "
    "seeds), by variant and split; Reptile and FOMAML with tuned rates at the end.",
)
def rainbow(m: Measurements) -> alt.LayerChart:
    last = m.rows("accuracy", arm="rainbow")
    last = last.filter(pl.col("step") == pl.col("step").max())
    tuned = []
    for arm, name in _TUNED.items():
        rows = m.rows("accuracy", arm=arm).filter(pl.col("step") == pl.col("step").max())
        tuned.append(rows.with_columns(split=pl.lit(name), variant=pl.lit("tuned")))
    frame = charts.summarise(pl.concat([last, *tuned], how="diagonal_relaxed"), "variant", "split")
    order, splits = [*PRINTED_VARIANTS, "tuned"], [TT, TV, "reptile"]
    base = alt.Chart(frame, width=alt.Step(26), height=240).encode(
        x=alt.X("variant:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("split:N", sort=splits),
        color=alt.Color("split:N", sort=splits, title=None),
    )
    dots = base.mark_point(filled=True, size=80).encode(
        y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(zero=False)), tooltip=["variant", "split", "mean", "seeds"]
    )
    return alt.layer(base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"), dots)


# Tables


_COLUMNS = {
    "meta-loss": ("meta_loss", 3), "test loss": ("test_loss", 3), "accuracy": ("test_accuracy", 2),
    "adapted loss": ("adapted_loss", 3), "adapted accuracy": ("adapted_accuracy", 2), "Λ": ("feature_alignment", 3),
    "Ξ": ("noise_alignment", 3),
}  # fmt: skip
_PRINTED_COLUMNS = {"loss": ("test_loss", 2), "accuracy": ("test_accuracy", 2), "Λ": ("feature_alignment", 2),
                    "Ξ": ("noise_alignment", 1), "meta-loss": ("meta_loss", 3)}  # fmt: skip


@study.table(
    "grid",
    caption="The grid of settings at the end of training (mean ± 95 % half-interval over seeds): losses un-adapted "
    "on new tasks, the smaller feature alignment Λ, noise alignment Ξ of the outer samples, and what the rates "
    "predict (— where they differ by less than 1.5 times or do not apply).",
)
def grid(m: Measurements) -> pl.DataFrame:
    rows = []
    for setting in SETTINGS:
        effect = prediction(m.params_of(setting))
        for split in _NAMES:
            where = {"arm": "fomaml", "setting": setting, "split": split}
            rates = rates_of(effect, split)
            decided = rates.apart > APART and setting != "relu"
            row: dict[str, Any] = {"setting": setting, "split": split}
            for name, (metric, digits) in _COLUMNS.items():
                row[name] = charts.plus_minus(m.final(metric, **where), digits)
            row |= {"R_ν": round(rates.feature, 3), "R_ξ": round(rates.noise, 3)}
            rows.append({**row, "predicted": rates.winner if decided else "—"})
    return pl.DataFrame(rows)


@study.table(
    "critical-values",
    caption="What the rate formulas say at the base setting: rates per unit outer rate, and the values of J, K and "
    "s at which feature and noise are even.",
)
def critical_values(m: Measurements) -> pl.DataFrame:
    effect = prediction(m.params)
    values = {
        "feature rate R_ν": effect.train_train.feature,
        "noise rate without a split": effect.train_train.noise,
        "noise rate with a split": effect.train_val.noise,
        "critical inner steps J": effect.critical_inner_steps,
        "critical tasks K": effect.critical_tasks,
        "critical noise energy s": effect.critical_noise_energy,
        "critical tasks K, pooled": effect.critical_tasks_pooled,
        "critical noise energy s with a split": effect.critical_noise_energy_train_val,
    }
    return pl.DataFrame({"quantity": list(values), "value": [v and round(v, 3) for v in values.values()]})


@study.table(
    "printed",
    caption="The synthetic columns of Tables 1 to 3 in the printed configuration (± 95 % over seeds; the source's ± "
    "is over test tasks): the order is all that can be compared, since T, M, n₁ and the test are not printed. "
    "Accuracy and alignments beside it show that no feature is learned.",
)
def printed_table(m: Measurements) -> pl.DataFrame:
    rows = []
    for rates, variant, split in itertools.product(PRINTED_RATES, PRINTED_VARIANTS, _NAMES):
        where = {"arm": "printed", "split": split, "rates": rates, "variant": variant}
        row: dict[str, Any] = {"rates": rates, "variant": variant, "split": split}
        for name, (metric, digits) in _PRINTED_COLUMNS.items():
            row[name] = charts.plus_minus(m.final(metric, **where), digits)
        # The tables do not say which of the two printed pairs of rates is theirs.
        rows.append({**row, "paper loss": m.paper_value(data="synthetic", split=split, variant=variant)})
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "rainbow",
    caption="The RainbowMNIST columns of Tables 1 to 4 on the configured image set: accuracy in percent on "
    "meta-testing tasks after adaptation (± 95 % over seeds), before it, and the source's number. The miniImagenet "
    "columns of the same rows are the source's alone; nothing of it was run here.",
)
def rainbow_table(m: Measurements) -> pl.DataFrame:
    cells = [(variant, split, "rainbow") for variant in PRINTED_VARIANTS for split in _NAMES]
    rows = []
    for variant, split, arm in [*cells, *(("tuned", name, arm) for arm, name in _TUNED.items())]:
        where = {"arm": arm} if arm in _TUNED else {"arm": arm, "variant": variant, "split": split}
        row: dict[str, Any] = {"variant": variant, "method": split, "images": m.params.images}
        row["accuracy"] = charts.plus_minus(m.final("accuracy", **where), 1, 100)
        row["un-adapted"] = charts.plus_minus(m.final("unadapted_accuracy", **where), 1, 100)
        row["meta-loss"] = charts.plus_minus(m.final("meta_loss", **where), 2)
        # The source has one row of Reptile, whose rates it does not give.
        theirs = {"split": split, "variant": "huberized" if split == "reptile" else variant}
        row["paper"] = m.paper_value(data="rainbow", **theirs)
        row["paper, miniImagenet"] = m.paper_value(data="miniimagenet", **theirs)
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "miniimagenet",
    caption="Tables 5 and 6 of the source: miniImagenet, which was not run (its 100 classes are in no set at hand). "
    "RainbowMNIST with the same learners stands in for it.",
)
def miniimagenet(m: Measurements) -> pl.DataFrame:
    return m.paper.filter(pl.col("where").is_in(["Table 5", "Table 6"])).select(
        "where", "variant", "split", paper="value", interval="interval"
    )


def _first_step(m: Measurements, metric: str, split: str, level: float, below: bool = False) -> str:
    """Mean of the first step at which the metric is at least (or at most) a level, and how many seeds get there."""
    curve = m.curve(metric, arm="fomaml", setting="long", split=split)
    # To Polars NaN is larger than any number, so a diverged run would reach every level.
    there = pl.col("value").is_finite() & (pl.col("value") <= level if below else pl.col("value") >= level)
    first = curve.filter(there).group_by("seed").agg(pl.col("step").min())
    seeds = curve["seed"].n_unique()
    return f"{first['step'].mean():.0f} ({len(first)} of {seeds} seeds)" if len(first) else f"never ({seeds} seeds)"


@study.table(
    "stages",
    caption="When things happen in the long run (outer step, mean over the seeds in which they do, looked at every 50 "
    "steps): the stages of the proofs, and the time to a test loss of 0.35.",
)
def stages(m: Measurements) -> pl.DataFrame:
    p = m.params_of("long")
    level = theory.feature_threshold(p.filters, p.inner_rate, p.inner_steps)
    found = {
        "T⁽¹⁾: all training noise memorised, train-train": _first_step(m, "memorised", TT, 1.0),
        "T⁽²⁾: Λ ≥ m^{−1/2}(1 + γ)^{−J}, train-validation": _first_step(m, "feature_alignment", TV, level),
        "T⁽³⁾: Λ ≥ log(d)^0.1, train-validation": _first_step(m, "feature_alignment", TV, math.log(p.dim) ** 0.1),
        "test loss 0.35, train-train": _first_step(m, "test_loss", TT, 0.35, below=True),
        "test loss 0.35, train-validation": _first_step(m, "test_loss", TV, 0.35, below=True),
    }
    residual = theory.residual_condition(p.inner_rate, p.tasks, p.samples, p.noise_energy, p.inner_steps, p.dim)
    found["γK/(n s^J log d), small where memorising leaves no gradient"] = f"{residual:.1e}"
    return pl.DataFrame({"event": list(found), "outer step": list(found.values())})


@study.table("tuning", caption="Accuracy of the candidates (inner rate, and ε of Reptile or outer rate of FOMAML with "
             "a split) on seeds and images kept for tuning.")  # fmt: skip
def tuning(m: Measurements) -> pl.DataFrame:
    rows = []
    for method in ("reptile", "fomaml"):
        for candidate in getattr(m.params, f"{method}_candidates"):
            values = m.final("tuning_accuracy", arm=f"{method}-tuning", candidate=candidate)
            chosen = candidate == getattr(m.params, method)
            rows.append(
                {"method": method, "candidate": candidate, "accuracy": charts.plus_minus(values), "chosen": chosen}
            )
    return pl.DataFrame(rows)
