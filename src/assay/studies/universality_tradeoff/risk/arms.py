"""What the weights cost: the risk of linear predictors on few labels, on specific and universal representations."""

from __future__ import annotations

import math
from itertools import product

import torch
from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..params import check_rising
from ..problem import LinearTasks
from ..theory import (
    bound_ratio,
    canonical,
    even_weights,
    leading_complexity,
    other_task_risk,
    predictor_norm,
    risk_bound,
    specific_risk,
)
from .learners import bounded_least_squares

PRIVATE = (0.1, 0.5, 0.9)  # v₂, the private share of the label
RATIOS = ((10, 20, 4), (10, 20, 32), (5, 10, 9), (3, 6, 2))  # (s, r = 2s, T)


class Params(lab.Params):
    risk_shared: int = Field(10, ge=1, description="shared features s of the tasks whose risk is measured")
    risk_relevant: int = Field(20, ge=2, description="their features r")
    risk_tasks: tuple[PositiveInt, ...] = Field((1, 4, 32), min_length=2, description="tasks T pretrained on")
    risk_labels: tuple[PositiveInt, ...] = Field((5, 10, 15, 19, 40), min_length=2, description="labels m")
    risk_draws: int = Field(250, ge=10, description="draws of labelled points per seed")
    floor_labels: tuple[PositiveInt, ...] = Field(
        (20, 40, 200, 1000), min_length=1, description="labels m on another task than the one pretrained on"
    )

    floor_draws: int = Field(50, ge=10, description="draws of labelled points per seed there")

    @model_validator(mode="after")
    def _risk_goes_together(self) -> Params:
        check_rising(risk_tasks=self.risk_tasks, risk_labels=self.risk_labels, floor_labels=self.floor_labels)
        if self.risk_shared >= self.risk_relevant:
            raise ValueError("risk_relevant must exceed risk_shared, or tasks have no features of their own")
        if self.risk_tasks[0] != 1:
            raise ValueError("risk_tasks must begin with 1, the specific representation")
        if self.floor_labels[0] <= self.risk_shared + 1:
            raise ValueError("floor_labels must exceed risk_shared + 1, or the risk has no mean")
        return self

    def tasks_of(self, tasks: int) -> LinearTasks:
        return LinearTasks(self.risk_shared, self.risk_relevant, tasks)


part = lab.Part(
    "risk",
    params=Params,
    presets={
        "smoke": lab.PartPreset(risk_draws=40, floor_labels=(20, 100)),
        "paper": lab.PartPreset(risk_draws=2000, risk_tasks=(1, 2, 4, 8, 16, 32, 64)),
    },
)


@part.arm("formulas", uses=())
def formulas(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Ratios of the bounds' leading terms."""
    for s, r, tasks in RATIOS:
        problem = LinearTasks(s, r, tasks)
        universal = leading_complexity(problem, *even_weights(tasks), 0.5, 10)
        specific = leading_complexity(problem, 1.0, 1.0, 0.5, 10)
        printed = (tasks + 1) / (2 * math.sqrt(tasks))
        record(at={"case": f"s = {s}, T = {tasks}"}, ratio_error=abs(universal / specific - printed))
        record(
            at={"case": f"s = {s}, T = {tasks}"}, general_error=abs(universal / specific - bound_ratio(problem, 0.5))
        )


@part.arm(
    "probe",
    over={"tasks": lambda p: p.risk_tasks},
    uses=("risk_shared", "risk_relevant", "risk_labels", "risk_draws"),
    dtype="float64",
    tolerance=1e-6,
)
def probe(params: Params, seeds: Seeds, record: lab.Recorder, *, tasks: int) -> None:
    """Norm-bounded least squares on the optimal representation of T tasks, for the target task."""
    problem = params.tasks_of(tasks)
    alpha, beta = even_weights(tasks)
    s, r = params.risk_shared, params.risk_relevant
    scale = torch.cat([torch.full((s,), alpha), torch.full((r - s,), beta)]).to(seeds.device, seeds.dtype).sqrt()
    # Every T gets the same labelled points: the difference between representations is paired.
    points = seeds.normal("labelled points", params.risk_draws, max(params.risk_labels), r)
    sizes = (seeds.normal("complexity", 20_000, r) * scale).norm(dim=-1).mean(1)  # E‖Aξ‖
    for private, labels in product(PRIVATE, params.risk_labels):
        truth = problem.label_weights(seeds, "label weights", private, draws=params.risk_draws)
        inputs = points[:, :, :labels]
        answers = torch.einsum("sdmr,sdr->sdm", inputs, truth)
        radius = predictor_norm(alpha, beta, 1 - private, private)
        found = bounded_least_squares(inputs * scale, answers, radius)
        miss = (found * scale - truth).norm(dim=-1)
        where = {"private": private, "labels": labels}
        complexity = sizes * radius / math.sqrt(labels)
        leading = leading_complexity(problem, alpha, beta, private, labels)
        record(at=where, risk=miss.square().mean(1), absolute_risk=math.sqrt(2 / math.pi) * miss.mean(1))
        record(at=where, complexity=complexity, leading=leading, specific=specific_risk(labels, r))
        record(at=where, bound=risk_bound(leading, labels), trivial=math.sqrt(2 / math.pi))


@part.arm(
    "other-task",
    over={"labels": lambda p: p.floor_labels},
    uses=("risk_shared", "risk_relevant", "floor_draws"),
    dtype="float64",
    tolerance=1e-6,
    chunk=8,
)
def other_task(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: int) -> None:
    """The representation of one task used for another: only shared features are left."""
    problem = params.tasks_of(2)
    own = problem.own(1)
    # The encoder of task 0 in coordinates of z; of task 1's private features it knows nothing.
    encoder = canonical(problem, (1.0, 1.0, 0.0)).to(seeds.device, seeds.dtype)[:, own]
    for private in PRIVATE:
        truth = problem.label_weights(seeds, "label weights", private, draws=params.floor_draws)
        points = seeds.normal(f"points, {labels}", params.floor_draws, labels, problem.relevant)
        answers = torch.einsum("sdmr,sdr->sdm", points, truth)
        found = bounded_least_squares(points @ encoder.T, answers, 1e6)
        risk = (found @ encoder - truth).square().sum(-1)
        record(at={"private": private}, risk=risk.mean(1), predicted=other_task_risk(labels, problem.shared, private))
