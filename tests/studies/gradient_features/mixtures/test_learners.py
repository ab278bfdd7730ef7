from __future__ import annotations

import pytest
import torch

from assay.studies.gradient_features.learners import RELU, errors, symmetric_start, train_both
from assay.studies.gradient_features.mixtures.learners import component_errors
from assay.studies.gradient_features.problem import GaussianMixture, Sample
from assay.training import Seeds, TwoLayer

SEEDS = Seeds((0, 1))
PROBLEM = GaussianMixture.orthogonal(6, 4, norm=2.0)


def test_errors_of_components_add_up_to_the_error():
    sample = PROBLEM.sample(SEEDS, "test", 500)
    start = symmetric_start(SEEDS, 8, 6, 1.0)
    *_, (_, net) = train_both(start, lambda step: PROBLEM.sample(SEEDS, f"batch {step}", 50), 0.1, 3)
    shares, counts = component_errors(net(sample.inputs, RELU), sample, 4)
    assert counts.sum(1).tolist() == [500, 500]
    assert torch.allclose((shares * counts).sum(1) / 500, errors(net, sample))
    for j in range(4):  # the slow way
        chosen = sample.components[1] == j
        rows = Sample(sample.inputs[1:, chosen], sample.labels[1:, chosen], sample.components[1:, chosen])
        alone = TwoLayer(net.weights[1:], net.biases[1:], net.output[1:])
        assert float(shares[1, j]) == pytest.approx(float(errors(alone, rows)))


def test_a_component_without_inputs_and_a_diverged_network_have_no_error():
    sample = PROBLEM.sample(SEEDS, "test", 50)
    shares, counts = component_errors(torch.zeros(2, 50), sample, 5)
    assert counts[:, 4].tolist() == [0, 0]
    assert shares[:, 4].isnan().all()
    assert bool((shares[:, :4] == 1).all()), "an output of 0 is wrong"
    broken = torch.ones(2, 50)
    broken[1, 3] = torch.nan
    assert component_errors(broken, sample, 4)[0].isnan().all(1).tolist() == [False, True]
