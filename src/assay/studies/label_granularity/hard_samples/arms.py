"""Which hard samples mislead: the number of subclasses across k*, and a patch of strong noise."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Self

from pydantic import Field, PositiveFloat, model_validator

from assay import lab
from assay.training import Seeds

from .. import theory
from ..learners import LABELS, class_count, error_report, errors, residual_for, superclass_scores
from ..params import FineTraining, Patches, Testing, check_growing
from ..problem import STRONG
from .theory import counted_rule, rule_report, strong_noise_scales


class Params(FineTraining, Testing, Patches):
    sweep: tuple[int, ...] = Field((2, 4, 8, 16, 24), min_length=3, description="numbers of subclasses k of the sweep")
    sweep_distractors: int = Field(2, ge=1, description="their distractors s†")
    sweep_steps: int = Field(100, ge=10, description="their steps")
    strong_noises: tuple[PositiveFloat, ...] = Field(
        (0.02, 0.1, 0.3, 1.0, 3.0), description="σ_ζ* of the second distractor"
    )

    @model_validator(mode="after")
    def _possible_sweep(self) -> Self:
        for k in self.sweep:
            self.problem(subclasses=k, distractors=self.sweep_distractors)
        check_growing("sweep", self.sweep)
        check_growing("strong_noises", self.strong_noises)
        return self

    @property
    def sweep_critical(self) -> float:
        """k* of the sweep, infinite where distractors have no strength."""
        return self.critical_subclasses(distractors=self.sweep_distractors)

    @property
    def tied_critical(self) -> float:
        """k* of the sweep for detectors whose biases fall as they grow."""
        problem = self.problem(distractors=self.sweep_distractors)
        return theory.critical_subclasses(problem, self.bias_rate)

    @property
    def separating_noise(self) -> float | None:
        """The σ_ζ* nearest to the middle of the two scales at which noise misleads coarse and fine networks; None when
        no value lies between them."""
        low, high = strong_noise_scales(self.subclasses, self.feature_patches)
        between = [sigma for sigma in self.strong_noises if low < sigma < high]
        return min(between, key=lambda sigma: abs(math.log(sigma**2 / (low * high))), default=None)

    @property
    def around_critical(self) -> tuple[int, ...]:
        """The numbers of subclasses next to k* in the sweep, one below and one not, where hard samples should come out
        either way; none when the sweep lies on one side."""
        return next((pair for pair in pairwise(self.sweep) if pair[0] < self.sweep_critical <= pair[1]), ())


part = lab.Part(
    "hard_samples",
    params=Params,
    presets={
        "smoke": lab.PartPreset(sweep=(2, 4, 8), sweep_steps=10, strong_noises=(0.02, 1.0)),
        "laptop": lab.PartPreset(fewer={"sweep": 8, "strong-noise": 4}),
        "paper": lab.PartPreset(sweep=(2, 4, 8, 16, 24, 32)),
    },
)


@part.arm(
    "sweep",
    over={"k": lambda p: p.sweep},
    uses=(*Patches.model_fields, "sweep_distractors", "sweep_steps", "test_per_subclass"),
    tolerance=0.05,
    working_set=lambda p: p.working_set("coarse"),
)
def sweep(params: Params, seeds: Seeds, record: lab.Recorder, *, k: int) -> None:
    """Coarse training for several numbers of subclasses, across the predicted k*."""
    problem = params.problem(subclasses=k, distractors=params.sweep_distractors)
    init = params.initialisation()
    start = init.draw(seeds, 2, problem).network
    easy, hard = problem.test_sets(seeds, params.test_per_subclass)
    training, residual = params.training(problem), residual_for("coarse", problem)
    for _, _, update in training.run(start, seeds, params.sweep_steps, residual):
        network = update.network
    common, subclass = theory.Detectors.at(start, problem, "coarse", init).growth(network)
    record(step=params.sweep_steps, growth_ratio=common / subclass)
    record(step=params.sweep_steps, trials=len(easy), **error_report(network, easy, hard, "coarse"))
    foretold = counted_rule(hard, *theory.firing(start, problem, "coarse"), params.bias_rate)
    record(trials=len(hard), **rule_report(network, hard, problem), foretold_error=foretold.double().mean(1))


@part.arm(
    "strong-noise",
    over={"labels": LABELS},
    uses=(*Patches.model_fields, "strong_noises", "fine_steps", "test_per_subclass"),
    tolerance=0.05,
    working_set=lambda p: p.working_set("fine"),
)
def strong_noise(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str) -> None:
    """Hard samples with one patch of strong noise and no other distractor: the second way to mislead."""
    problem = params.problem(distractors=0, counts="exact")
    start = params.initialisation(keep_rest=True).draw(seeds, class_count(labels, problem), problem)
    assert start.rest is not None
    training, residual = params.training(problem), residual_for(labels, problem)
    for _, _, update in training.run(start.network, seeds, params.fine_steps, residual):
        network = update.network
    for sigma in params.strong_noises:
        loud = params.problem(distractors=0, strong_noise=sigma, counts="exact")
        hard = loud.sample(seeds, "strong noise", params.test_per_subclass, hard=True, compact=True)
        strong = hard.patches[:, :, (hard.kinds[0, 0] == STRONG).nonzero().squeeze(1)]
        # Untrained neurons were left out of training, exactly; strong noise may wake them.
        outputs = network.outputs(hard.patches) + start.rest.outputs(strong, rows=32)
        scores = superclass_scores(outputs, hard, labels)
        record(at={"strong": sigma}, trials=len(hard), hard_error=errors(scores, hard.superclass))
