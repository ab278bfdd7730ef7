"""One training at a given penalty, and what its features look like outside the training domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.evaluation import Algorithm
from assay.evaluation.domain_checks import Course
from assay.evaluation.domain_data import Samples
from assay.evaluation.domain_training import train
from assay.methods import nuclear_norm
from assay.probes.stable_rank import RankReport, rank_report

from ..images.learners import Classifier, Kept


@dataclass(frozen=True)
class Outcome:
    """The end of a training, and its looks on the way (validation accuracy, accuracy outside); the features' length
    ‖F‖_F/√rows outside, their normalised nuclear norm and their ranks."""

    accuracy: float
    validation: float
    looks: tuple[tuple[float, float], ...]
    length: float
    penalty: float
    ranks: RankReport


def train_with(
    penalty: Any, rate: float, network: Classifier, domains: Sequence[Samples], course: Course, classes: int, seed: int
) -> Outcome:
    """Train on all domains but the last, which is looked at."""
    made = Kept(network)
    algorithm = Algorithm("penalised", learning_rate=rate, penalty=penalty)
    checks = train(algorithm, made, classes, domains[:-1], domains[-1:], course, seed)
    looks = tuple((check.validation, check.accuracies[domains[-1].name]) for check in checks)
    features = outside_features(made.last, domains[-1])
    return Outcome(
        looks[-1][1],
        looks[-1][0],
        looks,
        float(features.square().sum(1).mean().sqrt()),
        float(nuclear_norm(features)),
        rank_report(features),
    )


@torch.no_grad()
def outside_features(network: Classifier, domain: Samples) -> Tensor:
    """(images, width), in evaluation mode."""
    network.eval()
    device = network.head.weight.device
    return torch.cat([network.features(part.to(device)) for part in domain.inputs.split(256)]).cpu()


def at_matched_length(lengths: Sequence[float], heights: Sequence[float], length: float) -> float:
    """The control's rank or accuracy where its features have this length, between two of its trainings on a
    logarithmic scale; NaN outside of what it reached."""
    kept = [(at, height) for at, height in zip(lengths, heights, strict=True) if at > 0]
    if length <= 0 or not kept or not np.isfinite([*lengths, *heights, length]).all():
        return float("nan")
    order = sorted(kept)
    at = np.log([each[0] for each in order])
    if not at[0] <= np.log(length) <= at[-1]:
        return float("nan")
    return float(np.interp(np.log(length), at, [each[1] for each in order]))
