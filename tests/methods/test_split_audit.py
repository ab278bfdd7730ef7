"""The audit finds memorisation where it was put, and none where there is nothing to memorise."""

from dataclasses import replace

import pytest
import torch

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.split_audit import AuditReport, AuditRow, SplitAudit
from assay.studies.meta_split import theory
from assay.studies.meta_split.controls.learners import TwoLayerCNN
from assay.studies.meta_split.problem import SharedFeature
from assay.training.seeds import Seeds

SEEDS = Seeds((0,), dtype=torch.float64)


def tasks_of(tasks):
    return [Task(tasks.inputs[0, k], tasks.labels[0, k]) for k in range(tasks.labels.shape[1])]


def audited(noise_energy):
    problem = SharedFeature(300, 20, 6, 4, 2, noise_energy=noise_energy)
    observed, unseen = problem.sample(SEEDS), problem.sample_unseen(SEEDS, 10, 8)
    start = 1e-3 * SEEDS.normal("filters", 8, 300)[0]
    audit = SplitAudit(Fomaml(0.5, 5, tasks_per_step=6), steps=40, test_tasks=10)
    return audit.run(
        lambda: TwoLayerCNN(start, 0.5),
        lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
        tasks_of(observed),
        tasks_of(unseen),
        lambda f, y: theory.loss(y * f).mean(),
        seed=0,
    )


def test_strong_noise_is_memorised_without_a_split():
    report = audited(10.0)
    assert report.memorises
    assert report.without_split.amplification > report.with_split.amplification
    assert report.without_split.meta_train_loss < 0.1
    assert report.without_split.held_out_gain < 0.05
    assert report.with_split.held_out_gain > 0.2
    assert report.with_split.adapted_accuracy > 0.9
    assert report.without_split.adapted_accuracy < 0.8
    assert "amplification" in repr(report)


def test_weak_noise_leaves_nothing_to_find():
    report = audited(1.0)
    assert not report.memorises
    assert report.without_split.test_accuracy > 0.95
    assert report.with_split.test_accuracy > 0.95


def test_bad_audits_are_refused():
    audit = SplitAudit(Fomaml(0.1))
    with pytest.raises(ValueError, match="steps must be at least 1"):
        replace(audit, steps=0)
    with pytest.raises(ValueError, match="test_tasks must be at least 2"):
        replace(audit, test_tasks=1)


def test_both_ways_must_start_from_the_same_weights():
    problem = SharedFeature(60, 20, 6, 4, 2, noise_energy=2.0)
    tasks = tasks_of(problem.sample(SEEDS))
    model = TwoLayerCNN(0.1 * SEEDS.normal("filters", 8, 60)[0], 0.5)
    with pytest.raises(ValueError, match="untrained model anew"):
        SplitAudit(Fomaml(0.5, 1, tasks_per_step=2), steps=2, test_tasks=2).run(
            lambda: model,
            lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
            tasks,
            tasks,
            lambda f, y: theory.loss(y * f).mean(),
            seed=0,
        )


def test_memorisation_needs_a_small_loss_a_clear_amplification_and_a_cost():
    row = AuditRow("train-val", 0.01, 0.7, 0.5, 0.4, 0.9, 1.0, 0.9, (0.0, 0.1, 0.2))
    worse = replace(row, split="train-train", adapted_accuracy=0.7, amplifications=(0.8, 0.9, 1.1))
    assert AuditReport(row, worse).memorises
    same, noisy = (0.0, 0.1, 0.21), (3.0, 0.0, 0.0)
    for change in (
        dict(meta_train_loss=0.5),
        dict(adapted_accuracy=0.89),
        dict(amplifications=same),
        dict(amplifications=noisy),
    ):
        assert not AuditReport(row, replace(worse, **change)).memorises
