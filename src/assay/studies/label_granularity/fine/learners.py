"""Training on fine labels until an output reaches B, and finetuning on the superclasses through the maximum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.methods.granularity import max_readout
from assay.training import Seeds

from ..learners import PatchNetwork, Report, Residual, Training, error_report, superclass_of
from ..problem import Samples
from ..theory import Detectors
from .theory import OUTPUT_BOUND


@dataclass
class FirstPhase:
    """What is seen until T0, seed by seed: when an output reached B, and the range of the common coefficient."""

    reached: Tensor  # T0, infinite before it
    lowest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, seeds: Seeds) -> FirstPhase:
        never = torch.full((len(seeds),), math.inf, dtype=torch.float64)
        return cls(never.clone(), never, -never)

    def see(self, step: int, outputs: Tensor, coefficient: Tensor) -> Tensor:
        """Take in the outputs before an update and the common coefficient in it. Who arrives at T0 now: (seeds,)."""
        arrived = (outputs.amax((1, 2)) >= OUTPUT_BOUND).cpu() & self.reached.isinf()
        self.reached[arrived] = step - 1
        running = self.reached.isinf()
        self.lowest = torch.where(running, torch.minimum(self.lowest, coefficient), self.lowest)
        self.highest = torch.where(running, torch.maximum(self.highest, coefficient), self.highest)
        return arrived

    def report(self) -> Report:
        """What is said about T0 has no value where the run ends before it."""
        never = self.reached.isinf()
        return {
            "t0": self.reached.masked_fill(never, math.nan),
            "t0_reached": ~never,
            "lowest_coefficient": self.lowest,
            "highest_coefficient": self.highest,
        }


def parts_at_t0(detectors: Detectors, network: PatchNetwork) -> Report:
    """How much of the outputs common and subclass features make up at T0."""
    growth = detectors.growth(network)
    counts = [count.double().flatten(1).mean(1) for count in detectors.counts()]
    made = [detectors.problem.feature_patches * g * n for g, n in zip(growth, counts, strict=True)]
    return {
        "common_output_at_t0": made[0],
        "subclass_output_at_t0": made[1],
        "growth_ratio_at_t0": growth[0] / growth[1],
    }


def errors_at_t0(network: PatchNetwork, easy: Samples, hard: Samples) -> Report:
    return {f"{name}_at_t0": value for name, value in error_report(network, easy, hard, "fine").items()}


def max_readout_residual(superclass: Tensor, fine_to_coarse: Tensor) -> Residual:
    """Finetuning on (F̂₊, F̂₋): the superclasses' residual, given to the subclass that attains the maximum."""

    def residual(outputs: Tensor) -> Tensor:
        best = max_readout(outputs, fine_to_coarse)
        coarse = one_hot(superclass, 2).to(outputs) - best.softmax(-1)
        given = torch.zeros_like(outputs)
        for y in (0, 1):
            own = fine_to_coarse == y
            winner = outputs.masked_fill(~own, float("-inf")).argmax(-1, keepdim=True)
            given.scatter_(-1, winner, coarse[..., y : y + 1])
        return given

    return residual


def finetuned(
    training: Training, network: PatchNetwork, seeds: Seeds, steps: int, *, first: int, detectors: Detectors
) -> tuple[PatchNetwork, Tensor]:
    """Cross-entropy of the maxima on fresh easy samples; does any detector's response to its feature ever fall? The
    network, and the least change of any detector in any step (seeds,)."""
    mapped = superclass_of(training.problem.subclasses, seeds.device)
    least = torch.full((len(seeds),), math.inf, dtype=torch.float64)

    def residual(batch: Samples) -> Residual:
        return max_readout_residual(batch.superclass, mapped)

    for _, _, update in training.run(network, seeds, steps, residual, first=first):
        least = torch.minimum(least, detectors.least_change(network, update.network).double().cpu())
        network = update.network
    return network, least
