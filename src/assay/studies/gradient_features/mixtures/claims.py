"""Claims about mixtures of Gaussians: the means are found, by which thresholds, and both ways of training succeed."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part

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
    "C4r",
    "On four XOR axes both threshold signs find the means: their shares of gradients in cones agree within a fifth.",
    source="Mixtures of Gaussians: E[yx] = 0, so mirrored neurons have opposite gradients",
)
def both_signs(m: Measurements[Params]) -> Judgement:
    shares = {
        sign: m.final("nice", arm="mixture-gradients", kind="multi-xor", threshold_sign=sign)
        for sign in ("positive", "negative")
    }
    ratio = (shares["negative"] / shares["positive"]).named("share, negative / positive")
    return ratio.equals(1, within=0.2, because="a fifth, several standard errors of shares of 4,096 neurons")


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
