from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.forward_pruning import ForwardMagnitudePruner
from assay.studies.imbalanced_contrastive.learners import Cells, Contrastive, Encoders, attend, infonce_step
from assay.studies.imbalanced_contrastive.one_step.learners import (
    AttentionEncoder,
    masked_surrogate,
    plain_loss,
    pruned_growth,
    response_deviation,
)
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.studies.imbalanced_contrastive.pruning.learners import constructed_start, minority_share
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
TAU = 2.0


@pytest.mark.parametrize("attention", ["uniform", "softmax"])
def test_encoders_are_odd_and_blind_to_the_order_of_tokens(attention):
    encoder = AttentionEncoder(8, 6, attention=attention, scale=0.5, generator=torch.Generator().manual_seed(0))
    encoder.biases.fill_(0.1)
    tokens = torch.randn(5, 3, 8, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(encoder(-tokens), -encoder(tokens))
    torch.testing.assert_close(encoder(tokens[:, [2, 0, 1]]), encoder(tokens))
    assert [p.requires_grad for p in (encoder.query, encoder.key, encoder.value)] == [False] * 3


@pytest.mark.parametrize("attention", ["uniform", "softmax"])
def test_stacked_encoders_are_the_module_and_its_attention_can_train(attention):
    generator = torch.Generator().manual_seed(0)
    encoder = AttentionEncoder(8, 6, attention=attention, scale=0.5, generator=generator, train_attention=True)
    encoder.biases.fill_(0.05)
    tokens = torch.randn(5, 3, 8, generator=generator)
    stacked = Encoders(
        encoder.neurons.weight[None, None].detach(), encoder.biases[None, None], 3 if attention == "uniform" else 1
    )
    torch.testing.assert_close(stacked(attend(tokens[None, None], attention))[0, 0], encoder(tokens).detach())
    encoder(tokens).square().sum().backward()
    assert encoder.value.grad.abs().max() > 0
    assert (encoder.query.grad is None) == (attention == "uniform")


@pytest.mark.parametrize("attention", ["uniform", "softmax"])
@pytest.mark.parametrize("mode", ["all", "bernoulli"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_closed_form_gradient_is_autograds(case, attention, mode, masked):
    start, first, second, cells = case(attention, mode)
    mask = cells.masks(start.weights) if masked else None
    free = start.weights.clone().requires_grad_()
    if masked:
        value = masked_surrogate(free, start, first, second, TAU, mask)
    else:
        value = plain_loss(free, start, first, second, TAU)
    (expected,) = torch.autograd.grad(value.sum(), free)
    found = infonce_step(start, first, second, TAU, mask)
    torch.testing.assert_close(found.gradient, expected)
    if not masked:
        torch.testing.assert_close(found.loss, value.detach())


def slope_deviation(function, gradient, weights, direction, step=1e-6):
    """|⟨gradient, v⟩ − (F(w + hv) − F(w − hv))/2h| over ‖gradient‖, along unit directions v: (seeds,)."""
    v = direction / torch.linalg.vector_norm(direction, dim=(-1, -2), keepdim=True)
    numeric = (function(weights + step * v) - function(weights - step * v)) / (2 * step)
    formula = (gradient * v).sum((-1, -2))
    share = (formula - numeric).abs() / torch.linalg.vector_norm(gradient, dim=(-1, -2))
    return share.amax(1)


def test_finite_differences_agree_with_masked_softmax_and_unmasked_gradients(case):
    start, first, second, cells = case()
    mask, direction = cells.masks(start.weights), SEEDS.normal("direction", 1, 6, 8)
    gradient = infonce_step(start, first, second, TAU, mask).gradient
    apart = slope_deviation(
        lambda w: masked_surrogate(w, start, first, second, TAU, mask), gradient, start.weights, direction
    )
    assert apart.max() < 1e-7
    wrong = infonce_step(start, first, second, TAU).gradient
    assert (
        slope_deviation(
            lambda w: masked_surrogate(w, start, first, second, TAU, mask), wrong, start.weights, direction
        ).max()
        > 1e-3
    )


@pytest.mark.parametrize("mode", ["logit_masked", "straight_through", "self_competitor"])
def test_the_method_for_any_encoder_takes_the_step_of_the_closed_form(case, mode):
    """With whole neurons, self-competitor's two halves are each the straight-through gradient: all three agree."""
    start, first, second, cells = case("softmax", bias=0.1)
    mask = cells.masks(start.weights)
    encoder = AttentionEncoder(8, 6, attention="uniform", generator=torch.Generator().manual_seed(0)).double()
    encoder.neurons.weight.data.copy_(start.weights[0, 0])
    encoder.biases.copy_(start.biases[0, 0])
    # The views are attended already: one token each, so that uniform attention passes them through.
    x, y = first[0, 0, :, :1], second[0, 0, :, :1]
    found = infonce_step(replace(start, multiplicity=1), first[:, :, :, :1], second[:, :, :, :1], TAU, mask)
    pruner = ForwardMagnitudePruner(encoder, alpha=0.5, granularity="neuron", scope="layer", mode=mode, refresh="step")
    loss = pruner.loss(x, y, tau=TAU, normalize=False, symmetric=False)
    loss.surrogate.backward()
    expected = found.gradient[0, 0] * (1 if mode == "logit_masked" else mask[0, 0, :, None])
    torch.testing.assert_close(encoder.neurons.weight.grad, expected)
    torch.testing.assert_close(loss.loss, found.loss[0, 0])


@pytest.mark.parametrize("scaled", [False, True])
def test_a_self_competitor_is_straight_through_only_without_normalisation(case, scaled):
    start, first, second, _ = case("softmax", bias=0.1)
    found = []
    for mode in ("self_competitor", "straight_through"):
        encoder = AttentionEncoder(8, 6, attention="uniform", generator=torch.Generator().manual_seed(0)).double()
        encoder.neurons.weight.data.copy_(start.weights[0, 0])
        pruner = ForwardMagnitudePruner(encoder, alpha=0.5, granularity="neuron", mode=mode)
        pruner.loss(first[0, 0], second[0, 0], tau=TAU, normalize=scaled).surrogate.backward()
        found.append(encoder.neurons.weight.grad)
    assert ((found[0] - found[1]).abs().max() < 1e-12) == (not scaled)


def test_a_mask_that_hides_rare_neurons_boosts_the_rare_feature_most():
    problem = TokenPairs(4, 1, 12, 4, 0.25)
    cells = Cells([0.3] * 2, [0.05] * 2, [0.0] * 2, [0.0, 1 / 5])
    start = constructed_start(problem, 2, SEEDS, per_feature=3, scale=0.7, rare_share=0.5, bias=0.2)
    growth = pruned_growth(problem, cells, SEEDS, start, Contrastive(1, 128, 0.02, 4.0, 0), 10)
    boost = growth[:, 1] - growth[:, 0]
    assert (minority_share(cells.masks(start.weights), problem)[:, 1] == 1).all()
    assert (boost[:, -1] > 0).all()
    assert (boost[:, :-1].mean(-1).abs() < boost[:, -1] / 4).all()


@given(scale=st.sampled_from([0.05, 0.02]))
@settings(max_examples=2, deadline=None)
def test_the_first_order_response_is_exact_for_small_weights(scale):
    problem = TokenPairs(4, 1, 12, 4, 0.25)
    start = constructed_start(problem, 1, SEEDS, per_feature=3, scale=0.7, rare_share=0.5, bias=0.2)
    found = response_deviation(
        problem, Cells([0.3], [0.05], [0.0], [1 / 5]), SEEDS, start, Contrastive(1, 64, 0.02, 4.0, 0), scale
    )
    assert found.max() < 10 * scale**2
