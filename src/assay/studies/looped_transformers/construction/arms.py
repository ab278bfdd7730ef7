"""The construction: a masked linear-attention layer with weights set by hand, whose loops are gradient descent.

It is compared with its closed form and with descent, also on noisy targets; as controls one part of it is changed.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field

from assay import lab
from assay.methods.gradient_descent_rates import step_sizes
from assay.methods.looped_transformer import LoopedLinearTransformer, estimates
from assay.probes.gd_probe import gd_probe
from assay.training import Seeds

from ..params import Loops
from ..problem import LinearVectorGeneration
from ..theory import gradient_descent, layer_output

CASES = {"16 × 4, α = 1": (16, 4, 1.0), "32 × 4, α = −2.5": (32, 4, -2.5), "64 × 10, α = 0.3": (64, 10, 0.3)}
IDENTITY_LOOPS = 50
BROKEN: dict[str, dict[str, Any]] = {
    "none": {},
    "query reads itself": {"mask": "query_reads_all"},
    "causal mask": {"mask": "causal"},
    "P = I": {"value_output": "identity"},
}


class Params(Loops):
    noise: float = Field(0.5, gt=0, description="deviation of the label noise where there is some")


part = lab.Part("construction", params=Params)


@part.arm("identity", over={"case": list(CASES), "start": ["zero", "random"]}, uses=(), dtype="float64", tolerance=1e-9)
def identity(params: Params, seeds: Seeds, record: lab.Recorder, *, case: str, start: str) -> None:
    """The dense transformer against its closed form and against gradient descent, with steps drawn per loop."""
    n, dim, alpha = CASES[case]
    prompts = LinearVectorGeneration(n, dim, alpha).sample(seeds, f"identity {start}")
    begin = seeds.normal("start", dim) if start == "random" else torch.zeros_like(prompts.truth)
    matrix = prompts.matrix(begin)
    shares = (0.2 + 0.8 * seeds.uniform("steps", IDENTITY_LOOPS)).mT
    steps = shares * step_sizes("1/L", prompts.inputs, IDENTITY_LOOPS)
    model = LoopedLinearTransformer(dim, IDENTITY_LOOPS, steps, fast=False)
    states, layer = model.prompts(matrix), model.attention(matrix)
    printed = layer_output(prompts.inputs, prompts.targets, matrix[:, -1, :-1], alpha)
    descent = gradient_descent(prompts.inputs, prompts.targets, steps, begin)
    apart = estimates(states[..., -1, :], alpha) - descent
    frozen = torch.cat([states[..., :-1, :].flatten(2), states[..., -1, -1:]], -1)
    fit = gd_probe(states[..., -1, :-1], prompts.inputs, prompts.targets, alpha)
    record(
        layer_deviation=(layer - printed).abs().amax((1, 2)) / printed.abs().amax((1, 2)),
        loop_deviation=apart.abs().amax((0, 2)),
        rest_moved=(frozen - frozen[0]).abs().amax((0, 2)),
        probe_step_deviation=(fit.steps[:5] / steps[:5] - 1).abs().amax(0),
        probe_residual=fit.residuals[:5].amax(0),
    )


@part.arm(
    "broken",
    over={"change": list(BROKEN)},
    uses=("dim", "compared_examples", "compared_loops", "alpha"),
    dtype="float64",
    tolerance=1e-9,
)
def broken(params: Params, seeds: Seeds, record: lab.Recorder, *, change: str) -> None:
    """The construction with one part changed, against gradient descent."""
    prompts = params.problem().sample(seeds, "broken")
    options = dict(BROKEN[change])
    if "value_output" in options:
        options["value_output"] = torch.eye(params.dim + 1, dtype=torch.float64)
    steps = step_sizes("1/L", prompts.inputs, params.compared_loops)
    model = LoopedLinearTransformer(params.dim, params.compared_loops, "1/L", fast=False, **options)
    rows = model.query_rows(prompts.matrix())
    descent = gradient_descent(prompts.inputs, prompts.targets, steps)[-1]
    apart = torch.linalg.vector_norm(-rows[-1, :, :-1] / params.alpha - descent, dim=-1)
    fit = gd_probe(rows[..., :-1], prompts.inputs, prompts.targets, params.alpha)
    record(
        deviation=apart,
        unnegated=(rows[-1, :, :-1] * prompts.truth).sum(-1) / params.alpha,
        probe_residual=fit.residuals.nan_to_num(0).amax(0),
    )


@part.arm("noise", uses=("dim", "compared_examples", "alpha", "noise"), dtype="float64", tolerance=1e-9)
def noisy(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Targets with noise: where does the loop end?"""
    prompts = params.problem(noise=params.noise).sample(seeds, "noise")
    theta = LoopedLinearTransformer(params.dim, 1000).solve(prompts.inputs, prompts.targets, alpha=params.alpha)
    limit = prompts.least_squares()
    record(from_least_squares=(theta - limit).abs().amax(1), from_truth=prompts.parameter_error(theta))
