"""Two-layer networks on two classes of the digits."""

from dataclasses import replace

import pytest
import torch

from assay.studies.feature_emergence.image_weights.learners import two_layer_weights
from assay.studies.feature_emergence.problem import standardized
from assay.training.seeds import Seeds


def test_two_layer_weights_learn_and_move_early(pair):
    epochs = list(two_layer_weights(*pair, Seeds((0, 1)), width=20, epochs=20, batch=20, init_scale=0.1))
    assert [each.epoch for each in epochs] == list(range(21))
    assert epochs[-1].weights.shape == (2, 20, 64)
    assert (epochs[-1].test_accuracy > 0.95).all()
    assert (epochs[0].movement == 0).all()
    early, late = (torch.stack([each.movement for each in part]).sum(dim=0) for part in (epochs[1:11], epochs[11:]))
    assert (early > late).all()
    moved = (epochs[3].weights - epochs[2].weights).norm(dim=(1, 2)) / epochs[0].weights.norm(dim=(1, 2))
    torch.testing.assert_close(epochs[3].movement, moved)


def test_the_first_step_follows_autograd_of_one_seed(pair):
    train, test = (replace(each, images=each.images[:8], labels=each.labels[:8]) for each in pair)
    start, end = two_layer_weights(train, test, Seeds((3,)), width=4, epochs=1, batch=8, learning_rate=0.5)
    inputs, labels = standardized(train)[0], train.labels.float()
    head = Seeds((3,)).normal("head", 4)[0] / 2
    weights = start.weights[0].clone().requires_grad_()
    margins = labels * (torch.relu(inputs @ weights.T) @ head)
    (gradient,) = torch.autograd.grad(torch.log1p(torch.exp(-margins)).mean(), weights)
    torch.testing.assert_close(end.weights[0], start.weights[0] - 0.5 * gradient)


def test_two_layer_seeds_do_not_depend_on_their_company(pair):
    together = list(two_layer_weights(*pair, Seeds((0, 7)), width=5, epochs=2, batch=20))
    alone = list(two_layer_weights(*pair, Seeds((7,)), width=5, epochs=2, batch=20))
    torch.testing.assert_close(together[-1].weights[1], alone[-1].weights[0], rtol=1e-4, atol=1e-5)


def test_a_batch_larger_than_the_data_is_refused(pair):
    with pytest.raises(ValueError, match="cannot be drawn"):
        next(two_layer_weights(*pair, Seeds((0,)), batch=1000))
