from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from assay.evaluation import LeaveOneDomainOut
from assay.studies.nuclear_norm.images.arms import METHODS
from assay.studies.nuclear_norm.images.learners import (
    CORAL,
    IRM,
    FrobeniusNorm,
    Kept,
    Methods,
    Pretraining,
    make_network,
    pretrained,
    stopped_at,
)
from assay.studies.nuclear_norm.images.problem import Domain, cue_free, source_images


def batches(n: int = 24):
    g = torch.Generator().manual_seed(0)
    return [(torch.rand(n, 1, 6, 6, generator=g) + at, torch.randint(3, (n,), generator=g)) for at in range(3)]


def test_a_training_is_stopped_where_its_validation_is_high_enough():
    validation, outside = [0.8, 0.9, 0.95], [0.7, 0.6, 0.4]
    assert [stopped_at(level, validation, outside) for level in (0.7, 0.85, 0.95, 0.99)] == [0.7, 0.6, 0.4, 0.4]
    assert math.isnan(stopped_at(0.9, validation, [0.7, math.nan, 0.4]))
    assert math.isnan(stopped_at(math.nan, validation, outside))


@pytest.fixture
def network():
    return make_network("perceptron", (1, 6, 6), 8, 3, 0)


def plain(model, parts):
    return torch.stack([cross_entropy(model(inputs), labels) for inputs, labels in parts]).mean()


def test_without_their_penalty_coral_and_irm_are_the_mean_loss(network):
    parts = batches()
    for objective in (CORAL(0.0), IRM(0.0)):
        torch.testing.assert_close(objective(network, parts), plain(network, parts))


def test_coral_sees_no_distance_between_equal_domains_and_some_between_others(network):
    one = batches()[0]
    torch.testing.assert_close(CORAL(5.0)(network, [one, one]), plain(network, [one, one]))
    assert bool(CORAL(5.0)(network, batches()) > plain(network, batches()))


def test_the_slopes_of_irm_are_those_of_scaled_logits(network):
    inputs, labels = batches()[0]
    step, slopes = 1e-3, []
    with torch.no_grad():
        logits = network(inputs).double()
        for at in (0, 1):
            losses = [cross_entropy(scale * logits[at::2], labels[at::2]) for scale in (1 + step, 1 - step)]
            slopes.append(float(losses[0] - losses[1]) / (2 * step))
    penalty = IRM(1.0)(network, [(inputs, labels)]) - plain(network, [(inputs, labels)])
    assert penalty.item() == pytest.approx(slopes[0] * slopes[1], rel=1e-2, abs=1e-5)


def test_the_frobenius_control_is_the_frobenius_norm_over_rows():
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(FrobeniusNorm(1.0).value(features), features.norm() / 6)


def test_pretraining_learns_and_every_training_starts_from_it():
    g = torch.Generator().manual_seed(1)
    labels = torch.randint(3, (90,), generator=g)
    images = torch.rand(90, 1, 6, 6, generator=g)
    images[:, 0, 0, :3] += 3.0 * torch.nn.functional.one_hot(labels, 3)
    network = Pretraining("perceptron", 8, 60, 1e-2, 30).train(Domain(images, labels, labels), 3, 0, "cpu")
    assert float((network(images).argmax(1) == labels).double().mean()) > 0.9
    made = Kept(network)
    first = made(3)
    assert made.last is first is not network
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), network.parameters(), strict=True))


def test_a_pretrained_network_is_kept_and_no_training_changes_it():
    recipe = Pretraining("perceptron", 4, 3, 1e-2, 8)
    first = pretrained(recipe, "digits", None, 200, 0, "cpu")
    before = [weight.clone() for weight in first.parameters()]
    copy = Kept(first)(10)
    with torch.no_grad():
        copy.head.weight.add_(1.0)
    assert pretrained(recipe, "digits", None, 200, 0, "cpu") is first
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), before, strict=True))
    alone = recipe.train(cue_free(source_images("digits", None, 200), 0), 10, 0, "cpu")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), alone.parameters(), strict=True))


@pytest.mark.parametrize("kind", ["perceptron", "cnn", "resnet"])
def test_networks_have_features_that_are_not_negative_and_a_start_of_their_seed(kind):
    first, again, other = (make_network(kind, (1, 12, 12), 2, 3, seed) for seed in (0, 0, 1))
    inputs = torch.rand(5, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    state = torch.get_rng_state()
    assert bool((first.features(inputs) >= 0).all())
    assert first(inputs).shape == (5, 3)
    torch.testing.assert_close(first(inputs), again(inputs))
    assert not torch.allclose(first(inputs), other(inputs))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_under_the_protocol(name, network):
    domains = {str(at): part for at, part in enumerate(batches(30))}
    algorithm = Methods(1e-3, 0, 3)(name)
    assert algorithm.name == name
    assert "learning_rate" in algorithm.search
    assert len(algorithm.search) == (1 if name in ("ERM", "Mixup", "SWAD") else 2)
    protocol = LeaveOneDomainOut(steps=4, batch=6, check_every=2, trials=2)
    found = protocol.run(domains, Kept(network), [algorithm], seeds=[0], targets=["2"], progress=False)
    assert found.outcomes[0].trials == 2
    assert 0 <= found.outcomes[0].accuracy <= 1
