"""Gaussian clusters on a cube: does ordinary training send a neuron to every centre?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from assay import lab
from assay.probes.directions import cosines
from assay.training import Seeds

from ..params import Patterns, check_distinct
from .learners import train_relu
from .problem import MIXTURES, GaussianMixture


class Params(Patterns):
    mixtures: tuple[Literal["100-4", "25-4", "100-5"], ...] = Field(
        ("100-4", "25-4", "100-5"), description="Gaussian mixtures by dimension and factors"
    )
    mixture_samples: int = Field(10_000, ge=100, description="training samples of the Gaussian mixture")
    mixture_width: int = Field(800, ge=2, description="neurons on the Gaussian mixture")
    mixture_epochs: tuple[NonNegativeInt, ...] = Field(
        (0, 50, 80), description="epochs at which its weights are looked at"
    )

    @model_validator(mode="after")
    def _mixtures_go_together(self) -> Self:
        check_distinct(mixtures=self.mixtures, mixture_epochs=self.mixture_epochs)
        if 0 not in self.mixture_epochs:
            raise ValueError(f"mixture_epochs must include 0, where the others start from, not {self.mixture_epochs}")
        return self


part = lab.Part(
    "clusters",
    params=Params,
    presets={
        "smoke": lab.PartPreset(mixture_samples=600, mixture_width=100, mixture_epochs=(0, 12)),
        "laptop": lab.PartPreset(
            mixtures=("100-4", "25-4"), mixture_samples=4_000, mixture_epochs=(0, 30, 50), fewer={"mixture": 4}
        ),
    },
)


@part.arm(
    "mixture",
    over={"mixture": lambda params: params.mixtures},
    uses=("mixture_samples", "mixture_width", "mixture_epochs", "test_samples"),
    working_set=lambda params: 4.0 * (5 * params.mixture_width * 100 + 128 * (100 + 3 * params.mixture_width)),
)
def mixture(params: Params, seeds: Seeds, record: lab.Recorder, *, mixture: str) -> None:
    """Ordinary training on Gaussian clusters at the vertices of a cube."""
    problem = GaussianMixture(*MIXTURES[mixture])
    data = problem.sample(seeds, "train", params.mixture_samples)
    test = problem.sample(seeds, "test", params.test_samples)
    centres, starts = problem.truth(seeds), []
    for run in train_relu(data, test, seeds, width=params.mixture_width, epochs=params.mixture_epochs):
        best = cosines(run.weights, centres).amax(1)  # (seeds, centres): the nearest neuron of every centre
        starts.append(best)
        record(step=run.epoch, worst_centre_cosine=best.amin(1), smallest_rise=(best - starts[0]).amin(1))
        record(step=run.epoch, trials=params.test_samples, test_accuracy=run.test_accuracy)
        record.array("centre_cosines", best, step=run.epoch)
