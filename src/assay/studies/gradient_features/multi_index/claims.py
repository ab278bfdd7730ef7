"""Claims about polynomials of few directions: gradients see them through the mean Hessian, and only through it."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, combine, farthest

from .arms import KERNELS, Params, part
from .theory import noise_fraction

SIZES = {"50 dimensions or more, 1,000 neurons": lambda p: p.index_dim >= 50 and p.index_neurons >= 500}
TWICE = {**SIZES, "2d² samples in the grid": lambda p: 2.0 in p.index_ratios}
ONCE = {**SIZES, "d² samples in the grid": lambda p: 1.0 in p.index_ratios}
SEVERAL = {"several numbers of samples": lambda p: len(p.index_ratios) > 1}


@part.claim(
    "C1i",
    "With 2d² samples of a polynomial of three directions, the median first gradient has over 0.6 of its norm in "
    "their span.",
    source="Multi-index case: w ≈ √(2/π)·η·a·Hŵ",
    when=TWICE,
)
def gradients_see(m: Measurements[Params]) -> Judgement:
    return m.final("fraction", arm="multi-index", target="full", ratio=2.0, method="gradient").above(0.6)


@part.claim(
    "C4q",
    "With 2d² samples of a polynomial of three directions, a head on gradient features has a squared error below 0.25.",
    source="Multi-index case, algorithm D; the label has variance 1",
    when=TWICE,
)
def learned(m: Measurements[Params]) -> Judgement:
    return m.final("error", arm="multi-index", target="full", ratio=2.0, method="gradient").below(0.25)


@part.claim(
    "C5q",
    "With 2d² samples of a polynomial of three directions, gradient features have under 0.3 of the error of as many "
    "random ones.",
    source="Multi-index case: beyond kernels",
    when=TWICE,
)
def beats_random(m: Measurements[Params]) -> Judgement:
    where = {"arm": "multi-index", "target": "full", "ratio": 2.0}
    ratio = m.final("error", method="gradient", **where) / m.final("error", method="relu", **where)
    return ratio.named("error, gradient / random features").below(0.3)


@part.claim(
    "C5r",
    "With d² samples of a polynomial of three directions, gradient features have a smaller error than the best of four "
    "tuned kernels.",
    source="Multi-index case: beyond kernels; quadratic, cubic, RBF and tangent kernel, the best in every seed",
    when=ONCE,
    headline=True,
)
def beats_kernels(m: Measurements[Params]) -> Judgement:
    kernels = [m.final("error", arm="multi-index-kernels", method=name) for name in KERNELS]
    best = combine(min, kernels, "best kernel")
    ours = m.final("error", arm="multi-index", target="full", ratio=1.0, method="gradient")
    return (best - ours).named("error, best kernel − gradient features").above(0)


@part.claim(
    "N6",
    "Without a quadratic part, gradient features of a polynomial of three directions are not better than as many "
    "random ones by more than 0.05 in the squared error.",
    source="control: the mean Hessian is 0, and so is the population gradient",
)
def no_quadratic_no_gain(m: Measurements[Params]) -> Judgement:
    where = {"arm": "multi-index", "target": "no quadratic part", "ratio": m.params.index_ratios[-1]}
    gain = m.final("error", method="relu", **where) - m.final("error", method="gradient", **where)
    return gain.named("error, random − gradient features").at_most(0.05)


@part.claim(
    "N7",
    "Without a quadratic part, first gradients of a polynomial of three directions turn to them by at most 0.05 of "
    "their norm from the fewest samples tried to the most.",
    source="control: what alignment there is comes from sampling noise",
    when=SEVERAL,
)
def no_quadratic_no_rise(m: Measurements[Params]) -> Judgement:
    where = {"arm": "multi-index", "target": "no quadratic part", "method": "gradient"}
    few, many = (m.final("fraction", ratio=m.params.index_ratios[at], **where) for at in (0, -1))
    return (many - few).named("fraction, most − fewest samples").at_most(0.05)


@part.claim(
    "X5",
    "Without a quadratic part, first gradients of z₁z₂z₃ still have the share of their norm in its directions that "
    "sampling noise predicts, √(9/(d + 6)), within 0.1.",
    source="derived: the noise has covariance E[y²xxᵀ], three times larger along each direction",
    when={"50 dimensions or more": lambda p: p.index_dim >= 50},
)
def noise_sees(m: Measurements[Params]) -> Judgement:
    where = {"arm": "multi-index", "target": "no quadratic part", "method": "gradient"}
    predicted = noise_fraction(m.params.index_dim)
    gaps = [m.final("fraction", ratio=ratio, **where) - predicted for ratio in m.params.index_ratios]
    worst = farthest(0, gaps, "fraction − predicted, mean farthest off")
    return worst.equals(
        0, within=0.1, because="a tenth: a median lies below the root mean square, and y⁴ has heavy tails"
    )
