"""Claims about Gaussian clusters: every centre is reached, and the clusters are told apart."""

from __future__ import annotations

from collections.abc import Callable

from assay.lab import Judgement, Measurements

from .arms import Params, part


def _among(name: str) -> dict[str, Callable[[Params], bool]]:
    return {f"the mixture {name} (dimension and factors) among the mixtures": lambda p: name in p.mixtures}


@part.claims_over(
    {
        "C4i": {"mixture": "25-4", "clusters": 16, "dim": 25, "when": _among("25-4")},
        "C4j": {"mixture": "100-4", "clusters": 16, "dim": 100, "when": _among("100-4")},
        "C4m": {"mixture": "100-5", "clusters": 32, "dim": 100, "when": _among("100-5")},
    },
    statement="Trained on {clusters} Gaussian clusters in {dim} dimensions, a network has a neuron near every centre "
    "(cos at least 0.7).",
    source="Figure 16",
)
def centres_covered(m: Measurements[Params], *, mixture: str) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture=mixture).at_least(0.7)


@part.claims_over(
    {
        "C4k": {"mixture": "25-4", "dim": 25, "when": _among("25-4")},
        "C4l": {"mixture": "100-4", "dim": 100, "when": _among("100-4")},
    },
    statement="Training on 16 Gaussian clusters in {dim} dimensions brings some neuron nearer to every centre (by 0.2 "
    "in the cosine).",
    source="Figure 16",
)
def centres_approached(m: Measurements[Params], *, mixture: str) -> Judgement:
    return m.final("smallest_rise", arm="mixture", mixture=mixture).named("smallest rise of a centre").at_least(0.2)


@part.claim(
    "C4n",
    "A network trained on 16 Gaussian clusters in 100 dimensions reaches 90 % test accuracy on their labels.",
    source="Figure 16",
    when=_among("100-4"),
)
def mixture_learned(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="mixture", mixture="100-4").at_least(0.9)
