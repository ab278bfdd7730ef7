"""C1: the constructed network is exact, and its biases are as large and its weights as small as the lemmas say."""

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
    "C1c",
    "The network of 3(k+1) neurons constructed to output any label of a count of k patterns has biases of at least "
    "1/(32k) in modulus.",
    source="Lemma on representability; 100 random cases per seed",
)
def representable_biases(m: Measurements[Patterns]) -> Judgement:
    return m.every("bias_share_of_bound", arm="good-network").named("32k|b*|").at_least(1, tolerance=1e-9)


@part.claim(
    "C1d",
    "For the general family of inputs, the network of 3(k+1) neurons constructed to output any label of a count of k "
    "patterns has output weights of at most 128k.",
    source="Lemma on representability of the general family; a number of the construction",
    printed="they are at most 64k, which the hats that a mean count on a half-integer needs exceed",
)
def representable_outputs_general(m: Measurements[Patterns]) -> Judgement:
    return m.exact("output_per_pattern", arm="good-network", family="general").named("|a*|/k").at_most(128)
