"""Losses and alignments over time, when the stages of the proofs end, and their bounds."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..learners import SPLITS, TV
from ..params import Planted
from . import theory
from .arms import SETTINGS, part

_CASES = {"base": "ten tasks (base)", "pooled": "no inner step (pooled)", "relu": "ReLU"}


def _curves(m: Measurements[Planted], metric: str, setting: str) -> pl.DataFrame:
    return charts.summarise(m.rows(metric, arm="fomaml", setting=setting), "split", "step")


def _band(frame: pl.DataFrame, title: str, y: str, **options: Any) -> alt.LayerChart:
    chart: alt.LayerChart = charts.band(frame, x="step", y=y, colour="split", title=title, **options)
    return chart


@part.figure(
    "test-loss",
    caption="Test loss on new tasks without adaptation over outer steps (mean and 95 % interval over seeds). With five "
    "inner steps (left) the split decides; without inner steps (middle: gradient descent on pooled data, or on the "
    "validation halves) it does not; ReLU (right) shows the same order. Dashed: log 2, the loss of a constant answer.",
    shows=("C2a", "C3a", "C5c", "C7a"),
)
def test_loss(m: Measurements[Planted]) -> alt.HConcatChart:
    parts = []
    for setting, title in _CASES.items():
        frame = _curves(m, "test_loss", setting)
        chart = _band(frame, title, "test loss", width=230, height=230, domain=(0, 0.75))
        parts.append(chart + charts.rules({"log 2": math.log(2)}, width=230))
    return alt.hconcat(*parts)


@part.figure(
    "long-run",
    caption="The same over 5,000 steps, meta-training loss beside it (logarithmic). Without a split everything is "
    "memorised at once and the small gradient that is left teaches the feature slowly.",
    shows=("C1c", "C1d", "C2f", "C2g", "C2j", "C3j"),
)
def long_run(m: Measurements[Planted]) -> alt.HConcatChart:
    parts = []
    for metric, title, scale in (("test_loss", "test loss", "linear"), ("meta_loss", "meta-training loss", "log")):
        frame = _curves(m, metric, "long").with_columns(low=pl.col("low").clip(1e-5))
        parts.append(_band(frame, title, title, scale=scale, width=300, height=230))
    return alt.hconcat(*parts)


@part.figure(
    "alignment",
    caption="Alignment over time in the base setting: the shared feature (the smaller Λ) and the noise of the samples "
    "in the outer loss (mean Ξ), before the inner steps. Without a split noise overtakes and stops the feature; with "
    "one the feature grows and validation noise stays behind.",
    shows=("C2c", "C2d", "C3c", "C3d", "C3n"),
)
def alignment(m: Measurements[Planted]) -> alt.HConcatChart:
    names = {"feature_alignment": "shared feature Λ", "noise_alignment": "noise Ξ"}
    rows = m.rows(list(names), arm="fomaml", setting="base").with_columns(
        what=pl.col("metric").replace_strict(names), value=pl.col("value").clip(1e-7)
    )
    parts = []
    for split in SPLITS:
        frame = charts.summarise(rows.filter(split=split), "what", "step").with_columns(pl.col("low").clip(1e-7))
        axis: dict[str, Any] = {"scale": "log", "domain": (1e-5, 10)}
        parts.append(charts.band(frame, x="step", y="alignment", colour="what", title=split, width=300, **axis))
    return alt.hconcat(*parts)


_EVERY_STEP: dict[str, Any] = {"arm": "stages"}
_LONG: dict[str, Any] = {"arm": "fomaml", "setting": "long"}


def _first_step(m: Measurements[Planted], metric: str, level: float, *, below: bool = False, **where: Any) -> str:
    """Mean of the first step at which the metric is at least (or at most) a level, and how many seeds get there."""
    curve = m.curve(metric, **where)
    # To Polars NaN is larger than any number, so a diverged run would reach every level.
    there = pl.col("value").is_finite() & (pl.col("value") <= level if below else pl.col("value") >= level)
    first = curve.filter(there).group_by("seed").agg(pl.col("step").min())["step"].to_list()
    seeds = curve["seed"].n_unique()
    return f"{sum(first) / len(first):.0f} ({len(first)} of {seeds} seeds)" if first else f"never ({seeds} seeds)"


@part.table(
    "stages",
    caption="When things happen (outer step, mean over the seeds in which they do): the first two stages of the proofs "
    "in the base setting, at every step; the third, and a test loss of 0.35, in the long run, every 50 steps.",
    shows=("C2e", "C2f", "C2j", "C3o", "C3p"),
)
def stages(m: Measurements[Planted]) -> pl.DataFrame:
    base, p = m.params, m.params_of("long")
    memorised = theory.noise_threshold(base.filters, base.inner_rate, base.noise_energy, base.samples, base.inner_steps)
    first = theory.feature_threshold(base.filters, base.inner_rate, base.inner_steps)
    third = math.log(p.dim) ** 0.1
    without, with_one = ({**_EVERY_STEP, "split": split} for split in SPLITS)
    found = {
        "T⁽¹⁾: all training noise memorised, train-train": _first_step(
            m, "least_noise_alignment", memorised, **without
        ),
        "T⁽²⁾: Λ ≥ m^{−1/2}(1 + γ)^{−J}, train-validation": _first_step(m, "feature_alignment", first, **with_one),
        "T⁽³⁾: Λ ≥ log(d)^0.1, train-validation": _first_step(m, "feature_alignment", third, **_LONG, split=TV),
    }
    for split in SPLITS:
        found[f"test loss 0.35, {split}"] = _first_step(m, "test_loss", 0.35, below=True, **_LONG, split=split)
    residual = theory.residual_condition(p.inner_rate, p.tasks, p.samples, p.noise_energy, p.inner_steps, p.dim)
    found["γK/(n s^J log d), small where memorising leaves no gradient"] = f"{residual:.1e}"
    return pl.DataFrame({"event": list(found), "outer step": list(found.values())})


@part.table(
    "bounds",
    caption="Bounds and formulas of the proofs, in the base setting unless said otherwise. Γ: largest alignment of the "
    "other class' filters with training noise, at every step looked at with and without a split; formula: the test "
    "loss that the shared feature alone gives; own features: largest alignment with a task's own feature over that "
    "with the shared one (both with a split, mean over seeds with its 95 % interval). Below, in all settings and "
    "looks, quantities that no exact recursion allows above 0: the largest fall of any filter's alignment with the "
    "shared feature, and what inner steps (J ≥ 1) add to it or move alignments with validation noise by, beyond their "
    "bounds. From the least to the largest seed and step.",
    shows=("C2i", "C3i", "C3m", "C4m", "C4n", "C4o"),
)
def bounds(m: Measurements[Planted]) -> pl.DataFrame:
    p = m.params
    level: float = p.dim**-0.5 * math.log(p.dim)
    trained = {"arm": "fomaml", "setting": "base", "split": TV}
    formula = m.final("feature_only_loss", **trained) / m.final("test_loss", **trained)
    own = m.final("task_over_feature", **trained)
    wrong = m.every("wrong_noise_alignment", arm="fomaml", setting="base") / level
    inner = {"arm": "fomaml", "setting": [setting for setting in SETTINGS if m.params_of(setting).inner_steps]}
    moved = m.every("validation_excess", split=TV, **inner)
    return charts.by_claim(
        [
            ("C2i", "Γ/(d^{−1/2} log d)", wrong, "1 at most"),
            ("C3i", "formula/test loss", formula, "1"),
            ("C3m", "own features/shared one", own, f"σ_s²d = {p.task_norm**2:.3g} at most"),
            ("C4m", "fall of j⟨w, ν⟩", m.every("feature_fall", arm="fomaml"), "0 at most"),
            ("C4n", "rise of j⟨w, ν⟩ − Jγ‖ν‖²", m.every("feature_inner_excess", **inner), "0 at most"),
            ("C4o", "move of validation noise − Jγ max|⟨ξ, ξ_val⟩|", moved, "0 at most"),
        ]
    )
