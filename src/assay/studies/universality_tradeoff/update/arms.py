"""The repair in the linear model: a contrastive update on the target's data raises its private features."""

from __future__ import annotations

import torch
from pydantic import Field, NonNegativeFloat, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import gram
from ..params import check_rising
from ..problem import LinearTasks
from ..theory import canonical, full_recovery, regularised_bound, updated_weight
from .learners import block_risk, updated


class Params(lab.Params):
    update_shared: int = Field(4, ge=1, description="shared features s of the tasks in the update")
    update_relevant: int = Field(8, ge=2, description="their features r")
    update_tasks: int = Field(4, ge=2, description="tasks T of the encoder that is updated")
    update_reaches: tuple[NonNegativeFloat, ...] = Field(
        (0.0, 0.25, 0.5, 0.75, 1.0, 1.25),
        min_length=2,
        description="radii γ of the update, as multiples of the radius of full recovery",
    )
    update_steps: int = Field(150, ge=10, description="steps of the update")
    update_batch: int = Field(1000, ge=10, description="pairs of the target per step")

    @model_validator(mode="after")
    def _update_goes_together(self) -> Params:
        check_rising(update_reaches=self.update_reaches)
        if self.update_shared >= self.update_relevant:
            raise ValueError("update_relevant must exceed update_shared, or tasks have no features of their own")
        return self

    def update_problem(self) -> LinearTasks:
        return LinearTasks(self.update_shared, self.update_relevant, self.update_tasks)


part = lab.Part(
    "update",
    params=Params,
    presets={
        "smoke": lab.PartPreset(update_steps=60, update_batch=300, update_reaches=(0.0, 0.5, 1.25)),
        "paper": lab.PartPreset(update_steps=600, update_batch=4000),
    },
)
SIZES = tuple(name for name in Params.model_fields if name != "update_reaches")


@part.arm("linear-update", over={"reach": lambda p: p.update_reaches}, uses=SIZES, dtype="float64", tolerance=1e-3)
def linear_update(params: Params, seeds: Seeds, record: lab.Recorder, *, reach: float) -> None:
    """Descent on the target's contrastive loss within a distance γ of the universal encoder."""
    problem = params.update_problem()
    basis = problem.basis(seeds)
    tasks = problem.tasks
    start = canonical(problem, (1.0, *[1 / tasks] * tasks)).to(seeds.device, seeds.dtype) @ basis.mT
    radius = reach * full_recovery(problem)
    found = gram(
        updated(problem, seeds, start, basis, radius, steps=params.update_steps, batch=params.update_batch), basis
    )
    diagonal = found.diagonal(dim1=1, dim2=2)
    own, s = problem.own(0), problem.shared
    beta = diagonal[:, own[s:]].mean(1)
    others = (diagonal[:, problem.relevant : problem.features] - 1 / tasks).abs().amax(1)
    record(root_weight=beta.sqrt(), predicted=updated_weight(problem, radius), other_change=others)
    record(shared_weight=diagonal[:, :s].mean(1), bound=regularised_bound(1.0, updated_weight(problem, radius) ** 2))
    points = seeds.normal("labelled points", 200, s, problem.relevant)
    truth = problem.label_weights(seeds, "label weights", 0.5, draws=200)
    block = found[:, own][:, :, own]
    record(risk=block_risk(block, points, truth))
    record(specific_risk=block_risk(torch.eye(problem.relevant).to(block).expand_as(block), points, truth))
