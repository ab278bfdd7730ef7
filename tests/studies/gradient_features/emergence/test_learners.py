from __future__ import annotations

import pytest
import torch

from assay.studies.gradient_features.emergence.arms import CASES, promised_sign
from assay.studies.gradient_features.emergence.learners import SAMPLED, First, first_gradients
from assay.training import Seeds


@pytest.mark.parametrize("case", CASES)
def test_a_seed_has_its_gradients_alone_too(case):
    both, alone = (first_gradients(Seeds(seeds), case, 1.0, 1.0, 8) for seeds in ((3, 4), (4,)))
    assert torch.equal(both.weights[1:], alone.weights)
    torch.testing.assert_close(both.gradients[1:], alone.gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_the_sign_of_the_threshold_changes_the_gates_alone(case):
    """Weights and samples are the same for both signs. On four XOR axes, where E[yx] = 0 and the problem is even, and
    on the uniform parity, whose closed form has no threshold, the gradients are the same as well."""
    first = {sign: first_gradients(Seeds((0,)), case, sign, 1.0, 8) for sign in (1.0, -1.0)}
    assert torch.equal(first[1.0].weights, first[-1.0].weights)
    same = torch.allclose(first[1.0].gradients, first[-1.0].gradients, rtol=1e-4, atol=1e-5)
    # Thresholds of the polynomial are 0.
    assert same == (case in ("multi-xor", "uniform parity", "polynomial"))


@pytest.mark.parametrize("case", SAMPLED)
def test_shuffled_labels_turn_gradients_away(case):
    first = first_gradients(Seeds((0,)), case, -1.0 if case.startswith("linear") else 1.0, 1.0, 64)
    own, others = (float(first.nearness(found).median()) for found in (first.gradients, first.shuffled))
    assert others < 0.4 < own


def test_nearness_of_a_space_is_the_length_of_the_projection():
    vectors = torch.tensor([[[3.0, 4.0, 0.0], [0.0, 3.0, 4.0]]])
    plane = torch.eye(2, 3)
    assert First(vectors, vectors, plane, space=True).nearness(vectors)[0].tolist() == pytest.approx([1.0, 0.6])
    assert First(vectors, vectors, plane).nearness(vectors)[0].tolist() == pytest.approx([0.8, 0.6])


def test_linear_data_want_neurons_that_are_always_active():
    assert [case for case in CASES if promised_sign(case) == "negative"] == [
        "linear",
        "linear, heavy tails",
        "linear, low rank",
    ]
