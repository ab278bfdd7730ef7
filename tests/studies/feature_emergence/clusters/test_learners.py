"""Ordinary training."""

import torch

from assay.studies.feature_emergence.clusters.learners import train_relu
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = PatternProblem(40, 30, 5, label_counts("parity", 5))


def test_relu_training_lowers_the_error():
    x, y = PROBLEM.sample(SEEDS, "train", 400)
    runs = list(train_relu((x, y), (x, y), SEEDS, width=50, epochs=(0, 15), batch=50))
    assert [run.epoch for run in runs] == [0, 15]
    assert (runs[1].test_accuracy > runs[0].test_accuracy + 0.2).all()
