"""The audit finds memorisation where it was put, and none where there is nothing to memorise."""

from dataclasses import replace

import pytest
import torch

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.split_audit import SplitAudit
from assay.studies.meta_split import theory
from assay.studies.meta_split.learners import TwoLayerCNN
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
        lambda: TwoLayerCNN(start, 0.5), lambda model: torch.optim.SGD(model.parameters(), lr=0.5), tasks_of(observed),
        tasks_of(unseen), lambda f, y: theory.loss(y * f).mean(), seed=0,
    )  # fmt: skip


def test_strong_noise_is_memorised_without_a_split():
    report = audited(10.0)
    assert report.memorises
    assert report.without_split.amplification > report.with_split.amplification
    assert report.without_split.meta_train_loss < 0.1
    assert report.without_split.held_out_gain < 0.05
    assert report.with_split.held_out_gain > 0.2
    assert report.with_split.adapted_accuracy > 0.9
    assert report.without_split.adapted_accuracy < 0.8
    assert "amplification" in report.table()


def test_weak_noise_leaves_nothing_to_find():
    report = audited(1.0)
    assert not report.memorises
    assert report.without_split.test_accuracy > 0.95
    assert report.with_split.test_accuracy > 0.95


def test_bad_audits_are_refused():
    audit = SplitAudit(Fomaml(0.1))
    with pytest.raises(ValueError, match="positive"):
        replace(audit, steps=0)
    with pytest.raises(ValueError, match="positive"):
        replace(audit, test_tasks=0)
