"""Convergence: how fast the loop approaches θ* with steps of 1/L, at several n and on other inputs."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.methods.gradient_descent_rates import step_sizes
from assay.methods.looped_transformer import LoopedLinearTransformer, estimates, prompt_condition
from assay.training import Seeds

from ..params import Examples, Prompts
from ..problem import LinearVectorGeneration
from ..theory import gradient_descent
from .theory import exact_error, exact_trajectory

OTHER_INPUTS = ("signs", "heavy-tailed", "sparse", "spectrum")


class Params(Examples, Prompts):
    loops: int = Field(200, ge=20, description="loops T of the convergence curves")


part = lab.Part("convergence", params=Params)


@part.arm(
    "convergence",
    over={"examples": lambda p: p.examples},
    uses=("dim", "loops", "alpha"),
    dtype="float64",
    tolerance=1e-9,
)
def convergence(params: Params, seeds: Seeds, record: lab.Recorder, *, examples: int) -> None:
    """The dense transformer's own trajectory at η = 1/L, from zero, and descent run beside it."""
    prompts = LinearVectorGeneration(examples, params.dim, params.alpha).sample(seeds, "convergence")
    model = LoopedLinearTransformer(params.dim, params.loops, "1/L", fast=False)
    rows = model.prompts(prompts.matrix())[..., -1, :]
    theta = estimates(rows, params.alpha)
    steps = step_sizes("1/L", prompts.inputs, params.loops)
    predicted = (-rows[..., :-1] * prompts.truth).sum(-1) - params.alpha
    exact = exact_error(prompts.gram, prompts.truth, steps, params.alpha)
    descent = gradient_descent(prompts.inputs, prompts.targets, steps)
    moves = exact_trajectory(prompts.gram, prompts.truth, steps) - (theta - prompts.truth)
    record.curve(
        range(params.loops + 1),
        squared_error=prompts.parameter_error(theta).square(),
        task_error=prompts.task_error(-rows[..., :-1]),
        exact_error=exact.abs(),
        descent_squared_error=prompts.parameter_error(descent).square(),
    )
    record(
        condition=prompt_condition(prompts.inputs).condition,
        trajectory_deviation=moves.abs().amax((0, 2)),
        error_deviation=(predicted - exact).abs().amax(0),
    )


@part.arm(
    "other-inputs",
    over={"inputs": [*OTHER_INPUTS, "weakest"]},
    uses=("dim", "compared_examples", "alpha"),
    dtype="float64",
    tolerance=1e-9,
)
def other_inputs(params: Params, seeds: Seeds, record: lab.Recorder, *, inputs: str) -> None:
    """The same loop on inputs that are not Gaussian, and with θ* in the direction that is learned last."""
    loops = 50
    problem = params.problem(truth="weakest") if inputs == "weakest" else params.problem(inputs=inputs)
    prompts = problem.sample(seeds, f"other inputs {inputs}")
    rows = LoopedLinearTransformer(params.dim, loops).query_rows(prompts.matrix())
    error = prompts.parameter_error(estimates(rows, params.alpha))
    record.curve(range(loops + 1), squared_error=error.square(), task_error=prompts.task_error(-rows[..., :-1]))
    record(condition=prompt_condition(prompts.inputs).condition)
