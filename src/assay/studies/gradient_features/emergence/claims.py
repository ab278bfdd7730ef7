"""Claims about the first gradients: they point at features, in the promised numbers, and samples suffice to see it."""

from __future__ import annotations

from statistics import fmean

import polars as pl

from assay.lab import Judgement, Measurements, Values, combine, farthest

from ..theory import log_log_slope
from .arms import SIGNS, Params, part, promised_sign
from .learners import SAMPLED

WIDE = {"an XOR mixture with two dimensions or more in the grid": lambda p: len(p.xor_dims) > 1}


def _slope(rows: pl.DataFrame, over: str) -> float:
    return log_log_slope(rows[over].cast(pl.Float64).to_torch(), rows["value"].to_torch())


@part.claim(
    "C1a",
    "On the XOR mixture one exact gradient step puts into the cone of every signed feature, with a norm above the "
    "floor √d/5, at least the promised number of neurons: m·p/4 of m, where p is derived and not counted.",
    source="Lemma on the emergence of features: probability at least 1 − 2r·exp(−c·m·p); p by a sum over two weights",
    headline=True,
)
def nice_neurons(m: Measurements[Params]) -> Judgement:
    return m.every("nice_over_promise", arm="xor-gradients", labels="true").named("nice / (m·p/4)").at_least(1)


@part.claim(
    "C1k",
    "On the XOR mixture the share of exact first gradients in the cone of a feature, with a norm above the floor √d/5, "
    "is the derived p within a tenth, at every dimension.",
    source="derived: two weights and the length of the others decide where a gradient lies",
)
def share_as_derived(m: Measurements[Params]) -> Judgement:
    gaps = []
    for dim in m.params.xor_dims:
        where = {"arm": "xor-gradients", "labels": "true", "dim": dim}
        both = [m.final("caught_over_derived", threshold_sign=sign, **where) for sign in SIGNS]
        gaps.append(combine(fmean, both, "both signs") - 1)
    worst = farthest(0, gaps, "share / derived p − 1, the dimension whose mean is farthest off")
    return worst.equals(0, within=0.1, because="a tenth: the length of the other weights is taken to be typical")


@part.claim(
    "C1l",
    "The median first gradient has a cosine above 0.95 with a feature on linear data (negative thresholds; normal, "
    "heavy-tailed or low-rank noise) and on a block parity, above 0.6 with a polynomial's space, and is nearer than "
    "the start to those of orthogonal means and four XOR axes.",
    source="Emergence of features in the other cases; the numbers are the criteria of the design",
)
def median_turns_in_every_case(m: Measurements[Params]) -> Judgement:
    margins = [_median(m, case, "after") - (0.6 if case == "polynomial" else 0.95) for case in SAMPLED]
    margins += [_median(m, case, "after") - _median(m, case, "before") for case in ("orthogonal", "multi-xor")]
    return combine(min, margins, "median cosine − what is asked, least over the cases").above(0)


def _median(m: Measurements[Params], case: str, which: str) -> Values:
    return m.final(f"median_{which}", arm="first-gradients", case=case, threshold_sign=promised_sign(case))


@part.claim(
    "N16",
    "With the labels of other samples the median first gradient stays nearer to its cosine at the start than to that "
    "with its own labels, on linear data, a block parity and a polynomial.",
    source="control: gradients of noise turn, too, but not as far (X1)",
)
def shuffled_labels_turn_less(m: Measurements[Params]) -> Judgement:
    over = [
        _median(m, case, "shuffled") - 0.5 * (_median(m, case, "before") + _median(m, case, "after"))
        for case in SAMPLED
    ]
    return combine(max, over, "median cosine, shuffled − halfway, most over the cases").below(0)


@part.claim(
    "C1m",
    "On the parity of 4 of 31 uniform signs an eighth of all exact first gradients, 2^(1 − k), lies within the cone of "
    "the feature.",
    source="Uniform parity case: neurons whose signs agree on the relevant coordinates",
)
def an_eighth_on_parity(m: Measurements[Params]) -> Judgement:
    found = m.final("caught", arm="first-gradients", case="uniform parity", threshold_sign="positive")
    return found.equals(1 / 8, within=0.0125, because="a tenth of it")


@part.claim(
    "C1b",
    "One exact gradient turns the median neuron of a random start towards the features of the XOR mixture, at every "
    "dimension.",
    source="Lemma on the emergence of features",
)
def median_turns(m: Measurements[Params]) -> Judgement:
    rises = [
        m.final("median_after", arm="xor-gradients", labels="true", dim=dim, threshold_sign=sign)
        - m.final("median_before", arm="xor-gradients", labels="true", dim=dim, threshold_sign=sign)
        for dim in m.params.xor_dims
        for sign in ("positive", "negative")
    ]
    return combine(min, rises, "least rise of the median cosine").above(0)


@part.claim(
    "C1c",
    "On the XOR mixture the part of exact first gradients outside the span of the features shrinks like d^(−1/2) "
    "(slope within 0.1).",
    source="derived: G has σ·|Σ_j p_j y_j φ(α_j)| = O(1) outside the span and the order of ‖μ‖ = √d within",
    printed="a cone of width σ_B/√d, which allows a part outside of order d^(−1/4)",
    when={"three dimensions or more in the grid": lambda p: len(p.xor_dims) > 2},
)
def outside_shrinks(m: Measurements[Params]) -> Judgement:
    rows = m.rows("outside_span", arm="xor-gradients", labels="true", threshold_sign="positive")
    slopes = m.per_seed(rows, lambda part: _slope(part, "dim"), "log-log slope of the part outside over d", by="dim")
    return slopes.equals(-0.5, within=0.1, because="a tenth, set before any run")


@part.claim(
    "X9",
    "On the XOR mixture the share of exact first gradients near a feature (cosine above 0.9, positive thresholds) is "
    "the same at the largest d tried as at the smallest, within 0.05.",
    source="derived: threshold and ⟨w, μ⟩ both scale as √d, so the angle within the span has no scale",
    when=WIDE,
)
def share_stays(m: Measurements[Params]) -> Judgement:
    first, last = (
        m.final("near_after", arm="xor-gradients", labels="true", dim=m.params.xor_dims[at], threshold_sign="positive")
        for at in (0, -1)
    )
    reason = "a twentieth of all neurons; added after a first look had shown no rise"
    return (last - first).named("share at the largest − at the smallest d").equals(0, within=0.05, because=reason)


@part.claim(
    "N1",
    "With random labels on the XOR mixture, sampled first gradients stay below the norm floor √d/5 that counts as a "
    "feature.",
    source="control: labels drawn by coin; the floor B_G of the XOR case",
)
def random_labels(m: Measurements[Params]) -> Judgement:
    found = m.rows("above_floor", arm="xor-gradients", labels="shuffled", threshold_sign="positive")
    real = m.rows("above_floor", arm="xor-gradients", labels="true", threshold_sign="positive")
    rows = found.join(real.select("seed", "dim", true=pl.col("value")), on=["seed", "dim"])
    gap = rows.with_columns(value=pl.col("true") - pl.col("value"))
    what = "least lead of true labels in the share above the floor, where random ones have none"
    none = float(found["value"].to_numpy().max()) == 0
    return m.per_seed(gap, lambda part: part["value"].min() if none else -1.0, what, by="dim").above(0)


@part.claim(
    "X1",
    "With random labels on the XOR mixture, sampled first gradients still turn towards its features: direction alone "
    "is no evidence.",
    source="derived: sampling noise has the covariance of the inputs, which is largest along the means",
)
def noise_has_directions(m: Measurements[Params]) -> Judgement:
    rises = [
        m.final("median_after", arm="xor-gradients", labels="shuffled", dim=dim, threshold_sign="positive")
        - m.final("median_before", arm="xor-gradients", labels="shuffled", dim=dim, threshold_sign="positive")
        for dim in m.params.xor_dims
    ]
    return combine(min, rises, "least rise of the median cosine").above(0)


@part.claims_over(
    {"C1d": {"mixture": "xor", "words": "the XOR mixture"}, "C1e": {"mixture": "multi-xor", "words": "four XOR axes"}},
    statement="On {words}, sampled first gradients approach the exact ones like n^(−1/2): the log-log slope is −0.5 "
    "within 0.1.",
    source="Lemma on empirical gradients, which proves n^(−1/3)",
    when={"three numbers of samples or more": lambda p: len(p.sampled) > 2},
)
def rate(m: Measurements[Params], *, mixture: str) -> Judgement:
    rows = m.rows("deviation", arm="sampled-gradients", mixture=mixture)
    slopes = m.per_seed(
        rows, lambda part: _slope(part, "samples"), "log-log slope of the largest deviation over n", by="samples"
    )
    return slopes.equals(-0.5, within=0.1, because="the criterion −0.6 to −0.4 of the design")


@part.claim(
    "C1f",
    "On XOR mixtures no first gradient of n samples deviates from the exact one by more than √(E‖x‖²)·n^(−1/3), the "
    "proven bound with constant 1, at any n tried.",
    source="Lemma on empirical gradients",
)
def bound(m: Measurements[Params]) -> Judgement:
    return m.every("over_bound", arm="sampled-gradients").named("deviation / bound").at_most(1)


@part.claim(
    "C1j",
    "No first gradient in a cone of width γ leaves that of width γ + β/B_G when samples of an XOR mixture replace its "
    "law.",
    source="Lemma on empirical gradients: the set of gradient features is included in the sampled one; with β the "
    "deviation that came out, and β/B_G below 0.9, geometry alone: it checks the code",
)
def included(m: Measurements[Params]) -> Judgement:
    return m.every("escaped", arm="sampled-gradients").named("gradients that leave").at_most(0)


@part.claim(
    "C4a",
    "On linear data, large thresholds bring always-active neurons to the true direction as near as sampling allows "
    "(within a factor 3).",
    source="Linear case: γ shrinks with the threshold, to the sampling floor (d − 1)/(2nρ²)",
)
def linear_floor(m: Measurements[Params]) -> Judgement:
    p = m.params
    floor = (p.linear_dim - 1) / (2 * p.linear_samples)
    off = m.final("off_negative", arm="linear", threshold_ratio=8.0)
    return (off / floor).named("(1 − cosine) / floor").between(1 / 3, 3)


@part.claim(
    "C4b",
    "On linear data, neurons with thresholds far below all inputs point nearer at the true direction than those with "
    "threshold 0.",
    source="Linear case",
)
def linear_threshold(m: Measurements[Params]) -> Judgement:
    near = m.final("off_negative", arm="linear", threshold_ratio=8.0)
    return (m.final("off_negative", arm="linear", threshold_ratio=0.0) - near).named("1 − cosine, 0 − 8").above(0)


@part.claim(
    "C4c",
    "On linear data a head on the features of one gradient step errs on less than 1 % of inputs.",
    source="Linear case: OPT = 0",
    when={"linear data with the margin known to 100 dimensions": lambda p: p.linear_samples >= 10 * p.linear_dim},
)
def linear_error(m: Measurements[Params]) -> Judgement:
    return m.final("error", arm="linear", threshold_ratio=8.0).below(0.01)


@part.claim(
    "C1g",
    "On linear data the median always-active neuron has cosine above 0.95 with the true direction after one step.",
    source="Linear case: (w*, −1) is a gradient feature with p = 1/2",
    when={"20 samples per dimension": lambda p: p.linear_samples >= 20 * p.linear_dim},
)
def linear_cosine(m: Measurements[Params]) -> Judgement:
    return m.final("median_cosine", arm="linear", threshold_ratio=8.0).above(0.95)


@part.claim(
    "N2",
    "On linear data, neurons with a positive threshold of 8 typical projections see no input and get no gradient.",
    source="control; derived: inputs are within 1.3 typical norms, so ⟨w, x⟩ would need 6 deviations: 1e-9 per pair",
)
def linear_dead(m: Measurements[Params]) -> Judgement:
    return m.every("dead_positive", arm="linear", threshold_ratio=8.0).named("share of dead neurons").at_least(1)
