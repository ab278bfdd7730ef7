"""Claims about several parts."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .study import Params, study

ARMS = ("xor-kernels", "parity-kernels", "multi-index-kernels")
KERNELS = ("quadratic", "cubic", "rbf", "ntk")


@study.claim(
    "N14",
    "No exact kernel on XOR mixtures, parities or polynomials is best at the first or last penalty of its grid.",
    source="control: opponents whose tuning ends at an edge might have been better beyond it",
    when={"50 dimensions or more of the polynomial": lambda p: p.index_dim >= 50},
)
def penalties_inside(m: Measurements[Params]) -> Judgement:
    found = m.every("at_edge", arm=list(ARMS), method=list(KERNELS))
    return found.named("choices at an edge").at_most(0)
