"""The explorer's networks are those that the claims judge."""

from __future__ import annotations

import torch

from assay.studies.feature_emergence.learners import emerge, initialise
from assay.studies.feature_emergence.network.learners import train_network
from assay.studies.feature_emergence.neurons.learners import looks
from assay.studies.feature_emergence.study import study
from assay.training import Seeds


def test_the_looks_begin_at_the_first_weights_and_end_with_the_trained_network():
    params = study.resolve("smoke", {})
    seeds, stages, problem = Seeds((0, 1)), params.stages(), params.problem()
    train, _ = params.data(problem, seeds)
    fit = params.network_fit()
    found = list(looks(seeds, stages, problem.features, train, fit))
    start = initialise(seeds, stages, problem.features)
    two = emerge(start, *train, stages)[1]
    *_, (last, trained) = train_network(two, *train, fit, seeds)
    assert [step for step, _ in found][:4] == [0, 1, 2, 3]
    assert found[-1][0] == 2 + last
    torch.testing.assert_close(found[0][1].weights, start.weights)
    torch.testing.assert_close(found[2][1].weights, two.weights)
    torch.testing.assert_close(found[-1][1].weights, trained.weights)
    # Each look is a copy: training goes on in place.
    assert not torch.equal(found[3][1].output, found[-1][1].output)
