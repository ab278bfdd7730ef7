from __future__ import annotations

import math

import pytest
import torch

from assay.evaluation.domain_checks import Course
from assay.evaluation.domain_data import Samples
from assay.methods import NuclearNorm
from assay.studies.nuclear_norm.images.learners import make_network
from assay.studies.nuclear_norm.strength.learners import at_matched_length, outside_features, train_with


def test_the_control_is_read_between_its_trainings_on_a_logarithmic_scale():
    assert at_matched_length([1.0, 100.0], [2.0, 4.0], 10.0) == pytest.approx(3.0)
    assert at_matched_length([100.0, 1.0], [4.0, 2.0], 100.0) == pytest.approx(4.0)


@pytest.mark.parametrize("length", [0.5, 200.0, 0.0, math.nan])
def test_lengths_that_the_control_never_had_are_no_number(length):
    assert math.isnan(at_matched_length([1.0, 100.0], [2.0, 4.0], length))
    assert math.isnan(at_matched_length([1.0, math.nan], [2.0, 4.0], 10.0))
    assert math.isnan(at_matched_length([0.0], [2.0], 10.0))


def test_a_strong_norm_shortens_features():
    g = torch.Generator().manual_seed(0)
    domains = [
        Samples(str(at), (torch.rand(40, 1, 6, 6, generator=g), torch.randint(3, (40,), generator=g)))
        for at in range(3)
    ]
    network = make_network("perceptron", (1, 6, 6), 8, 3, 0)
    course = Course(steps=30, batch=10, check_every=30)
    free, short = (
        train_with(penalty, 1e-2, network, domains, course, 3, 0) for penalty in (None, NuclearNorm(3.0, warmup=0))
    )
    assert short.length < 0.5 * free.length
    assert short.penalty < free.penalty
    assert free.length == pytest.approx(math.sqrt(sum(v**2 for v in free.ranks.spectrum) / 40), rel=1e-4)
    assert outside_features(network, domains[-1]).shape == (40, 8)
