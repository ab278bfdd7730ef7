"""The start: detectors before training, and the first updates of both label spaces."""

from __future__ import annotations

from typing import Self

import torch
from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import LABELS, class_count, residual_for
from ..params import NEARLY_CLEAN, Patches, check_growing
from ..theory import Detectors, expected_detectors, thresholds
from .theory import coarse_first_step, fine_first_step, first_step_noise

DRAWN = 10_000  # neurons at a time where only counts are wanted


class Params(Patches):
    initial_neurons: tuple[PositiveInt, ...] = Field(
        (5_000, 50_000, 200_000), description="m where detectors are counted"
    )

    @model_validator(mode="after")
    def _growing_neurons(self) -> Self:
        check_growing("initial_neurons", self.initial_neurons)
        return self


part = lab.Part(
    "start",
    params=Params,
    presets={
        "smoke": lab.PartPreset(initial_neurons=(2000, 10_000)),
        "laptop": lab.PartPreset(fewer={"initial": 8, "first-step": 8}),
    },
)


@part.arm(
    "initial",
    over={"m": lambda p: p.initial_neurons},
    uses=("dim", "subclasses", "threshold"),
    working_set=lambda p: 4.0 * DRAWN * p.dim,
)
def initial(params: Params, seeds: Seeds, record: lab.Recorder, *, m: int) -> None:
    """Detectors of every dictionary vector and its response before training, in one class of m neurons."""
    low, high = thresholds(params.threshold, params.dim)
    counts = torch.zeros(len(seeds), params.dim, dtype=torch.float64, device=seeds.device)
    responses = torch.zeros_like(counts)
    for i, size in enumerate([min(DRAWN, m - start) for start in range(0, m, DRAWN)]):
        weights = seeds.normal(f"initial neurons {i}", size, params.dim)
        single = (weights >= high) & ((weights >= low).sum(-1, keepdim=True) <= 1)
        counts += single.sum(1).double()
        responses += torch.relu(weights - params.threshold).sum(1).double()
    features = 2 * params.subclasses + 2
    record(
        mean_count=counts.mean(1),
        expected_count=expected_detectors(m, params.threshold, params.dim),
        fewest=counts[:, :features].amin(1),
        relative_spread=counts.std(1) / counts.mean(1),
        response_ratio=responses[:, :2].mean(1) / responses[:, 2:features].mean(1),
    )


@part.arm(
    "first-step",
    over={"labels": LABELS},
    uses=tuple(Patches.model_fields),
    dtype="float64",
    tolerance=1e-6,
    working_set=lambda p: 2 * p.working_set("fine"),
)
def first_step(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str) -> None:
    """The first three updates with hardly any noise: are members of one detector set moved alike, and how far?"""
    problem = params.problem(noise=NEARLY_CLEAN, counts="exact")
    init, training = params.initialisation(), params.training(problem)
    start = init.draw(seeds, class_count(labels, problem), problem).network
    detectors = Detectors.at(start, problem, labels, init)
    formula = coarse_first_step if labels == "coarse" else fine_first_step
    predicted = formula(params.rate, problem.subclasses, problem.feature_patches, problem.patches)
    spreads = []
    for step, _, update in training.run(start, seeds, 3, residual_for(labels, problem)):
        spreads.append(detectors.spread(update.movement))
        if step == 1:
            common, subclass = detectors.growth(update.network)
            record(
                common_over_predicted=common / predicted.common,
                subclass_over_predicted=subclass / predicted.subclass,
                ratio_over_predicted=common / subclass / predicted.ratio,
            )
        if step == 1 and labels == "coarse" and problem.features < problem.dim:
            sizes = (params.rate, problem.noise, problem.feature_patches, problem.patches)
            noise = detectors.deviations(update.movement)
            batch = 2 * problem.subclasses * params.per_subclass
            record(
                common_noise_over_predicted=noise[0] / first_step_noise(*sizes, batch),
                subclass_noise_over_predicted=noise[1] / first_step_noise(*sizes, batch, problem.subclasses),
            )
    record(spread_within_sets=torch.stack(spreads).amax(0))
