"""Figures 2 to 5 of the source redrawn, and what planning says of the sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts
from assay.methods.contrastive_planning import Descent, growth_factors, learnability_threshold
from assay.methods.loss_floor import loss_floor

from ..figures import against_frequency
from ..theory import pair_correlations
from .arms import Params, part

_RARE = "ε of rare features"


@part.figure(
    "alignment",
    caption="Figures 2 and 3: number of neurons with |cos| ≥ 0.3 per rare feature (left) and the largest |cos| (right) "
    "over ε, per noise level (mean and 95 % interval over seeds; the levels nearly coincide).",
    shows=("C7a", "C7b", "C7c", "C7d"),
)
def alignment(m: Measurements[Params]) -> alt.HConcatChart:
    return alt.hconcat(
        _sweep(m, "aligned", "aligned neurons per rare feature", m.params.noise, arm="alignment"),
        _sweep(m, "best", "largest |cos| with a rare feature", m.params.noise, arm="alignment"),
    )


@part.figure(
    "frequency",
    caption="What the frequency ε of rare features changes besides their own neurons (mean and 95 % interval over "
    "seeds). Left, the control: the number of neurons with |cos| ≥ 0.3 per frequent feature, which should not rise. "
    "Right: coefficients of rare features over those of frequent ones at the middle noise level; by the theory they "
    "are ε (solid grey) within constants (dashed: a factor 2).",
    shows=("C3g", "N8"),
)
def frequency(m: Measurements[Params]) -> alt.HConcatChart:
    middle = m.params.noise[len(m.params.noise) // 2]
    count = _sweep(m, "frequent_aligned", "aligned neurons per frequent feature", m.params.noise, arm="alignment")
    rows = m.rows("energy_ratio", arm="alignment", nsr=middle)
    return alt.hconcat(count, against_frequency(rows, "rare/frequent coefficient", exponent=1, factor=2))


@part.figure(
    "representation",
    caption="Figures 4 and 5: mean cosine of positive test pairs (left) and test error of a linear head (right) over "
    "ε, per noise level, on samples in which all features are equally frequent.",
    shows=("C7e", "C7f", "C7g", "C7h", "C7i"),
)
def representation(m: Measurements[Params]) -> alt.HConcatChart:
    where = dict(arm="representation", test="balanced")
    figure: alt.HConcatChart = alt.hconcat(
        _sweep(m, "pair_cosine", "cosine of positive pairs", m.params.noise_of_figure_4, **where),
        _sweep(m, "regression_error", "mean squared error", m.params.noise_of_figure_5, **where),
    ).resolve_scale(color="independent")
    return figure


@part.figure(
    "tests",
    caption="Why the tests are balanced: the same encoders on test samples with rare features as rare as in training. "
    "There the error is no measure of how well rare features are learned: the rarer they are, the less they count, and "
    "the less rare, the better they are learned, so that it is largest in between.",
    shows=("N7",),
)
def tests(m: Measurements[Params]) -> alt.HConcatChart:
    nsr = m.params.noise_high[1]
    rows = m.rows(["pair_cosine", "regression_error"], arm="representation", nsr=nsr)
    parts = []
    for metric, title in (("pair_cosine", "cosine of positive pairs"), ("regression_error", "mean squared error")):
        frame = charts.summarise(rows.filter(metric=metric).sort("epsilon"), "test", "epsilon").rename(
            {"epsilon": _RARE}
        )
        parts.append(charts.band(frame, x=_RARE, y=title, colour="test", width=270, height=220))
    return alt.hconcat(*parts)


def _sweep(m: Measurements[Params], metric: str, y: str, noise: Sequence[float], **where: Any) -> alt.LayerChart:
    """Curves over ε, one for each noise level."""
    rows = m.rows(metric, nsr=list(noise), **where).with_columns(
        noise=pl.col("nsr").map_elements(lambda n: f"NSR {n:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("nsr", "epsilon"), "noise", "epsilon").rename({"epsilon": _RARE})
    chart: alt.LayerChart = charts.band(frame, x=_RARE, y=y, colour="noise", width=280, height=240)
    return chart


@part.table(
    "plan",
    caption="What the planning helpers say for the sweeps: growth factors, the rarest learnable ε, and the loss floor "
    "of perfect neurons with constant magnitudes and no noise.",
)
def plan(m: Measurements[Params]) -> pl.DataFrame:
    params = m.params
    problem = params.problem(params.dim)
    descent = Descent(params.rate, params.decay, params.temperature, params.batch)
    full = float(pair_correlations(problem, 1.0).max())
    rows = []
    for epsilon in params.rare:
        kappa = pair_correlations(problem, epsilon)[0]
        growth = growth_factors(kappa, descent)
        rows.append(
            {
                "ε": epsilon,
                "growth of frequent": round(float(growth[0]), 5),
                "growth of rare": round(float(growth[-1]), 5),
                "rarest learnable ε": round(learnability_threshold(descent) / full, 5),
                "loss floor": round(loss_floor(problem.rates(epsilon)[0].tolist(), params.batch - 1), 3),
            }
        )
    return pl.DataFrame(rows)
