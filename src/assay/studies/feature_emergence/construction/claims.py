"""C1: the constructed network is exact, and its weights are as small as the lemma says."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import Patterns
from .arms import part


@part.claim(
    "C1",
    "A network of 3(k+1) neurons along the sum of the k relevant patterns outputs any label of their count exactly.",
    source="Lemma on representability; 100 random cases per seed",
)
def representable(m: Measurements[Patterns]) -> Judgement:
    return m.every("largest_error", arm="good-network").named("|g − y|").at_most(0, tolerance=1e-9)


@part.claim(
    "C1b",
    "The output weights of the constructed network are at most 32 times the number of relevant patterns (32k).",
    source="Lemma on representability; a number of the construction",
)
def representable_outputs(m: Measurements[Patterns]) -> Judgement:
    return m.exact("output_per_pattern", arm="good-network", family="orthonormal").named("|a*|/k").at_most(32)


@part.claim(
    "C1c",
    "The biases of the constructed network are at least 1/(32k) in modulus, for k relevant patterns and any label set.",
    source="Lemma on representability; 100 random cases per seed",
)
def representable_biases(m: Measurements[Patterns]) -> Judgement:
    return m.every("bias_share_of_bound", arm="good-network").named("32k|b*|").at_least(1, tolerance=1e-9)


@part.claim(
    "C1d",
    "For the general family of inputs the output weights of the constructed network are at most 128k.",
    source="Lemma on representability of the general family; a number of the construction",
    printed="they are at most 64k, which the hats that a mean count on a half-integer needs exceed",
)
def representable_outputs_general(m: Measurements[Patterns]) -> Judgement:
    return m.exact("output_per_pattern", arm="good-network", family="general").named("|a*|/k").at_most(128)
