"""Claims about Gaussian clusters: every centre is reached, and the clusters are told apart."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim("C4i", "networks on Gaussian clusters send a neuron to every centre (cos ≥ 0.7)", source="Figure 16")
def centres_covered(m: Measurements[Params]) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="25-4").at_least(0.7)


@part.claim("C4j", "so do they in 100 dimensions with four factors", source="Figure 16")
def centres_covered_wide(m: Measurements[Params]) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="100-4").at_least(0.7)


@part.claims_over(
    {
        "C4k": {"mixture": "25-4", "words": "25 dimensions, 4 factors"},
        "C4l": {"mixture": "100-4", "words": "100 dimensions, 4 factors"},
    },
    statement="training brings a neuron at least 0.2 nearer to every centre ({words})",
    source="Figure 16",
)
def centres_approached(m: Measurements[Params], *, mixture: str) -> Judgement:
    return m.final("smallest_rise", arm="mixture", mixture=mixture).named("smallest rise of a centre").at_least(0.2)


@part.claim(
    "C4m",
    "the five-factor mixture of 100 dimensions is covered too (cos ≥ 0.7)",
    source="Figure 16",
    when={"the five-factor mixture among the mixtures": lambda p: "100-5" in p.mixtures},
)
def centres_covered_five(m: Measurements[Params]) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="100-5").at_least(0.7)


@part.claim(
    "C4n", "and the clusters are told apart (test accuracy ≥ 0.9, 100 dimensions, four factors)", source="Figure 16"
)
def mixture_learned(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="mixture", mixture="100-4").at_least(0.9)
