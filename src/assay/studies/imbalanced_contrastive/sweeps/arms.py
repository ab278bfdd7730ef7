"""Sweeps over the frequency of rare features and the noise: which neurons align, and what the representation is good
for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pydantic import Field, model_validator

from assay import lab
from assay.probes.specialisation import aligned_counts
from assay.training import Seeds

from ..learners import Cells, aligned, random_start
from ..params import SWEEP, Frequencies, check_frequencies, check_rising
from .learners import read_out


class Params(Frequencies):
    noise: tuple[float, ...] = Field((0.05, 0.45, 1.25), min_length=1, description="NSR = σ²d₁ of Figures 2 and 3")
    rare_low: tuple[float, ...] = Field((0.05, 0.15, 0.25, 0.35, 0.5), min_length=2, description="ε of Figures 4, 5")
    noise_high: tuple[float, ...] = Field((0.45, 1.25, 2.8125, 5.0), min_length=3, description="NSR of Figures 4, 5")
    head_train: int = Field(1000, ge=50, description="pairs that the regression head is fitted on")
    head_test: int = Field(5000, ge=50, description="test pairs")

    @model_validator(mode="after")
    def _noise_goes_together(self) -> Params:
        check_rising(noise=self.noise, rare_low=self.rare_low, noise_high=self.noise_high)
        check_frequencies(self.rare_low)
        if min(*self.noise, *self.noise_high) < 0:
            raise ValueError("a noise-to-signal ratio is not negative")
        return self

    @property
    def noise_of_figure_4(self) -> tuple[float, ...]:
        return self.noise_high[-3:]

    @property
    def noise_of_figure_5(self) -> tuple[float, ...]:
        return self.noise_high[:3]

    def grid(self, rare: Sequence[float], noise: Sequence[float]) -> tuple[list[tuple[float, float]], Cells]:
        """Every frequency with every noise-to-signal ratio, and the trainings with them."""
        points = list(itertools.product(rare, noise))
        sigma = self.problem(self.dim).deviation
        return points, Cells([e for e, _ in points], [sigma(nsr) for _, nsr in points], [self.decay] * len(points))


part = lab.Part(
    "sweeps",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            noise=(0.45,), rare_low=(0.1, 0.5), noise_high=(0.45, 1.25, 2.8125), head_train=100, head_test=200
        ),
        "paper": lab.PartPreset(rare_low=tuple(round(0.05 * k, 2) for k in range(1, 11))),
    },
)


@part.arm(
    "alignment",
    uses=(*SWEEP, "rare", "noise"),
    tolerance=2e-2,
    working_set=lambda p: p.bytes_per_seed(len(p.rare) * len(p.noise)),
)
def alignment(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Figures 2 and 3: neurons aligned with rare features, over ε and noise."""
    problem, run = params.problem(params.dim), params.recipe(params.steps, params.attention)
    points, cells = params.grid(params.rare, params.noise)
    start = random_start(problem, len(points), seeds, width=params.width, scale=params.init, attention=run.attention)
    encoders = run.trained(problem, cells, seeds, start)
    cosines = aligned(encoders.weights, problem.features)
    best = cosines.amax(-2)
    counts = aligned_counts(cosines) + 0 * best
    energy = encoders.weights[..., : problem.features].square().sum(-2).sqrt()
    rare, frequent = slice(problem.majority, None), slice(0, problem.majority)
    for c, (epsilon, nsr) in enumerate(points):
        record(
            at={"epsilon": epsilon, "nsr": nsr},
            aligned=counts[:, c, rare].mean(-1),
            best=best[:, c, rare].mean(-1),
            frequent_aligned=counts[:, c, frequent].mean(-1),
            energy_ratio=energy[:, c, rare].mean(-1) / energy[:, c, frequent].mean(-1),
        )


@part.arm(
    "representation",
    uses=(*SWEEP, "rare_low", "noise_high", "head_train", "head_test"),
    tolerance=2e-2,
    working_set=lambda p: p.bytes_per_seed(len(p.rare_low) * len(p.noise_high)),
)
def representation(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Figures 4 and 5: similarity of positive test pairs and regression on the representation, over ε and noise."""
    problem, run = params.problem(params.dim), params.recipe(params.steps, params.attention)
    points, cells = params.grid(params.rare_low, params.noise_high)
    start = random_start(problem, len(points), seeds, width=params.width, scale=params.init, attention=run.attention)
    encoders = run.trained(problem, cells, seeds, start)
    sizes = {"train": params.head_train, "test": params.head_test}
    for balanced in (True, False):
        found = read_out(problem, cells, seeds, encoders, run, **sizes, balanced=balanced)
        for c, (epsilon, nsr) in enumerate(points):
            record(
                at={"epsilon": epsilon, "nsr": nsr, "test": "balanced" if balanced else "as in training"},
                pair_cosine=found.cosine[:, c],
                regression_error=found.error[:, c],
            )
