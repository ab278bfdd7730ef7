"""What several parts share: how the exact kernels that gradient features are compared with were tuned, and which of the
theory's assumptions their problems meet."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Measurements
from assay.methods.gradient_bounds import Assumption

from .block_parity.arms import CASES as BLOCKS
from .block_parity.arms import instance_of
from .fixed_features.arms import KERNELS
from .multi_index.arms import TARGETS
from .multi_index.problem import MultiIndex
from .problem import GaussianMixture, LinearData, mixture_of
from .study import Params, study
from .uniform_parity.arms import DIMENSIONS
from .uniform_parity.problem import UniformParity

_ARMS = {
    "xor-kernels": "XOR mixture",
    "parity-kernels": "parity of one block",
    "multi-index-kernels": "polynomial of three directions",
}


@study.table(
    "kernel-penalties",
    caption="Ridge penalties that validation chose for the exact kernels, over all seeds and sizes of each problem: "
    "the smallest and the largest choice, and how many choices lie at the first or last penalty of the grid and are "
    "better there than anywhere else, so that a wider grid might have helped the kernel.",
    shows=("N14",),
)
def kernel_penalties(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for arm, problem in _ARMS.items():
        chosen = m.rows("at_edge", arm=arm, method=list(KERNELS))
        for method in chosen["method"].unique(maintain_order=True):
            at_edge = chosen.filter(method=method)["value"].to_list()
            penalties = m.rows("penalty", arm=arm, method=method)["value"].to_list()
            rows.append(
                {
                    "problem": problem,
                    "kernel": method,
                    "penalties": f"{min(penalties):.2g} to {max(penalties):.2g}",
                    "at an edge": f"{sum(at_edge):.0f} of {len(at_edge)}",
                }
            )
    return pl.DataFrame(rows)


@study.table(
    "assumptions",
    caption="What the theory asks of each problem, at the sizes of this run, and whether it is met. Constants that the "
    "source leaves open are 1, or those of its proofs, and τ is 8, the least that it allows. In these dimensions most "
    "conditions with a logarithm are out of reach; the claims are judged without them.",
)
def assumptions(m: Measurements[Params]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "problem": problem,
                "assumption": line.name,
                "value": f"{line.value:.3g}",
                "limit": limit(line),
                "met": "yes" if line.met else "no",
            }
            for problem, lines in _reports(m.params).items()
            for line in lines
        ]
    )


def limit(line: Assumption) -> str:
    """The range of an assumption in words."""
    if math.isinf(line.high):
        return f"at least {line.low:.3g}"
    if line.low == line.high:
        return f"{line.low:.3g}"
    return f"at most {line.high:.3g}" if math.isinf(line.low) else f"{line.low:.3g} to {line.high:.3g}"


def _reports(params: Params) -> dict[str, tuple[Assumption, ...]]:
    """Every family by the instances that the parts use, the smallest and the largest where there are many."""
    found = {"linear data": LinearData(params.linear_dim, margin=0.5).assumptions()}
    for dim in dict.fromkeys((params.xor_dims[0], params.xor_dims[-1])):
        found[f"XOR mixture, d = {dim}"] = GaussianMixture.xor(dim, params.xor_noise).assumptions()
    hard = params.hard_dims[-1]
    deviation = math.sqrt(hard) / params.hard_ratio
    found[f"hard XOR mixture, d = {hard}"] = GaussianMixture.xor(hard, deviation).assumptions()
    for kind, words in {"orthogonal": "eight orthogonal means", "multi-xor": "four XOR axes"}.items():
        found[f"{words}, d = {params.mixture_dim}"] = mixture_of(kind, params.mixture_dim).assumptions()
    for instance in dict.fromkeys((params.instances[0], params.instances[-1])):
        one = instance_of(instance)
        found[f"parity of {one.size} of {one.dim}"] = one.assumptions()
    for case in ("plain", "loud background"):  # the third case is the first with another threshold
        found[f"three blocks, {case}"] = BLOCKS[case][0].assumptions()
    for size in params.parity_sizes:
        dim = DIMENSIONS[size]
        found[f"parity of {size} of {dim} uniform signs"] = UniformParity(dim, size).assumptions()
    for target, quadratic in TARGETS.items():
        index = MultiIndex(params.index_dim, quadratic=quadratic, strict=False)
        found[f"polynomial, {target}"] = index.assumptions()
    return found
