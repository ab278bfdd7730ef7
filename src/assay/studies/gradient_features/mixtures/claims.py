"""Claims about mixtures of Gaussians: the means are found, by which thresholds, and both ways of training succeed."""

from __future__ import annotations

import numpy as np
import torch

from assay.lab import Exact, Judgement, Measurements, Values, combine, farthest

from ..theory import log_log_slope
from .arms import AXES, NOISE_RATIOS, NORMS, TAIL_DIMS, TAUS, Params, part

ROUNDING = 1e-5  # of single precision
COMPONENTS = 8  # of either mixture
UNEQUAL = tuple(ratio for ratio in NOISE_RATIOS if ratio < 1)
SIZES = {"100 dimensions, 512 neurons": lambda p: p.mixture_dim >= 100 and p.mixture_neurons >= 128}


@part.claims_over(
    {
        "C3a": {"layers": "both", "words": "training both layers for up to 100 steps"},
        "C3b": {"layers": "head", "words": "a head on the frozen first layer"},
    },
    statement="On four XOR axes with noise 1, {words} after one gradient step errs on less than 0.5 % of inputs.",
    source="Mixtures of Gaussians; main theorems: both ways of training reach OPT and a slack",
    when=SIZES,
)
def mixture_learned(m: Measurements[Params], *, layers: str) -> Judgement:
    return m.final("error", arm="mixture-training", kind="multi-xor", layers=layers).below(0.005)


@part.claim(
    "C3m",
    "On four XOR axes with noise 1, training both layers for up to 100 steps after one gradient step leaves no "
    "component behind: the worst of the eight errs on less than 0.5 % of its inputs.",
    source="Mixtures of Gaussians; the criterion on all inputs, held to each component",
    when=SIZES,
)
def no_component_left(m: Measurements[Params]) -> Judgement:
    found = [
        m.final("component_error", arm="mixture-training", kind="multi-xor", component=j + 1) for j in range(COMPONENTS)
    ]
    return combine(max, found, "error on the worst component").below(0.005)


@part.claim(
    "C4r",
    "On four XOR axes a neuron's exact first gradient is the same at the threshold b and at −b, since E[yx] = 0.",
    source="Mixtures of Gaussians: G(−w, −b) = E[yx] − G(w, b), and the law is even in x",
)
def both_signs(m: Measurements[Params]) -> Judgement:
    apart = m.every("signs_apart", arm="mixture-gradients", kind="multi-xor")
    return apart.named("largest ‖G(w, b) − G(w, −b)‖ / largest ‖G‖").at_most(0, tolerance=ROUNDING)


@part.claim(
    "N10",
    "On eight orthogonal means no neuron with a negative threshold finds one of them, while those with positive ones "
    "do.",
    source="control: E[yx] ≠ 0, and always-active neurons see nothing else",
)
def negative_sees_mean(m: Measurements[Params]) -> Judgement:
    where = {"arm": "mixture-gradients", "kind": "orthogonal"}
    found = m.every("nice", threshold_sign="negative", **where)
    some = m.final("nice", threshold_sign="positive", **where)
    return found.named("share in a cone").at_most(0) if float(some.array.min()) > 0 else some.above(0)


@part.claim(
    "C4s",
    "On eight orthogonal means the median gradient of neurons with negative thresholds is nearer to E[yx] than to any "
    "mean.",
    source="derived: an always-active neuron has the gradient E[yx]",
)
def nearer_to_mean(m: Measurements[Params]) -> Judgement:
    where = {"arm": "mixture-gradients", "kind": "orthogonal", "threshold_sign": "negative"}
    gap = m.final("label_mean_cosine", **where) - m.final("median_cosine", **where)
    return gap.named("median cosine, E[yx] − nearest mean").above(0)


@part.claim(
    "C1n",
    "On an XOR mixture with less noise on one axis, a quarter or a half, one exact gradient step puts into the cone of "
    "every signed feature, with a norm above √d/5, at least m·p/4 of m neurons, where p is derived for each axis.",
    source="Lemma on the emergence of features, components of different spread; p by a sum over two weights",
)
def both_axes_emerge(m: Measurements[Params]) -> Judgement:
    found = m.every("nice_over_promise", arm="unequal-spread", ratio=list(UNEQUAL))
    return found.named("nice / (m·p/4)").at_least(1)


@part.claim(
    "C1o",
    "On XOR mixtures whose axes have noise of different sizes, the share of exact first gradients in the cone of a "
    "feature, with a norm above √d/5 or with any, is the derived one within a tenth, on either axis.",
    source="derived: two weights and the length of the others decide where a gradient lies, whatever the spreads",
)
def shares_as_derived(m: Measurements[Params]) -> Judgement:
    gaps = [
        m.final("caught_over_derived", arm="unequal-spread", ratio=ratio, axis=axis, norm=norm) - 1
        for norm in NORMS
        for ratio in UNEQUAL
        for axis in AXES
    ]
    worst = farthest(0, gaps, "share / derived share − 1, the case whose mean is farthest off")
    return worst.equals(0, within=0.1, because="a tenth, as with equal noise: the other weights' length is typical")


@part.claim(
    "X25",
    "On an XOR mixture with less noise on one axis, more exact first gradients find that axis, with a norm above √d/5, "
    "than the noisier one.",
    source="derived: with less noise a threshold parts inputs sharply, and a whole component stays in the gradient",
)
def sharper_axis_leads(m: Measurements[Params]) -> Judgement:
    return combine(min, _leads(m, "above the floor"), "share, sharper − noisier axis, least over the ratios").above(0)


@part.claim(
    "X26",
    "On an XOR mixture with less noise on one axis, more exact first gradients point at the noisier axis when those of "
    "any norm count: direction and norm rank the features differently.",
    source="derived: below the threshold the sharper axis adds nothing, and a small gradient is all the other's",
)
def noisier_axis_turns_more(m: Measurements[Params]) -> Judgement:
    return combine(max, _leads(m, "any"), "share of any norm, sharper − noisier axis, most over the ratios").below(0)


def _leads(m: Measurements[Params], norm: str) -> list[Values]:
    return [
        m.final("caught", arm="unequal-spread", ratio=ratio, norm=norm, axis="sharper")
        - m.final("caught", arm="unequal-spread", ratio=ratio, norm=norm, axis="noisier")
        for ratio in UNEQUAL
    ]


@part.claim(
    "N21",
    "On an XOR mixture with equal noise on both axes, as many exact first gradients find the one as the other, up to a "
    "tenth of the derived share.",
    source="control: nothing tells the axes apart",
)
def equal_noise(m: Measurements[Params]) -> Judgement:
    where = {"arm": "unequal-spread", "ratio": 1.0, "norm": "above the floor"}
    first, second = (m.final("caught_over_derived", axis=axis, **where) for axis in AXES)
    return (
        (first - second)
        .named("difference / derived share")
        .equals(0, within=0.1, because="the margin of the shares themselves")
    )


@part.claim(
    "C4u",
    "On XOR mixtures with noise 1 and means of norm 4√(τ·log d), the oracle's exact hinge loss falls like d^(−τ/2) "
    "from 10⁴ to 10⁸ dimensions: its exponent over τ is −1/2 within 0.05, for τ = 8, 12 and 16.",
    source="Mixtures of Gaussians: the chance that a standard normal variable exceeds √(τ·log d)",
    printed="tails of order d^(−τ)",
)
def tail_exponent(m: Measurements[Params]) -> Judgement:
    dims = torch.tensor(TAIL_DIMS, dtype=torch.float64)
    off = []
    for tau in TAUS:
        losses = [m.exact("loss", arm="oracle-tails", tau=tau, dim=dim).value for dim in TAIL_DIMS]
        off.append(abs(log_log_slope(dims, torch.tensor(losses, dtype=torch.float64)) / tau + 0.5))
    # NumPy's maximum keeps what is not a number.
    return Exact(float(np.max(off)), "largest |exponent/τ + 1/2|").at_most(0.05)


@part.claim(
    "C4v",
    "On XOR mixtures with noise 1 and means of norm 4s, s = √(τ·log d), the oracle's exact hinge loss is at most "
    "Φ̄(s) + 3(φ(s) − sΦ̄(s))/s, at d = 10⁴ to 10⁸ and τ = 8, 12 and 16.",
    source="Mixtures of Gaussians: OPT is tiny; derived with the tails as they are, r = 4 components",
    printed="at most 3d^(−τ) + 4/(d^(0.9τ − 1)·√(τ·log d)), which the exact loss exceeds at each of these sizes",
)
def safe_bound(m: Measurements[Params]) -> Judgement:
    return m.every("loss_over_safe", arm="oracle-tails").named("loss / bound").at_most(1)


@part.claim(
    "X19",
    "On XOR mixtures with noise 1 and means of norm 4√(τ·log d), the oracle's exact hinge loss is above the printed "
    "bound 3d^(−τ) + 4/(d^(0.9τ − 1)·√(τ·log d)), at d = 10⁴ to 10⁸ and τ = 8, 12 and 16.",
    source="beyond the source: how far its tails of order d^(−τ) are from those of a Gaussian",
)
def stated_bound_broken(m: Measurements[Params]) -> Judgement:
    return m.every("loss_over_stated", arm="oracle-tails").named("loss / printed bound").at_least(1)
