"""Phase maps with the predicted boundary; the grid of settings and the critical values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..learners import SPLITS, TT
from ..theorems.arms import SETTINGS
from .arms import Params, part
from .claims import LEARNED, tells_the_winner

Boundary = Callable[[str, list[float], list[float]], pl.DataFrame]  # of a split, on the places of both axes
_COLUMNS = {
    "meta-loss": ("meta_loss", 3),
    "test loss": ("test_loss", 3),
    "accuracy": ("test_accuracy", 2),
    "adapted loss": ("adapted_loss", 3),
    "adapted accuracy": ("adapted_accuracy", 2),
    "Λ": ("feature_alignment", 3),
    "Ξ": ("noise_alignment", 3),
}


def _map(
    m: Measurements[Params], arm: str, x: str, y: str, titles: tuple[str, str], boundary: Boundary
) -> alt.HConcatChart:
    """Test loss per cell, and the predicted boundary as a line through the cells' own scale of places."""
    parts = []
    for split in SPLITS:
        mean = m.rows("test_loss", arm=arm, split=split).group_by(x, y).agg(loss=pl.col("value").mean()).sort(x, y)
        xs, ys = mean[x].unique().sort().to_list(), mean[y].unique().sort().to_list()
        frame = mean.with_columns(
            x=pl.Series([float(xs.index(value)) for value in mean[x]]),
            y=pl.Series([float(ys.index(value)) for value in mean[y]]),
            winner=pl.when(pl.col("loss") < LEARNED).then(pl.lit("feature")).otherwise(pl.lit("noise")),
        ).with_columns(x0=pl.col("x") - 0.5, x1=pl.col("x") + 0.5, y0=pl.col("y") - 0.5, y1=pl.col("y") + 0.5)
        parts.append(_map_panel(frame, xs, ys, titles, split, boundary(split, xs, ys)))
    return alt.hconcat(*parts)


def _axis(values: list[float]) -> alt.Axis:
    labels = "".join(f"datum.value == {place} ? '{value:g}' : " for place, value in enumerate(values))
    return alt.Axis(values=list(range(len(values))), labelExpr=labels + "''", grid=False)


def _map_panel(
    frame: pl.DataFrame, xs: list[float], ys: list[float], titles: tuple[str, str], title: str, line: pl.DataFrame
) -> alt.LayerChart:
    across = alt.Scale(domain=[-0.5, len(xs) - 0.5], nice=False)
    along = alt.Scale(domain=[-0.5, len(ys) - 0.5], nice=False)
    base = alt.Chart(frame, width=42 * len(xs), height=36 * len(ys), title=title)
    cells = base.mark_rect(stroke="white").encode(
        x=alt.X("x0:Q", scale=across, axis=_axis(xs), title=titles[0]),
        x2="x1:Q",
        y=alt.Y("y0:Q", scale=along, axis=_axis(ys), title=titles[1]),
        y2="y1:Q",
        color=alt.Color("loss:Q", title="test loss", scale=alt.Scale(domain=[0, 0.7], scheme="viridis", reverse=True)),
        tooltip=[alt.Tooltip("loss:Q", format=".3f"), "winner:N"],
    )
    words = base.mark_text(fontSize=9).encode(
        x="x:Q",
        y="y:Q",
        text=alt.Text("loss:Q", format=".2f"),
        color=alt.condition("datum.loss > 0.45", alt.value("white"), alt.value("black")),
    )
    if not len(line):
        return alt.LayerChart(layer=[cells, words])
    curve = alt.Chart(line).mark_line(color="#d7191c", strokeWidth=2.5, clip=True)
    return alt.LayerChart(layer=[cells, words, curve.encode(x="x:Q", y="y:Q", order="order:Q")])


def _place(value: float, values: list[float]) -> float | None:
    """Where a value lies on the axis of equally spaced grid values, interpolated; None outside."""
    for i, (a, b) in enumerate(itertools.pairwise(values)):
        if a <= value <= b:
            return i + (value - a) / (b - a)
    return None


def _line(points: list[tuple[float | None, float | None]]) -> pl.DataFrame:
    kept = [(i, x, y) for i, (x, y) in enumerate(points) if x is not None and y is not None]
    return pl.DataFrame(kept, schema={"order": pl.Int64, "x": pl.Float64, "y": pl.Float64}, orient="row")


def _fine(values: list[float], count: int = 60) -> list[float]:
    """Values between and at the grid's, evenly over its places."""
    points = []
    for a, b in itertools.pairwise(values):
        points += [a + (b - a) * i / (count // len(values)) for i in range(count // len(values))]
    return [*points, float(values[-1])]


@part.figure(
    "phase-steps-tasks",
    caption="Test loss on new tasks after training, over inner steps J and tasks K (mean over seeds), without a "
    "split (left) and with one. Red: where the formulas make the rates of feature and noise equal; below the "
    "line noise is predicted to win.",
    shows=("C4k",),
)
def phase_steps_tasks(m: Measurements[Params]) -> alt.HConcatChart:
    def boundary(split: str, xs: list[float], ys: list[float]) -> pl.DataFrame:
        points = []
        for steps in _fine(xs):
            rates = m.params.rates(split, inner_steps=steps, tasks=1)
            points.append((_place(steps, xs), _place(rates.noise / rates.feature, ys)))
        return _line(points)

    return _map(m, "phase-steps-tasks", "inner_steps", "tasks", ("inner steps J", "tasks K"), boundary)


@part.figure(
    "phase-noise-rate",
    caption="The same over noise energy s and inner rate γ. Red: equal rates; to the right of the line noise is "
    "predicted to win. Without a split a larger inner rate helps the noise, with one it helps the feature.",
    shows=("C4l", "C6d", "C6e"),
)
def phase_noise_rate(m: Measurements[Params]) -> alt.HConcatChart:
    def boundary(split: str, xs: list[float], ys: list[float]) -> pl.DataFrame:
        points = []
        for rate in _fine(ys):
            effect = m.params.prediction(inner_rate=rate)
            level = effect.critical_noise_energy if split == TT else effect.critical_noise_energy_train_val
            points.append((_place(level, xs), _place(rate, ys)))
        return _line(points)

    return _map(m, "phase-noise-rate", "noise_energy", "inner_rate", ("noise energy s", "inner rate γ"), boundary)


@part.table(
    "grid",
    caption="The grid of settings at the end of training (mean ± 95 % half-interval over seeds): losses un-adapted "
    "on new tasks, the smaller feature alignment Λ, noise alignment Ξ of the outer samples, and what the rates "
    "predict (— where they differ by no more than 1.5 times or do not apply).",
    shows=(
        *("C1a", "C1b", "C2b", "C2h", "C2k", "C3b", "C3e", "C3r", "C4j", "C5a", "C5b", "C5c"),
        *("C6a", "C6b", "C6c", "C6f", "C7a", "C7b", "C7c"),
    ),
)
def grid(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for setting in SETTINGS:
        for split in SPLITS:
            where = {"arm": "fomaml", "setting": setting, "split": split}
            rates = m.params_of(setting).rates(split)
            decided = tells_the_winner(rates) and setting != "relu"
            row: dict[str, Any] = {"setting": setting, "split": split}
            for name, (metric, digits) in _COLUMNS.items():
                row[name] = charts.plus_minus(m.final(metric, **where), digits)
            row |= {"R_ν": round(rates.feature, 3), "R_ξ": round(rates.noise, 3)}
            rows.append({**row, "predicted": rates.winner if decided else "—"})
    return pl.DataFrame(rows)


@part.table(
    "critical-values",
    caption="What the rate formulas say at the base setting: rates per unit outer rate, and the values of J, K and "
    "s at which feature and noise are even.",
    shows=("C5a", "C5c"),
)
def critical_values(m: Measurements[Params]) -> pl.DataFrame:
    effect = m.params.prediction()
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
