"""Looped transformers: a hand-set linear transformer runs gradient descent on the examples in its prompt."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, PositiveInt, field_validator, model_validator

from assay import lab
from assay.methods.looped_transformer import LoopedLinearTransformer, estimates, prompt_condition
from assay.probes.gd_probe import gd_probe

from . import theory
from .learners import Training, constructed, examples_gram
from .problem import LinearVectorGeneration


class Params(lab.Params):
    dim: int = Field(4, ge=1, description="dimension d of the examples")
    examples: tuple[int, ...] = Field((16, 32, 64, 128), min_length=2, description="numbers n of examples in a prompt")
    loops: int = Field(200, ge=20, description="loops T of the convergence curves")
    alpha: float = Field(1.0, description="the query's scalar α, not zero")
    draws: int = Field(2000, ge=50, description="condition numbers drawn per seed")
    trials: int = Field(10, ge=2, description="trials whose mean condition number the source reports")
    ratio: int = Field(8, ge=2, description="n/d where the dimension is varied")
    dims: tuple[PositiveInt, ...] = Field((4, 16, 64), min_length=1, description="dimensions at that ratio")
    compared_examples: int = Field(32, ge=2, description="n of the step-size comparison and the controls")
    compared_loops: int = Field(12, ge=1, description="their T")
    noise: float = Field(0.5, gt=0, description="deviation of the label noise where there is some")
    train_loops: int = Field(4, ge=1, description="loops of the trained transformer")
    train_steps: int = Field(1500, ge=5, description="its Adam steps")
    train_batch: int = Field(128, ge=1, description="prompts per step")
    train_pool: int = Field(8192, ge=64, description="prompts to draw batches from")
    train_rate: float = Field(0.01, gt=0, description="its Adam rate")
    test_prompts: int = Field(2000, ge=50, description="fresh prompts on which trained transformers are compared")

    @field_validator("alpha")
    @classmethod
    def _not_zero(cls, alpha: float) -> float:
        if alpha == 0:
            raise ValueError("α must not be 0, where the parameter cannot be read off the output")
        return alpha

    @model_validator(mode="after")
    def _more_examples_than_dimensions(self) -> Params:
        fewest = min(*self.examples, self.compared_examples // 2)  # trained weights are also tested on half of them
        if fewest <= self.dim:
            raise ValueError(
                f"{fewest} examples in {self.dim} dimensions: every n (and compared_examples/2) must exceed d"
            )
        if self.trials > self.draws:
            raise ValueError(f"{self.draws} draws make no mean over {self.trials} trials")
        return self


study = lab.Study(
    "looped-transformers",
    title="Looped transformers run gradient descent in context",
    question="Does a transformer need exponentially many examples to run many steps of gradient descent in its prompt?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 8",
    params=Params,
    presets={
        "smoke": lab.Preset(seeds=3, cost="5 s", draws=400, train_steps=30, train_batch=32, train_pool=256,
                            test_prompts=200, arms=("trained",)),
        "laptop": lab.Preset(seeds=24, cost="1 min", fewer={"trained": 12}, arms=("trained",)),
        "paper": lab.Preset(seeds=100, cost="5 min", fewer={"trained": 12}, train_steps=4000, train_batch=256,
                            train_pool=20_000, test_prompts=5000, arms=("trained",)),
    },
)  # fmt: skip

EXACT: dict[str, Any] = dict(dtype="float64", tolerance=1e-9)
CASES = {"16 × 4, α = 1": (16, 4, 1.0), "32 × 4, α = −2.5": (32, 4, -2.5), "64 × 10, α = 0.3": (64, 10, 0.3)}
IDENTITY_LOOPS = 50


@study.arm("identity", over={"case": list(CASES), "start": ["zero", "random"]}, uses=(), **EXACT)
def identity(params, seeds, record, *, case, start):
    """The dense transformer against its closed form and against gradient descent, with steps drawn per loop."""
    n, dim, alpha = CASES[case]
    prompts = LinearVectorGeneration(n, dim, alpha).sample(seeds, f"identity {start}")
    begin = seeds.normal("start", dim) if start == "random" else torch.zeros_like(prompts.truth)
    matrix = prompts.matrix(begin)
    shares = (0.2 + 0.8 * seeds.uniform("steps", IDENTITY_LOOPS)).mT
    steps = shares * theory.step_sizes("1/L", prompts.inputs, IDENTITY_LOOPS)
    model = LoopedLinearTransformer(dim, IDENTITY_LOOPS, steps, fast=False)
    states, layer = model.prompts(matrix), model.attention(matrix)
    printed = theory.layer_output(prompts.inputs, prompts.targets, matrix[:, -1, :-1], alpha)
    descent = theory.gradient_descent(prompts.inputs, prompts.targets, steps, begin)
    apart = estimates(states[..., -1, :], alpha) - descent
    frozen = torch.cat([states[..., :-1, :].flatten(2), states[..., -1, -1:]], -1)
    fit = gd_probe(states[..., -1, :-1], prompts.inputs, prompts.targets, alpha)
    record(layer_deviation=(layer - printed).abs().amax((1, 2)) / printed.abs().amax((1, 2)),
           loop_deviation=apart.abs().amax((0, 2)), rest_moved=(frozen - frozen[0]).abs().amax((0, 2)),
           probe_step_deviation=(fit.steps[:5] / steps[:5] - 1).abs().amax(0),
           probe_residual=fit.residuals[:5].amax(0))  # fmt: skip


@study.arm("convergence", over={"examples": lambda p: p.examples}, uses=("dim", "loops", "alpha"), **EXACT)
def convergence(params, seeds, record, *, examples):
    """The dense transformer's own trajectory at η = 1/L, from zero."""
    prompts = LinearVectorGeneration(examples, params.dim, params.alpha).sample(seeds, "convergence")
    model = LoopedLinearTransformer(params.dim, params.loops, "1/L", fast=False)
    rows = model.prompts(prompts.matrix())[..., -1, :]
    theta = estimates(rows, params.alpha)
    steps = theory.step_sizes("1/L", prompts.inputs, params.loops)
    predicted = (-rows[..., :-1] * prompts.truth).sum(-1) - params.alpha
    exact = theory.exact_error(prompts.gram, prompts.truth, steps, params.alpha)
    descent = theory.gradient_descent(prompts.inputs, prompts.targets, steps)[-1]
    moves = theory.exact_trajectory(prompts.gram, prompts.truth, steps) - (theta - prompts.truth)
    record.curve(range(params.loops + 1), squared_error=prompts.parameter_error(theta).square(),
                 task_error=prompts.task_error(-rows[..., :-1]), exact_error=exact.abs())  # fmt: skip
    record(condition=prompt_condition(prompts.inputs).condition, trajectory_deviation=moves.abs().amax((0, 2)),
           error_deviation=(predicted - exact).abs().amax(0),
           descent_squared_error=prompts.parameter_error(descent).square())  # fmt: skip


@study.arm("condition-numbers", over={"examples": lambda p: p.examples}, uses=("dim", "draws"), dtype="float64",
           tolerance=1e-9, working_set=lambda p: 2.0**22)  # fmt: skip
def condition_numbers(params, seeds, record, *, examples):
    """κ of Gaussian prompts, many draws."""
    problem = LinearVectorGeneration(examples, params.dim)
    found = prompt_condition(problem.draw_inputs(seeds, f"conditions {examples}", params.draws)).condition
    record(mean_condition=found.mean(1))
    record.array("conditions", found)


@study.arm("dimensions", over={"width": lambda p: p.dims}, uses=("ratio", "draws"), dtype="float64", tolerance=1e-9,
           working_set=lambda p: 2.0**22)  # fmt: skip
def dimensions(params, seeds, record, *, width):
    """κ at a fixed number of examples per dimension, in growing dimensions."""
    problem = LinearVectorGeneration(params.ratio * width, width)
    draws = max(10, params.draws * 4 // width**2)
    found = prompt_condition(problem.draw_inputs(seeds, f"dimensions {width}", draws)).condition
    record(mean_condition=found.mean(1), edge=theory.edge_condition(params.ratio * width, width))


OTHER_INPUTS = ("signs", "heavy-tailed", "sparse", "spectrum")


@study.arm("other-inputs", over={"inputs": [*OTHER_INPUTS, "weakest"]}, uses=("dim", "compared_examples", "alpha"),
           **EXACT)  # fmt: skip
def other_inputs(params, seeds, record, *, inputs):
    """The same loop on inputs that are not Gaussian, and with θ* in the direction that is learned last."""
    n, loops = params.compared_examples, 50
    if inputs == "weakest":
        problem = LinearVectorGeneration(n, params.dim, params.alpha, truth="weakest")
    else:
        problem = LinearVectorGeneration(n, params.dim, params.alpha, inputs=inputs)
    prompts = problem.sample(seeds, f"other inputs {inputs}")
    rows = LoopedLinearTransformer(params.dim, loops).query_rows(prompts.matrix())
    error = prompts.parameter_error(estimates(rows, params.alpha))
    record.curve(range(loops + 1), squared_error=error.square(), task_error=prompts.task_error(-rows[..., :-1]))
    record(condition=prompt_condition(prompts.inputs).condition)


@study.arm("fixed-step", over={"scale": [1.0, 2.0]}, uses=("dim", "compared_examples", "alpha"), **EXACT)
def fixed_step(params, seeds, record, *, scale):
    """One step for all prompts, 1/E[L] of Gaussian ones, on prompts of that size and on larger ones."""
    n, loops = params.compared_examples, 50
    prompts = LinearVectorGeneration(n, params.dim, params.alpha).sample(seeds, "fixed step")
    step = 1 / (n * (1 + (params.dim / n) ** 0.5) ** 2)
    larger = type(prompts)(scale * prompts.inputs, scale * prompts.targets, prompts.truth, prompts.alpha)
    # A learnable step is not checked against 2/L; here the divergence is what is measured.
    model = LoopedLinearTransformer(params.dim, loops, torch.nn.Parameter(torch.tensor(step, dtype=torch.float64)))
    record(parameter_error=larger.parameter_error(model(larger.matrix()).detach() / params.alpha))


BROKEN = {
    "none": {},
    "query reads itself": {"mask": "query_reads_all"},
    "causal mask": {"mask": "causal"},
    "P = I": {"value_output": "identity"},
}


@study.arm("broken", over={"change": list(BROKEN)}, uses=("dim", "compared_examples", "compared_loops", "alpha"),
           **EXACT)  # fmt: skip
def broken(params, seeds, record, *, change):
    """The construction with one part changed, against gradient descent."""
    prompts = LinearVectorGeneration(params.compared_examples, params.dim, params.alpha).sample(seeds, "broken")
    options: dict[str, Any] = dict(BROKEN[change])
    if "value_output" in options:
        options["value_output"] = torch.eye(params.dim + 1, dtype=torch.float64)
    steps = theory.step_sizes("1/L", prompts.inputs, params.compared_loops)
    model = LoopedLinearTransformer(params.dim, params.compared_loops, "1/L", fast=False, **options)
    rows = model.query_rows(prompts.matrix())
    descent = theory.gradient_descent(prompts.inputs, prompts.targets, steps)[-1]
    apart = torch.linalg.vector_norm(-rows[-1, :, :-1] / params.alpha - descent, dim=-1)
    fit = gd_probe(rows[..., :-1], prompts.inputs, prompts.targets, params.alpha)
    record(deviation=apart, unnegated=(rows[-1, :, :-1] * prompts.truth).sum(-1) / params.alpha,
           probe_residual=fit.residuals.nan_to_num(0).amax(0))  # fmt: skip


@study.arm("noise", uses=("dim", "compared_examples", "alpha", "noise"), **EXACT)
def noisy(params, seeds, record):
    """Targets with noise: where does the loop end?"""
    problem = LinearVectorGeneration(params.compared_examples, params.dim, params.alpha, noise=params.noise)
    prompts = problem.sample(seeds, "noise")
    theta = LoopedLinearTransformer(params.dim, 1000).solve(prompts.inputs, prompts.targets, alpha=params.alpha)
    limit = prompts.least_squares()
    record(from_least_squares=(theta - limit).abs().amax(1), from_truth=prompts.parameter_error(theta))


@study.arm("shortcut", uses=("dim", "compared_examples", "alpha"), **EXACT)
def shortcut(params, seeds, record):
    """The task answered from one example, with no estimate of θ*."""
    prompts = LinearVectorGeneration(params.compared_examples, params.dim, params.alpha).sample(seeds, "shortcut")
    answer = theory.shortcut(prompts.inputs, prompts.targets, params.alpha)
    record(task_error=prompts.task_error(answer) / abs(params.alpha),
           parameter_error=prompts.parameter_error(answer / params.alpha))  # fmt: skip


LIMITS = {"1.9/L": 1.9, "2.1/L": 2.1}


@study.arm("steps", over={"rule": ["1/L", "2/(L+mu)", "chebyshev"]},
           uses=("dim", "compared_examples", "compared_loops", "alpha"), **EXACT)  # fmt: skip
def steps(params, seeds, record, *, rule):
    """Three rules for the step sizes on the same prompts, each run anew for every number of loops."""
    prompts = LinearVectorGeneration(params.compared_examples, params.dim, params.alpha).sample(seeds, "steps")
    matrix, condition = prompts.matrix(), prompt_condition(prompts.inputs).condition
    record(condition=condition)
    for loops in range(params.compared_loops + 1):
        output = LoopedLinearTransformer(params.dim, loops, rule)(matrix)
        record(step=loops, parameter_error=prompts.parameter_error(output / params.alpha),
               bound=theory.error_bound(condition, loops, bound=rule))  # fmt: skip


@study.arm("step-limit", over={"rule": list(LIMITS)}, uses=("dim", "compared_examples", "alpha"), **EXACT)
def step_limit(params, seeds, record, *, rule):
    """Steps just below and just above 2/L, 200 loops."""
    prompts = LinearVectorGeneration(params.compared_examples, params.dim, params.alpha).sample(seeds, "steps")
    sizes = torch.nn.Parameter(LIMITS[rule] * theory.step_sizes("1/L", prompts.inputs, 200))
    output = LoopedLinearTransformer(params.dim, 200, sizes)(prompts.matrix()).detach()
    record(parameter_error=prompts.parameter_error(output / params.alpha))


TRAINED = [
    {"free": "step", "start": "construction", "loss": "task"},
    {"free": "weights", "start": "construction", "loss": "task"},
    {"free": "weights", "start": "construction", "loss": "vector"},
    {"free": "weights", "start": "random", "loss": "task"},
    {"free": "weights", "start": "random", "loss": "vector"},
]


@study.arm("trained", over=TRAINED, optional=True, tolerance=0.05,
           uses=("dim", "compared_examples", "train_loops", "train_steps", "train_batch", "train_pool", "train_rate",
                 "test_prompts"))  # fmt: skip
def trained(params, seeds, record, *, free, start, loss):
    """Adam on the step size and the weights: is the construction found, or kept? (Not in the source.)"""
    n, dim, loops = params.compared_examples, params.dim, params.train_loops
    recipe = Training(loops, params.train_steps, params.train_batch, params.train_pool, params.train_rate,
                      free=free, start=start, loss=loss)  # fmt: skip
    weights = recipe.train(LinearVectorGeneration(n, dim), seeds)
    pairs = zip(weights.query_key, weights.value_output, strict=True)
    record(construction_cosine=[theory.best_cosine(key, value) for key, value in pairs], learned_step=weights.step)
    for tested in (n // 2, n, 4 * n):
        prompts = LinearVectorGeneration(tested, dim).sample(seeds, "test", params.test_prompts)
        gram, largest = examples_gram(prompts), prompt_condition(prompts.inputs).largest / tested
        # 1/L of each prompt enters by dividing its examples' gram matrix: the construction then takes unit steps.
        told, given = gram / largest[..., None, None], constructed(seeds, dim, step=1.0)
        for tried in (loops, 2 * loops, 4 * loops):
            for who, output in (
                ("trained", weights.outputs(gram, tried)),
                ("construction", given.outputs(told, tried)),
            ):
                task = (output * prompts.truth).sum(-1) - 1
                apart = prompts.parameter_error(output)
                record(step=tried, at={"tested": tested, "who": who}, task_rms=task.square().mean(1).sqrt(),
                       parameter_rms=apart.square().mean(1).sqrt(),
                       task_median=task.abs().median(1).values)  # fmt: skip
