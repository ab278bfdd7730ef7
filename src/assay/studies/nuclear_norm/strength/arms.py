"""The strength of the penalty: ranks of features and accuracy outside, against a Frobenius control of equal length."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from assay import lab
from assay.evaluation.domain_checks import Course
from assay.evaluation.domain_data import Samples
from assay.methods import NuclearNorm
from assay.training import Seeds

from ..images.arms import OPTIONS, SHOWN
from ..images.arms import Params as Images
from ..images.learners import FrobeniusNorm, stopped_at
from ..params import check_rising
from .learners import Outcome, at_matched_length, train_with

Strength = Annotated[float, Field(gt=0)]
PENALTIES = ("nuclear norm", "Frobenius", "scale-free")


class Params(Images):
    strengths: tuple[Strength, ...] = Field(
        (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), min_length=1, description="strengths λ of the nuclear norm over rows"
    )
    frobenius_strengths: tuple[Strength, ...] = Field(
        (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), min_length=1, description="strengths of the Frobenius norm over rows"
    )
    scale_free_strengths: tuple[Strength, ...] = Field(
        (0.01, 0.03, 0.1, 0.3), min_length=1, description="strengths of the nuclear over the Frobenius norm"
    )

    def model_post_init(self, context: Any) -> None:
        grids = ("strengths", "frobenius_strengths", "scale_free_strengths")
        check_rising(**{name: getattr(self, name) for name in grids})

    def penalties(self, kind: str) -> dict[float, NuclearNorm]:
        """The penalties of a kind by strength."""
        warmup = self.domain_steps // 50
        if kind == "Frobenius":
            return {lam: FrobeniusNorm(lam, warmup, every=0) for lam in self.frobenius_strengths}
        if kind == "scale-free":
            return {lam: NuclearNorm(lam, warmup, "fro", every=0) for lam in self.scale_free_strengths}
        return {lam: NuclearNorm(lam, warmup, every=0) for lam in self.strengths}


part = lab.Part(
    "strength",
    params=Params,
    presets={
        "smoke": lab.PartPreset(strengths=(0.1, 1.0), frobenius_strengths=(0.1, 3.0), scale_free_strengths=(0.1, 0.3)),
        "paper": lab.PartPreset(fewer={"strength": 5}),
    },
)


@part.arm("strength", over={"cue": list(SHOWN)}, **OPTIONS)
def strength(params: Params, seeds: Seeds, record: lab.Recorder, *, cue: str) -> None:
    """Trainings on three domains at every strength, looked at in the reversed one; the last step, nothing chosen."""
    found = []
    for seed in seeds:
        domains, network, classes = params.start(cue, seed, seeds.device)
        samples = [Samples(name, (domain.images, domain.labels)) for name, domain in domains.items()]
        course = Course(**params.course(seeds.device))
        trained = {("nuclear norm", 0.0): None, **_penalties(params)}
        ends = {}
        for done, (key, penalty) in enumerate(trained.items(), 1):
            ends[key] = train_with(penalty, params.domain_rate, network, samples, course, classes, seed)
            record.progress(done, len(trained))
        found.append(ends)
    for kind, lam in found[0]:
        at: dict[str, Any] = {"penalty": kind, "lam": lam}
        _record(record, at, [ends[kind, lam] for ends in found])
        record(at=at, above_curve=[_beyond(ends[kind, lam], ends["nuclear norm", 0.0]) for ends in found])
    ranks, accuracies = zip(*(_matched(params, ends) for ends in found), strict=True)
    record(matched_rank=ranks, matched_accuracy=accuracies)
    for name, lam in (("none", 0.0), ("nuclear norm", params.strengths[len(params.strengths) // 2])):
        values = [ends["nuclear norm", lam].ranks.spectrum for ends in found]
        record.array(f"spectrum: {name}", np.asarray(values))
    record.note(spectrum_strength=params.strengths[len(params.strengths) // 2])


def _penalties(params: Params) -> dict[tuple[str, float], NuclearNorm]:
    return {(kind, lam): each for kind in PENALTIES for lam, each in params.penalties(kind).items()}


def _record(record: lab.Recorder, at: dict[str, Any], ends: list[Outcome]) -> None:
    record(
        at=at,
        accuracy=[end.accuracy for end in ends],
        validation=[end.validation for end in ends],
        length=[end.length for end in ends],
        norm=[end.penalty for end in ends],
        stable_rank=[end.ranks.stable for end in ends],
        centred_rank=[end.ranks.centred for end in ends],
        printed_rank=[end.ranks.scaled for end in ends],
        norm_ratio=[end.ranks.ratio for end in ends],
    )


def _beyond(end: Outcome, plain: Outcome) -> float:
    """The accuracy outside above the best of the plain training's looks with at least the same validation accuracy."""
    validation, outside = zip(*plain.looks, strict=True)
    return end.accuracy - stopped_at(end.validation, validation, outside)


def _matched(params: Params, ends: dict[tuple[str, float], Outcome]) -> tuple[float, float]:
    """Means over strengths of ln(stable rank/that of the control at the same length) and of the difference in accuracy
    outside, where the control has that length and the training still classifies: its validation accuracy is at least
    nine tenths of that without a penalty. NaN where there is no such strength."""
    plain = ends["nuclear norm", 0.0]
    control = [plain, *(ends["Frobenius", lam] for lam in params.frobenius_strengths)]
    lengths = [end.length for end in control]
    ranks, accuracies = [], []
    for end in (ends["nuclear norm", lam] for lam in params.strengths):
        rank = at_matched_length(lengths, [each.ranks.stable for each in control], end.length)
        accuracy = at_matched_length(lengths, [each.accuracy for each in control], end.length)
        if rank > 0 and end.validation >= 0.9 * plain.validation:
            ranks.append(math.log(end.ranks.stable / rank))
            accuracies.append(end.accuracy - accuracy)
    return (float(np.mean(ranks)), float(np.mean(accuracies))) if ranks else (math.nan, math.nan)
