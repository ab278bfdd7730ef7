"""Capacity: how many neurons are a feature's own, among random ones and in trained networks of growing width."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.methods.neuron_sets import neuron_sets
from assay.probes.specialisation import lucky_neurons
from assay.training import Seeds

from ..dynamics.learners import specialists
from ..learners import Cells, aligned, random_start
from ..params import SWEEP, Draws, Dynamics, Frequencies, check_rising
from ..theory import MARGIN, lucky_sets, ordinary_sets, set_energies


class Params(Draws, Dynamics, Frequencies):
    widths: tuple[int, ...] = Field((12, 24, 48, 96), min_length=2, description="widths of the capacity experiment")

    @model_validator(mode="after")
    def _widths_go_together(self) -> Params:
        check_rising(widths=self.widths)
        if min(self.widths) < 2:
            raise ValueError(f"a network of the capacity experiment has at least 2 neurons, not {min(self.widths)}")
        return self


part = lab.Part(
    "capacity",
    params=Params,
    presets={
        "smoke": lab.PartPreset(widths=(8, 16)),
        "paper": lab.PartPreset(widths=(12, 24, 48, 96, 192), fewer={"neuron-sets": 8, "widths": 20}),
    },
)


@part.arm(
    "neuron-sets",
    over={"features": [30, 100], "ratio": [1.0, 0.7]},
    uses=("samples",),
    tolerance=1e-6,
    working_set=lambda p: 2.0**22,
)
def random_neurons(params: Params, seeds: Seeds, record: lab.Recorder, *, features: int, ratio: float) -> None:
    """The sets 𝓜_j and 𝓜*_j of Gaussian neurons, counted and by exact and asymptotic probabilities."""
    alpha = seeds.normal(f"neurons {features}", params.samples, features)
    ordinary, lucky = ordinary_sets(alpha, ratio, MARGIN), lucky_sets(alpha, ratio, MARGIN)
    exact = neuron_sets(features, ratio, margin=MARGIN)
    record(
        trials=params.samples * features,
        ordinary=ordinary.double().mean((1, 2)),
        lucky=lucky.double().mean((1, 2)),
    )
    record(
        features_per_neuron=ordinary.double().sum(2).mean(1),
        exact_ordinary=exact.ordinary,
        exact_lucky=exact.lucky,
        independent_lucky=exact.independent,
        printed_lucky=exact.printed_lucky,
        printed_ordinary=exact.printed_ordinary,
    )


@part.arm(
    "widths",
    over={"neurons": lambda p: p.widths},
    uses=(*SWEEP, "rare", "dynamics_noise"),
    tolerance=2e-2,
    working_set=lambda p: p.bytes_per_seed(len(p.rare)),
)
def widths(params: Params, seeds: Seeds, record: lab.Recorder, *, neurons: int) -> None:
    """How many neurons specialise on rare features in wider networks (total initial energy kept), and how much of a
    feature's energy is in them."""
    problem, run = params.problem(params.dim), params.recipe(params.steps, params.attention)
    count = len(params.rare)
    cells = Cells(params.rare, [problem.deviation(params.dynamics_noise)] * count, [params.decay] * count)
    scale = params.init * (params.width / neurons) ** 0.5
    start = random_start(problem, count, seeds, width=neurons, scale=scale, attention=run.attention)
    trained = run.trained(problem, cells, seeds, start).weights
    cosines = aligned(trained, problem.features)
    for c, epsilon in enumerate(params.rare):
        found, each = specialists(cosines[:, c], problem.majority), cosines[:, c]
        owner = torch.where(lucky_neurons(each), each.argmax(-1), -1)
        covered = [(owner == j).any(-1).double() for j in problem.minority_features]
        before, after = (weights[:, c, :, : problem.features] for weights in (start.weights, trained))
        energy = set_energies(after, ordinary_sets(before, epsilon, MARGIN))
        record(
            at={"epsilon": epsilon},
            lucky_per_rare=found["lucky_per_rare"],
            features_per_neuron=found["features_per_neuron"],
            set_energy_ratio=energy[:, problem.majority :].mean(-1) / energy[:, : problem.majority].mean(-1),
        )
        record(
            at={"epsilon": epsilon},
            trials=params.minority,
            covered=torch.stack(covered, -1).mean(-1) + 0 * each.sum((-1, -2)),
        )
