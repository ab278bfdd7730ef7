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


def pair(gained, lost, loss=0.01):
    """Rows of one seed: how much further the gains are apart without a split, and the accuracy that it costs."""
    row = AuditRow("train-val", 0.01, 0.7, 0.5, 0.4, 0.9, 1.0, 0.9, (0.0, 0.2), (0.9, 0.9))
    return row, replace(
        row,
        split="train-train",
        meta_train_loss=loss,
        adapted_accuracy=0.9 - lost,
        amplifications=(gained, gained + 0.2),
        adapted_accuracies=(0.9 - lost, 0.9 - lost),
    )


def test_several_seeds_decide_by_their_intervals():
    clear = AuditReport.over([pair(1.0, 0.2), pair(1.1, 0.25), pair(0.9, 0.22)])
    assert clear.advice == "memorises"
    assert clear.with_split.adapted_accuracy == pytest.approx(0.9)
    assert clear.without_split.amplification == pytest.approx(1.1)
    assert clear.apart.estimate == pytest.approx(1.0)
    assert clear.worse.estimate == pytest.approx((0.2 + 0.25 + 0.22) / 3)
    assert clear.apart.count == clear.worse.count == 3
    assert {"difference", "low", "high"} <= set(clear.table()[0])
    assert "over 3 seeds" in clear.headline()
    pytest.importorskip("altair")
    assert "layer" in str(clear.figure().to_dict())
    spread = AuditReport.over([pair(1.0, 0.2), pair(1.1, -0.1), pair(0.9, 0.02)])
    assert spread.advice == "undecided"
    harmless = AuditReport.over([pair(1.0, 0.001), pair(1.1, 0.0), pair(0.9, -0.001)])
    assert harmless.advice == "does not"
    unfitted = AuditReport.over([pair(1.0, 0.2, loss=0.5), pair(1.1, 0.25, loss=0.4), pair(0.9, 0.22, loss=0.6)])
    assert unfitted.advice == "undecided"
    assert AuditReport.over([pair(1.0, 0.2), pair(1.1, 0.25)]).advice == "undecided"  # two seeds have no interval


def test_seeds_are_run_each_and_one_alone_is_as_before():
    tasks = [
        Task(torch.randn(8, 4, generator=torch.Generator().manual_seed(k)), torch.tensor([0, 1] * 4)) for k in range(4)
    ]
    audit = SplitAudit(Fomaml(0.1, 1, tasks_per_step=2), steps=2, test_tasks=3)

    def run(**which):
        return audit.run(
            lambda: torch.nn.Linear(4, 2),
            lambda model: torch.optim.SGD(model.parameters(), 0.1),
            tasks,
            tasks,
            torch.nn.functional.cross_entropy,
            **which,
        )

    one, several = run(seed=1), run(seeds=3)
    assert several.by_seed[1] == one.by_seed[0]
    assert several.by_seed == run(seeds=[0, 1, 2]).by_seed
    assert one.with_split == one.by_seed[0][0]
    for wrong in ({}, {"seed": 0, "seeds": 2}, {"seeds": 0}, {"seeds": [1, 1]}, {"seeds": "12"}):
        with pytest.raises(ValueError, match="seed"):
            run(**wrong)
