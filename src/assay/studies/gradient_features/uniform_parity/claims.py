"""Claims about uniform parities: exact gradients, what they teach, and how many samples stand in for them."""

from __future__ import annotations

from collections.abc import Sequence

from assay.lab import Judgement, Measurements, combine, farthest, pool

from .arms import Params, part
from .theory import promised_neurons

HEADS = {"heads on 6,000 samples or more": lambda p: p.head_samples >= 6000}
FOUR = {**HEADS, "parities of 4 signs among the sizes": lambda p: 4 in p.parity_sizes}
SIX = {**HEADS, "parities of 6 signs among the sizes": lambda p: 6 in p.parity_sizes}
TWO = {**HEADS, "parities of 2 signs among the sizes": lambda p: 2 in p.parity_sizes}


def _width(size: int) -> str:
    """As many random features as the network with the promised number m has neurons, 4m."""
    return f"{4 * promised_neurons(size):,}"


@part.claim(
    "C4j",
    "On a uniform parity of 4 of 11 signs, the closed form of the first gradient equals full enumeration at the "
    "thresholds −0.75, 0 and 0.75.",
    source="Uniform parity case",
    printed="without the factor 1/2, and with ξ_{k−1} in place of ξ_{k+1} off the relevant coordinates",
)
def exact_gradients(m: Measurements[Params]) -> Judgement:
    return m.every("error", arm="parity-gradients").named("largest relative error").at_most(0, tolerance=1e-9)


@part.claim(
    "C4k",
    "On the parity of 4 of 11 uniform signs every neuron's enumerated gradient has the predicted cosine, up to its "
    "sign, with the neuron's own signs on the four.",
    source="Uniform parity case; cosine (1 + (k − 1)²/(k(d − k)))^(−1/2)",
    printed="asks for neurons whose signs are constant on all coordinates",
)
def exact_cosines(m: Measurements[Params]) -> Judgement:
    return m.every("cosine_off", arm="parity-gradients").named("largest difference").at_most(0, tolerance=1e-9)


@part.claims_over(
    {
        "C4l": {"size": 2, "dim": 51, "when": TWO},
        "C4m": {"size": 4, "dim": 31, "when": FOUR},
        "C4t": {"size": 6, "dim": 73, "when": SIX},
    },
    statement="On the parity of {size} of {dim} uniform signs, a head after one exact gradient step reaches 99 % with "
    "m = k·2^k·log(20k).",
    source="Uniform parity case, algorithm C",
)
def parity_learned(m: Measurements[Params], *, size: int) -> Judgement:
    return m.final("test_accuracy", arm="exact-parity", size=size, network="promised").above(0.99)


@part.claim(
    "C4n",
    "On the parity of 4 of 31 uniform signs, neurons with constant signs on the relevant four are not needed: without "
    "them 99 % as well.",
    source="Uniform parity case; the product of x_A is a function of ⟨w_A, x_A⟩ for every sign vector w_A",
    printed="the gradient feature is the indicator of A, which 2^(1−k) of the neurons see",
    when=FOUR,
    headline=True,
)
def constant_not_needed(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="exact-parity", size=4, network="promised, none constant").above(0.99)


@part.claims_over(
    {
        "C4w": {"size": 2, "dim": 51, "when": TWO},
        "C4x": {"size": 4, "dim": 31, "when": FOUR},
        "C4y": {"size": 6, "dim": 73, "when": SIX},
    },
    statement="On the parity of {size} of {dim} uniform signs, a head after one exact gradient step from normal "
    "outputs and thresholds of one size, ±b̃, reaches 99 % with m = k·2^k·log(20k).",
    source="Uniform parity case, alternative analysis: the spread of the outputs stands in for many thresholds",
)
def one_threshold_learns(m: Measurements[Params], *, size: int) -> Judgement:
    return m.final("test_accuracy", arm="one-threshold", size=size, outputs="normal").above(0.99)


@part.claim(
    "N20",
    "On the parity of 4 of 31 uniform signs, from outputs ±1 and thresholds ±b̃ a head after one exact gradient step "
    "stays below 60 % where every switch lies at the root of a neuron's correlation with the parity.",
    source="control, derived: E[∏_A x_l·max(0, ⟨ŵ, x⟩ − κ)] is 0 at one κ, and nothing spreads the switches around it",
    when=FOUR,
)
def coinciding_switches_are_blind(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="one-threshold", size=4, outputs="signs").below(0.6)


@part.claim(
    "C4o",
    "On the parity of 4 of 31 uniform signs 16 neurons (m = 2^(k − 2) = 4 and their mirror images) fail: a head after "
    "one exact gradient step stays below 90 %.",
    source="Uniform parity case: m has to grow with k (with 2^k in the source, which C4n answers)",
    when=FOUR,
)
def few_neurons(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="exact-parity", size=4, network="2^(k-2)").below(0.9)


@part.claims_over(
    {
        "C5o": {"size": 2, "dim": 51, "width": _width(2), "when": TWO},
        "C5p": {"size": 4, "dim": 31, "width": _width(4), "when": FOUR},
        "C5u": {"size": 6, "dim": 73, "width": _width(6), "when": SIX},
    },
    statement="On the parity of {size} of {dim} uniform signs, heads on {width} random ReLU or Fourier features "
    "(4·k·2^k·log(20k), k = {size}), penalties tuned, stay below 60 %.",
    source="Uniform parity case: fixed features",
)
def fixed_features_fall_short(m: Measurements[Params], *, size: int) -> Judgement:
    found = [m.final("test_accuracy", arm="fixed-parity", size=size, method=name) for name in ("relu", "fourier")]
    return combine(max, found, "better of the two").below(0.6)


@part.claim(
    "X4",
    "On uniform parities the samples that gradients need scale as d/ξ²: the median cosine is the predicted function "
    "of n·ξ²/d.",
    source="derived: each coordinate of a sampled gradient has variance 1/(2n), and there are d of them",
    when={"dimensions from 31 on": lambda p: p.sampled_dims[0] >= 31},
)
def collapse(m: Measurements[Params]) -> Judgement:
    return _collapse(m, "sampled-parity", m.params.sampled_dims)


@part.claim(
    "X11",
    "On uniform parities of 6 signs the median cosine of sampled gradients is the predicted function of n·ξ²/d.",
    source="derived as for 4 signs",
)
def collapse_six(m: Measurements[Params]) -> Judgement:
    return _collapse(m, "sampled-parity-six", m.params.six_dims)


def _collapse(m: Measurements[Params], arm: str, dims: Sequence[int]) -> Judgement:
    gaps = [
        m.final("median_cosine", arm=arm, dim=dim, ratio=ratio)
        - m.final("predicted_cosine", arm=arm, dim=dim, ratio=ratio)
        for dim in dims
        for ratio in m.params.sample_ratios
    ]
    reason = "a twentieth, set before any run: the formula drops the spread of norms, of order 1/√d"
    worst = farthest(0, gaps, "cosine − prediction, mean farthest off")
    return worst.equals(0, within=0.05, because=reason)


@part.claim(
    "C4p",
    "On the parity of 4 uniform signs, accuracy after one sampled gradient step is higher with the most samples tried "
    "than with the fewest, at every dimension.",
    source="Uniform parity case: n of order d·C(d, k − 1)",
    when={"two numbers of samples or more": lambda p: len(p.sample_ratios) > 1},
)
def more_samples(m: Measurements[Params]) -> Judgement:
    few, many = m.params.sample_ratios[0], m.params.sample_ratios[-1]
    rises = [
        m.final("test_accuracy", arm="sampled-parity", dim=dim, ratio=many)
        - m.final("test_accuracy", arm="sampled-parity", dim=dim, ratio=few)
        for dim in m.params.sampled_dims
    ]
    # Accuracies are shares of the test inputs: half of one input is the least that is above 0.
    return pool(rises, "accuracy at most samples − at fewest").at_least(0.5 / m.params.test_samples)
