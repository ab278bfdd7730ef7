"""C1: the constructed network is exact, and its weights are as small as the lemma says."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import Patterns
from .arms import part


@part.claim(
    "C1",
    "a network of 3(k+1) neurons along the sum of the relevant patterns outputs the label exactly",
    source="Lemma on representability; any label set, 100 random cases per seed",
)
def representable(m: Measurements[Patterns]) -> Judgement:
    return m.every("largest_error", arm="good-network").named("|g − y|").at_most(0, tolerance=1e-9)


@part.claim("C1b", "its output weights stay within 32k", source="Lemma on representability")
def representable_outputs(m: Measurements[Patterns]) -> Judgement:
    return m.every("output_share_of_bound", arm="good-network").named("|a*|/(32k)").at_most(1, tolerance=1e-9)


@part.claim("C1c", "its biases are at least 1/(32k) in modulus", source="Lemma on representability")
def representable_biases(m: Measurements[Patterns]) -> Judgement:
    return m.every("bias_share_of_bound", arm="good-network").named("32k|b*|").at_least(1, tolerance=1e-9)
