"""What becomes of the neurons that one feature dominates at the start."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..theory import MARGIN
from .arms import Params, part

_PANELS = {
    "lucky_kept": "share that keep their feature",
    "lucky_share": "its share of energy in features",
    "lucky_norm_share": "its share of ‖w‖²",
}


def _rules(m: Measurements[Params]) -> dict[str, str]:
    """The rules of the bias in words."""
    return {"biased": f"bias {m.params.bias:g}‖w‖", "printed": "the proofs' bias", "unbiased": "no bias"}


@part.figure(
    "lucky-neurons",
    caption="Neurons that one feature dominates at the start (𝓜*_j), from the step at which biases are switched on, "
    "for three rules of the bias (mean and 95 % interval over seeds): how many still have it as their strongest "
    "feature, and its mean share of their energy in features and of their squared norm. Without a bias nothing makes a "
    "neuron specialise on it.",
    shows=("C2a", "C2b", "N2", "C2c"),
)
def lucky_neurons(m: Measurements[Params]) -> alt.HConcatChart:
    rules, parts = _rules(m), []
    for metric, title in _PANELS.items():
        rows = m.rows(metric, arm="lucky").with_columns(bias=pl.col("rule").replace_strict(rules))
        frame = charts.summarise(rows, "bias", "step")
        parts.append(charts.band(frame, x="step", y=title, colour="bias", domain=(0, 1), width=210, height=210))
    return alt.hconcat(*parts)


@part.table(
    "stage-two",
    caption="What stages two and three bound, by the rule of the bias: at T₂, when some neuron's squared norm has "
    "grown d-fold since biases were switched on (T₁), and at the end of training. 𝓜*_j are neurons that feature j "
    "dominates at the start, 𝓜_j those that have much of it; α is a projection on a feature, b the bias, γ = 0.1. "
    "Means over seeds with 95 % intervals; the first two rows from the least to the largest seed. Expected of the bias "
    "that the claims name.",
    shows=("C2g", "C2d", "C2e", "C2h", "C2k", "C2i", "C2l", "C3n"),
)
def stage_two(m: Measurements[Params]) -> pl.DataFrame:
    over, under = math.sqrt(1 + MARGIN), math.sqrt(1 - MARGIN)
    every = {
        "stage_two_reached": ("C2g", "T₂ is reached (1) or not (0)", "1"),
        "ordinary_over_lucky": ("C2d", "largest projection of other neurons/of 𝓜*_j, at the end", "2 at most"),
    }
    mean = {
        "stage_two_growth": ("C2e", "smallest |α(T₂)|²/‖w(T₁)‖² in 𝓜*_j", "2 at least"),
        "lucky_over_bias": ("C2h, C2k", "smallest |α|/b in 𝓜*_j at T₂", f"{over:.3f} at least"),
        "outsider_over_bias": ("C2i, C2l", "largest |α|/b outside 𝓜_j at T₂", f"{under:.3f} at most"),
        "weak_rms": ("C3n", "RMS of weak coefficients × √d/‖w‖, median neuron, at the end", "0.5 at most"),
    }
    rows = []
    for metric, (claim, what, expected) in {**every, **mean}.items():
        row = {"claim": claim, "quantity": what}
        for rule, name in _rules(m).items():
            where = dict(arm="lucky", rule=rule)
            if metric.endswith("over_bias") and rule == "unbiased":
                row[name] = "–"
                continue
            row[name] = charts.measured(m.every(metric, **where) if metric in every else m.final(metric, **where))
        rows.append({**row, "expected": expected})
    return pl.DataFrame(rows)
