"""Step sizes: better rules than 1/L, steps on either side of 2/L, and one step for all prompts."""

from __future__ import annotations

import torch

from assay import lab
from assay.methods.gradient_descent_rates import error_bound, step_sizes
from assay.methods.looped_transformer import LoopedLinearTransformer, prompt_condition
from assay.training import Seeds

from ..params import Loops

RULES = ("1/L", "2/(L+mu)", "chebyshev")
LIMITS = {"1.9/L": 1.9, "2.1/L": 2.1}

part = lab.Part("steps", params=Loops)


@part.arm("steps", over={"rule": list(RULES)}, dtype="float64", tolerance=1e-9)
def steps(params: Loops, seeds: Seeds, record: lab.Recorder, *, rule: str) -> None:
    """Three rules for the step sizes on the same prompts, each run anew for every number of loops."""
    prompts = params.problem().sample(seeds, "steps")
    matrix, condition = prompts.matrix(), prompt_condition(prompts.inputs).condition
    record(condition=condition)
    for loops in range(params.compared_loops + 1):
        output = LoopedLinearTransformer(params.dim, loops, rule)(matrix)
        record(
            step=loops,
            parameter_error=prompts.parameter_error(output / params.alpha),
            bound=error_bound(condition, loops, bound=rule),
        )


@part.arm(
    "step-limit",
    over={"rule": list(LIMITS)},
    uses=("dim", "compared_examples", "alpha"),
    dtype="float64",
    tolerance=1e-9,
)
def step_limit(params: Loops, seeds: Seeds, record: lab.Recorder, *, rule: str) -> None:
    """Steps just below and just above 2/L, 200 loops."""
    prompts = params.problem().sample(seeds, "steps")
    sizes = torch.nn.Parameter(LIMITS[rule] * step_sizes("1/L", prompts.inputs, 200))
    output = LoopedLinearTransformer(params.dim, 200, sizes)(prompts.matrix()).detach()
    record(parameter_error=prompts.parameter_error(output / params.alpha))


@part.arm(
    "fixed-step",
    over={"scale": [1.0, 2.0]},
    uses=("dim", "compared_examples", "alpha"),
    dtype="float64",
    tolerance=1e-9,
)
def fixed_step(params: Loops, seeds: Seeds, record: lab.Recorder, *, scale: float) -> None:
    """One step for all prompts, 1/E[L] of Gaussian ones, on prompts of that size and on larger ones."""
    n, loops = params.compared_examples, 50
    prompts = params.problem().sample(seeds, "fixed step")
    step = 1 / (n * (1 + (params.dim / n) ** 0.5) ** 2)
    larger = type(prompts)(scale * prompts.inputs, scale * prompts.targets, prompts.truth, prompts.alpha)
    # A learnable step is not checked against 2/L; here the divergence is what is measured.
    model = LoopedLinearTransformer(params.dim, loops, torch.nn.Parameter(torch.tensor(step, dtype=torch.float64)))
    record(parameter_error=larger.parameter_error(model(larger.matrix()).detach() / params.alpha))
