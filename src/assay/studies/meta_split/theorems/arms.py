"""FOMAML with and without a split on the planted problem, in the base setting of Theorems 4.4 and 4.5 and around it."""

from __future__ import annotations

import math
from typing import Any

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS, alignment_metrics, by_cell, look_steps, outer_samples
from ..params import Planted, record_shares
from .learners import amplification, bound_metrics
from .theory import feature_only_loss, noise_threshold, proof_scales


def _proof_setting(dim: int) -> dict[str, Any]:
    """Appendix D.1 with whole tasks and filters. Purely asymptotic: its outer rate moves little in 600 steps."""
    scales, log = proof_scales(dim), math.log(dim)
    sizes = dict(dim=dim, dictionary=scales.M, tasks=scales.K, filters=scales.m, initial_scale=scales.sigma_0)
    strengths = dict(noise_energy=scales.s, task_norm=scales.sigma_s * dim**0.5)
    return {**sizes, **strengths, "inner_rate": log**0.4, "outer_rate": log**-5}


SETTINGS: dict[str, dict[str, Any]] = {
    "base": {},
    "pooled": dict(inner_steps=0),
    "steps-1": dict(inner_steps=1),
    "steps-2": dict(inner_steps=2),
    "steps-3": dict(inner_steps=3),
    "tasks-2": dict(tasks=2),
    "tasks-5": dict(tasks=5),
    "tasks-20": dict(tasks=20),
    "tasks-40": dict(tasks=40),
    "noise-1": dict(noise_energy=1.0),
    "noise-2": dict(noise_energy=2.0),
    "noise-4": dict(noise_energy=4.0),
    "noise-16": dict(noise_energy=16.0),
    "swapped-rates": dict(inner_rate=0.05, outer_rate=0.5, steps=300),
    "relu": dict(activation="relu"),
    "two-tasks": dict(tasks=2, noise_energy=6.0),
    "two-tasks-pooled": dict(tasks=2, noise_energy=6.0, inner_steps=0),
    "large-start": dict(initial_scale=2000**-0.5),
    "long": dict(steps=5000, look_every=50),
    "proof": _proof_setting(2000),
}
_FEW_TASKS = {name: dict(tasks=min(fixed["tasks"], 6)) for name, fixed in SETTINGS.items() if "tasks" in fixed}
_ALL_SEEDS = ("base", "long", "pooled", "two-tasks", "two-tasks-pooled")  # the last three are cheap
_SHORT = {"long": dict(steps=100), "swapped-rates": dict(steps=40)}

part = lab.Part(
    "theorems",
    params=Planted,
    settings=SETTINGS,
    presets={
        "smoke": lab.PartPreset(
            settings={
                **_FEW_TASKS,
                **_SHORT,
                "large-start": dict(initial_scale=200**-0.5),
                "proof": _proof_setting(200),
            }
        ),
        "laptop": lab.PartPreset(fewer={name: 5 for name in SETTINGS if name not in _ALL_SEEDS}),
    },
)


@part.arm("fomaml", over={"setting": list(SETTINGS)}, working_set=Planted.working_set, dtype="float64", tolerance=1e-5)
def fomaml(params: Planted, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Both splits on the same draws: losses, alignments and amplification over time, and the exact bounds."""
    problem = params.problem()
    run = params.stack(problem, problem.sample(seeds), seeds, params.cells())
    level = noise_threshold(params.filters, params.inner_rate, params.noise_energy, params.samples, params.inner_steps)
    labels = [{"split": split} for split in SPLITS]
    for look in run.train(params.steps, look_steps(params.steps, params.look_every)):
        found = {
            "meta_loss": look.meta_loss,
            **run.test(look),
            **alignment_metrics(look, run.conditions, level),
            **amplification(look, run.conditions),
            "feature_only_loss": feature_only_loss(look.before.shared, run.conditions.knee.unsqueeze(-1)),
            **bound_metrics(look, run.conditions),
        }
        validation = found.pop("validation_excess").chunk(2)[1]
        for at, values in by_cell(labels, found):
            memorised = outer_samples(at["split"], params.tasks, params.samples, params.support)
            record_shares(record, values, {**run.trials, "memorised": memorised}, step=look.step, at=at)
        record(step=look.step, at=labels[1], validation_excess=validation)
