"""Train-validation split in meta-learning: what the inner loop amplifies decides what the outer loop can learn."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.training.seeds import Seeds

from . import measures, theory
from .learners import SPLITS, Conditions, Coupling, Products, train, train_direct
from .linear_centroid import centroid, mean_squared_error
from .problem import SharedFeature, Tasks
from .setup import (
    Cell,
    Stack,
    cells_of,
    knee_of,
    look_steps,
    prediction,
    problem_of,
    rates_of,
    stack,
    working_set,
)

PRINTED_RATES = {"0.01/0.001": (0.01, 0.001), "0.001/0.0001": (0.001, 0.0001)}
PRINTED_VARIANTS = ("huberized", "relu", "one step", "swapped rates")


class Params(lab.Params):
    dim: int = Field(2000, ge=10, description="dimension d of a patch")
    dictionary: int = Field(200, ge=2, description="task features M")
    tasks: int = Field(10, ge=1, description="observed tasks K")
    samples: int = Field(4, ge=4, description="samples n per task")
    support: int = Field(2, ge=2, description="samples n₁ of a task's training half")
    noise_energy: float = Field(8.0, gt=0, description="s, the mean squared norm of a noise patch")
    task_norm: float = Field(0.3, gt=0, description="σ_s√d, the norm of a task's own feature (the shared one has 1)")
    filters: int = Field(10, ge=1, description="filters m per class")
    initial_scale: float = Field(1e-4, gt=0, description="σ₀ of the initial filters")
    activation: Literal["huberized", "relu"] = Field("huberized", description="activation of the network")
    knee: float = Field(0.5, gt=0, description="knee h of the Huberized ReLU")
    inner_rate: float = Field(0.5, ge=0, description="inner rate γ")
    outer_rate: float = Field(0.05, gt=0, description="outer rate η")
    inner_steps: int = Field(5, ge=0, description="inner steps J")
    steps: int = Field(600, ge=10, description="outer steps T")
    look_every: int = Field(20, ge=1, description="outer steps between measurements")
    unseen_tasks: int = Field(60, ge=4, description="new tasks for testing")
    unseen_samples: int = Field(4, ge=2, description="test samples of each")
    phase_inner_steps: tuple[NonNegativeInt, ...] = Field(
        (0, 1, 2, 3, 4, 5, 6), min_length=2, description="J of the first phase map"
    )
    phase_tasks: tuple[PositiveInt, ...] = Field(
        (2, 5, 10, 20, 40), min_length=2, description="K of the first phase map"
    )
    phase_noise: tuple[PositiveFloat, ...] = Field(
        (1, 2, 4, 6, 8, 12, 16), min_length=2, description="s of the second phase map"
    )
    phase_rates: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0), min_length=2, description="γ of the second map"
    )
    early_scale: float = Field(1e-8, gt=0, description="σ₀ where early growth is measured")
    early_rate: float = Field(0.01, gt=0, description="η where early growth is measured")
    ridge: float = Field(1.0, gt=0, description="λ of the linear contrast")
    printed_dim: int = Field(1000, ge=100, description="d of the printed synthetic configuration")
    printed_tasks: int = Field(343, ge=2, description="its K (printed: 343)")
    printed_steps: int = Field(1000, ge=20, description="its T (not printed)")
    printed_test_tasks: int = Field(100, ge=4, description="its test tasks (not printed)")
    printed_test_samples: int = Field(50, ge=2, description="test samples of each (not printed)")
    images: str = Field("auto", description="image set (auto: mnist, else fashion_mnist, where found, else digits)")
    image_limit: int = Field(60_000, ge=100, description="training images at most")
    image_side: int = Field(28, ge=4, description="side of a RainbowMNIST image")
    blocks: int = Field(4, ge=1, description="blocks of the convolutional network")
    channels: int = Field(32, ge=1, description="its channels")
    shots: int = Field(1, ge=1, description="support samples per class; as many query samples")
    image_steps: int = Field(2000, ge=2, description="outer steps on RainbowMNIST")
    image_looks: int = Field(4, ge=1, description="times that it is tested on the way")
    tasks_per_step: int = Field(4, ge=1, description="tasks in one of these steps")
    image_inner_rate: float = Field(0.1, gt=0, description="inner rate on RainbowMNIST")
    image_outer_rate: float = Field(0.01, gt=0, description="Adam's outer rate on RainbowMNIST")
    reptile: str = Field("0.3 1.0", description="Reptile's inner rate and ε, tuned")
    reptile_candidates: tuple[str, ...] = Field(
        ("0.1 0.1", "0.1 0.3", "0.1 1.0", "0.3 0.3", "0.3 1.0", "1.0 1.0"), min_length=1,
        description="choices it was tuned over",
    )  # fmt: skip
    fomaml: str = Field("0.03 0.03", description="FOMAML's inner and outer rate, tuned as Reptile's are")
    fomaml_candidates: tuple[str, ...] = Field(
        (
            "0.01 0.01",
            "0.03 0.003",
            "0.03 0.01",
            "0.03 0.03",
            "0.1 0.003",
            "0.1 0.01",
            "0.1 0.03",
            "0.3 0.003",
            "0.3 0.01",
        ),
        min_length=1,
        description="choices they were tuned over",
    )
    test_repeats: int = Field(4, ge=1, description="episodes per meta-testing task")
    test_queries: int = Field(10, ge=1, description="test images per class in an episode")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "fashion_mnist", "digits") if name == "auto" else name

    @field_validator("reptile", "reptile_candidates", "fomaml", "fomaml_candidates")
    @classmethod
    def _two_numbers(cls, value: Any) -> Any:
        for text in (value,) if isinstance(value, str) else value:
            try:
                inner, outer = (float(word) for word in text.split())
            except ValueError:
                inner = outer = 0.0
            if not 0 < inner < math.inf or not 0 < outer <= 1:
                raise ValueError(f"'{text}' is not an inner rate and an outer rate or ε in (0, 1]")
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> Params:
        problem_of(self, max(self.tasks, *self.phase_tasks))
        for name in ("phase_inner_steps", "phase_tasks", "phase_noise", "phase_rates"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"{name} names a value twice: {values}")
        for name in ("reptile", "fomaml"):
            chosen = getattr(self, name)
            if chosen not in getattr(self, f"{name}_candidates"):
                raise ValueError(f"{name} '{chosen}' is not among the {name}_candidates it was tuned over")
        if self.printed_tasks > self.printed_dim // 2:
            raise ValueError("printed_tasks cannot exceed half of printed_dim, the size of its dictionary")
        return self


def _proof_setting(dim: int) -> dict[str, Any]:
    """Appendix D.1 with whole tasks and filters. Purely asymptotic: its outer rate moves little in 600 steps."""
    scales, log = theory.proof_scales(dim), math.log(dim)
    return dict(dim=dim, dictionary=scales.M, tasks=scales.K, filters=scales.m, initial_scale=scales.sigma_0,
                noise_energy=scales.s, task_norm=scales.sigma_s * dim**0.5, inner_rate=log**0.4,
                outer_rate=log**-5)  # fmt: skip


SETTINGS: dict[str, dict[str, Any]] = {
    "base": {},
    "pooled": dict(inner_steps=0),
    "steps-1": dict(inner_steps=1),
    "steps-2": dict(inner_steps=2),
    "steps-3": dict(inner_steps=3),
    "tasks-2": dict(tasks=2),
    "tasks-5": dict(tasks=5),
    "tasks-20": dict(tasks=20),
    "tasks-40": dict(tasks=40),
    "noise-1": dict(noise_energy=1.0),
    "noise-2": dict(noise_energy=2.0),
    "noise-4": dict(noise_energy=4.0),
    "noise-16": dict(noise_energy=16.0),
    "swapped-rates": dict(inner_rate=0.05, outer_rate=0.5, steps=300),
    "relu": dict(activation="relu"),
    "two-tasks": dict(tasks=2, noise_energy=6.0),
    "two-tasks-pooled": dict(tasks=2, noise_energy=6.0, inner_steps=0),
    "large-start": dict(initial_scale=0.0224),
    "long": dict(steps=5000, look_every=50),
    "proof": _proof_setting(2000),
}
_small = {name: dict(tasks=min(value["tasks"], 6)) for name, value in SETTINGS.items() if "tasks" in value}
_small["proof"] = _proof_setting(200)
study = lab.Study(
    "meta-split",
    title="The train-validation split in meta-learning",
    question="Must the inner and the outer loop of FOMAML see different samples of a task?",
    source="Zuo, Chen, Yao, Cao and Gu, Understanding Train-Validation Split in Meta-Learning with Neural Networks",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", dim=200, dictionary=20, filters=5, steps=40, look_every=20, unseen_tasks=10,
            phase_inner_steps=(0, 5), phase_tasks=(2, 6), phase_noise=(4, 8), phase_rates=(0.1, 0.5),
            printed_dim=100, printed_tasks=8, printed_steps=20, printed_test_tasks=5, printed_test_samples=5,
            images="digits", image_side=8, blocks=2, channels=4, image_steps=4, image_looks=1,
            tasks_per_step=2, test_repeats=1, test_queries=2, reptile_candidates=("0.1 1.0", "0.3 1.0"),
            fomaml_candidates=("0.03 0.03", "0.1 0.01"),
            settings={**_small, "long": dict(steps=100), "swapped-rates": dict(steps=40)},
        ),
        "laptop": lab.Preset(
            seeds=8, cost="6 min", printed_tasks=64, printed_steps=200, image_limit=10_000, image_side=14, blocks=2,
            channels=8, image_steps=200, image_looks=2, test_repeats=2, test_queries=5,
            reptile_candidates=("0.1 1.0", "0.3 1.0", "1.0 1.0"),
            fomaml_candidates=("0.03 0.01", "0.03 0.03", "0.1 0.01", "0.1 0.03"),
            fewer={**{name: 5 for name in SETTINGS if name not in ("base", "long")}, "phase-steps-tasks": 4,
                   "phase-noise-rate": 4, "printed": 3, "rainbow": 4, "reptile": 4, "fomaml-tuned": 4,
                   "reptile-tuning": 5, "fomaml-tuning": 5},
        ),
        "paper": lab.Preset(
            seeds=10, cost="40 min on a GPU", unseen_tasks=200, phase_tasks=(2, 5, 10, 20, 40, 80),
            phase_noise=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16), phase_rates=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
            images="mnist", fomaml="0.1 0.003",
            fewer={"printed": 5, "rainbow": 5, "reptile": 5, "fomaml-tuned": 5, "reptile-tuning": 3,
                   "fomaml-tuning": 3},
        ),
    },
)  # fmt: skip

EXACT: dict[str, Any] = dict(dtype="float64", tolerance=1e-5)
_PROBLEM = ("dim", "dictionary", "samples", "support", "task_norm", "filters", "activation", "knee", "unseen_tasks",
            "unseen_samples")  # fmt: skip
_RUN = ("tasks", "noise_energy", "initial_scale", "inner_rate", "outer_rate", "inner_steps", "steps", "look_every")


def _stack(params: Any, problem: SharedFeature, tasks: Tasks, seeds: Seeds, cells: list[Cell]) -> Stack:
    return stack(problem, tasks, seeds, cells, filters=params.filters, scale=params.initial_scale,
                 unseen_tasks=params.unseen_tasks, unseen_samples=params.unseen_samples)  # fmt: skip


def _by_cell(record: Any, cells: list[dict[str, Any]], found: dict[str, torch.Tensor], step: int | None) -> None:
    """Record (cells · seeds,) values under each cell's labels."""
    for at, part in zip(cells, zip(*(v.chunk(len(cells)) for v in found.values()), strict=True), strict=True):
        record(step=step, at=at, **dict(zip(found, part, strict=True)))


@study.arm("fomaml", over={"setting": list(SETTINGS)}, uses=_PROBLEM + _RUN, working_set=working_set, **EXACT)
def fomaml(params, seeds, record, *, setting):
    """Both splits on the same draws: losses, alignments and amplification over time, and the exact bounds."""
    problem = problem_of(params)
    run = _stack(params, problem, problem.sample(seeds), seeds, cells_of(params))
    level = theory.noise_threshold(params.filters, params.inner_rate, params.noise_energy, params.samples,
                                   params.inner_steps)  # fmt: skip
    labels = [{"split": split} for split in SPLITS]
    looks = train(run.products, run.coupling, run.conditions, params.steps, look_steps(params.steps, params.look_every))
    for look in looks:
        found = {"meta_loss": look.meta_loss, **run.unseen.evaluate(look, run.conditions),
                 **measures.alignment_metrics(look, run.conditions, level),
                 **measures.amplification(look, run.conditions),
                 "feature_only_loss": measures.feature_only(look, run.conditions)}  # fmt: skip
        bounds = measures.bound_metrics(look, run.conditions)
        validation = bounds.pop("validation_excess").chunk(2)[1]
        _by_cell(record, labels, {**found, **bounds}, look.step)
        record(step=look.step, at=labels[1], validation_excess=validation)


CONTROLS = ("shuffled labels", "leaked split", "no inner rate")


@study.arm("control", over={"case": list(CONTROLS)}, uses=_PROBLEM + _RUN, working_set=working_set, **EXACT)
def control(params, seeds, record, *, case):
    """The base setting with labels that the feature does not tell, with a split that is none, and with γ = 0."""
    problem, cells = problem_of(params), cells_of(params)
    tasks = problem.sample(seeds)
    if case == "shuffled labels":
        tasks = problem.shuffled(tasks, seeds)
    if case == "leaked split":
        cells = cells_of(params, ("train-train", "leaked"))
    if case == "no inner rate":
        cells = [(split, 0.0, *rest) for split, _, *rest in cells] + [(s, g, e, 0, h) for s, g, e, _, h in cells]
    labels = [{"split": cell[0], "adapts": cell[3] > 0} for cell in cells]
    run = _stack(params, problem, tasks, seeds, cells)
    for look in train(run.products, run.coupling, run.conditions, params.steps, [params.steps]):
        _by_cell(record, labels, {"meta_loss": look.meta_loss, **run.unseen.evaluate(look, run.conditions)}, look.step)


@study.arm("engines", over={"inner": [0, 1, 5]}, uses=("knee", "inner_rate", "outer_rate"), **EXACT)
def engines(params, seeds, record, *, inner):
    """The engine on inner products against weights and inputs, twelve outer steps from unit-size filters."""
    problem = SharedFeature(120, 20, 4, 6, 3)
    tasks, start = problem.sample(seeds), 0.1 * seeds.normal("initial filters", 8, 120)
    for split in SPLITS:
        cell = (split, params.inner_rate, params.outer_rate, inner, params.knee)
        conditions = Conditions.of([cell], seeds, 6, 3)
        look = next(train(Products.of(tasks, start), Coupling.of(tasks, tasks), conditions, 12, [12]))
        direct = train_direct(tasks, start, cell, 12)
        ours = start + look.noise @ tasks.noise.flatten(1, 2) + look.feature @ tasks.features
        moved = (direct - start).abs().amax((1, 2))
        record(at={"split": split}, deviation=(ours - direct).abs().amax((1, 2)) / moved)


@study.arm("early-growth", over={"energy": [4.0, 8.0], "inner": [1, 2, 3, 5]},
           uses=("dim", "dictionary", "tasks", "samples", "support", "task_norm", "filters", "knee", "inner_rate",
                 "early_scale", "early_rate"), **EXACT)  # fmt: skip
def early_growth(params, seeds, record, *, energy, inner):
    """From tiny filters: growth per outer step and amplification by the inner steps, against the rate formulas."""
    tasks = problem_of(params, noise_energy=energy).sample(seeds)
    start = params.early_scale * seeds.normal("initial filters", 2 * params.filters, params.dim)
    cells = [(split, params.inner_rate, params.early_rate, inner, params.knee) for split in SPLITS]
    conditions = Conditions.of(cells, seeds, params.samples, params.support)
    parts = (Products.of(tasks, start).stacked(2), Coupling.of(tasks, tasks).stacked(2))
    first, last = train(*parts, conditions, 20, [5, 20])
    found = vars(measures.early_growth(first, last, conditions))
    inside = found.pop("inner_only_noise").chunk(2)[1]
    _by_cell(record, [{"split": split} for split in SPLITS], found, None)
    record(at={"split": "train-validation"}, inner_only_noise=inside)


def _record_winners(params: Any, seeds: Any, record: Any, run: Any, labels: list[dict[str, Any]], **fixed: Any) -> None:
    """Train stacked cells to the end; record the test loss beside the predicted rates."""
    (look,) = train(run.products, run.coupling, run.conditions, params.steps, [params.steps])
    found = run.unseen.evaluate(look, run.conditions)
    _by_cell(record, labels, {name: found[name] for name in ("test_loss", "test_accuracy")}, None)
    for at in labels:
        cell = {name: value for name, value in at.items() if name != "split"}
        rates = rates_of(prediction(params, **fixed, **cell), at["split"])
        record(at=at, feature_rate=rates.feature, noise_rate=rates.noise)


@study.arm("phase-steps-tasks", over={"tasks": lambda p: p.phase_tasks},
           uses=(*_PROBLEM, "noise_energy", "initial_scale", "inner_rate", "outer_rate", "steps", "phase_inner_steps"),
           working_set=lambda p: 2.0**20, **EXACT)  # fmt: skip
def phase_steps_tasks(params, seeds, record, *, tasks):
    """Who wins, feature or noise, over inner steps J and tasks K: all J and both splits at once."""
    problem = problem_of(params, tasks)
    labels = [{"inner_steps": J, "split": split} for J in params.phase_inner_steps for split in SPLITS]
    cells = [(at["split"], params.inner_rate, params.outer_rate, at["inner_steps"], knee_of(params)) for at in labels]
    run = _stack(params, problem, problem.sample(seeds), seeds, cells)
    _record_winners(params, seeds, record, run, labels, tasks=tasks, inner_rate=params.inner_rate,
                    noise_energy=params.noise_energy)  # fmt: skip


@study.arm("phase-noise-rate", over={"noise_energy": lambda p: p.phase_noise},
           uses=(*_PROBLEM, "tasks", "initial_scale", "inner_steps", "outer_rate", "steps", "phase_rates"),
           working_set=lambda p: 2.0**20, **EXACT)  # fmt: skip
def phase_noise_rate(params, seeds, record, *, noise_energy):
    """Who wins over noise energy s and inner rate γ: all γ and both splits at once."""
    problem = problem_of(params, noise_energy=noise_energy)
    labels = [{"inner_rate": rate, "split": split} for rate in params.phase_rates for split in SPLITS]
    cells = [(at["split"], at["inner_rate"], params.outer_rate, params.inner_steps, knee_of(params)) for at in labels]
    run = _stack(params, problem, problem.sample(seeds), seeds, cells)
    _record_winners(params, seeds, record, run, labels, noise_energy=noise_energy, tasks=params.tasks,
                    inner_steps=params.inner_steps)  # fmt: skip


@study.arm("linear", uses=(*_PROBLEM, "tasks", "noise_energy", "ridge"), working_set=lambda p: 2.0**21, dtype="float64",
           tolerance=1e-7)  # fmt: skip
def linear(params, seeds, record):
    """Ridge regression inside and least squares outside on the same data: the earlier theory's contrast."""
    problem = problem_of(params)
    tasks = problem.sample(seeds)
    unseen = problem.sample_unseen(seeds, params.unseen_tasks, problem.support + params.unseen_samples)
    exact = (tasks.inputs * tasks.linear_solution.reshape(len(seeds), 1, 1, 2, -1)).sum((-1, -2)) - tasks.labels
    record(realisable_error=exact.abs().amax((1, 2)))
    for split in (*SPLITS, "support only"):
        record(at={"split": split}, linear_error=mean_squared_error(centroid(tasks, split, params.ridge), unseen))


def printed_cell(variant: str, rates: str) -> tuple[float, float, int, float]:
    """γ, η, J and h of a row of the source's tables."""
    inner, outer = PRINTED_RATES[rates]
    if variant == "swapped rates":
        inner, outer = outer, inner
    return inner, outer, 1 if variant == "one step" else 5, theory.RELU_KNEE if variant == "relu" else 0.5


@study.arm("printed", over={"rates": list(PRINTED_RATES), "variant": list(PRINTED_VARIANTS)},
           uses=("printed_dim", "printed_tasks", "printed_steps", "printed_test_tasks", "printed_test_samples"),
           working_set=lambda p: 16.0 * (10 * p.printed_tasks) ** 2, **EXACT)  # fmt: skip
def printed(params, seeds, record, *, rates, variant):
    """The printed synthetic configuration: large noise, large filters, logits of size 25 from the start."""
    scales = theory.printed_scales(params.printed_dim)
    problem = SharedFeature(scales.d, scales.M, params.printed_tasks, 10, 5, noise_energy=scales.s,
                            task_norm=scales.sigma_s * scales.d**0.5)  # fmt: skip
    cells = [(split, *printed_cell(variant, rates)) for split in SPLITS]
    run = stack(problem, problem.sample(seeds), seeds, cells, filters=scales.m, scale=scales.sigma_0,
                unseen_tasks=params.printed_test_tasks, unseen_samples=params.printed_test_samples)  # fmt: skip
    steps = params.printed_steps
    for look in train(run.products, run.coupling, run.conditions, steps, look_steps(steps, max(1, steps // 10))):
        found = {"meta_loss": look.meta_loss, **run.unseen.evaluate(look, run.conditions),
                 **measures.alignment_metrics(look, run.conditions, 1.0)}  # fmt: skip
        _by_cell(record, [{"split": split} for split in SPLITS], found, look.step)


from . import image_arms  # noqa: E402, F401 (the arms on RainbowMNIST register themselves with the study)
