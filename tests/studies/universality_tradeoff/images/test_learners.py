from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.studies.universality_tradeoff.images.learners import (
    Pretraining,
    accuracies,
    features,
    make_encoder,
    pretrained,
)
from assay.studies.universality_tradeoff.images.problem import load_source
from assay.training.seeds import stream

TRAIN, TEST = (load_source("digits", split, side=8, limit=200) for split in ("train", "test"))
CODES = load_source("codes", "train", side=8, limit=200)
SMALL = {"width": 4, "outputs": 4, "steps": 5, "batch": 16}


@pytest.mark.parametrize("network", ["mlp", "cnn", "resnet"])
def test_encoders_have_few_outputs_and_their_own_start(network):
    encoder = make_encoder(network, 8, 4, 6, stream(0, "encoder"))
    assert features(encoder.eval(), TRAIN.images[:7]).shape == (7, 6)
    same, other = (make_encoder(network, 8, 4, 6, stream(seed, "encoder")) for seed in (0, 1))
    torch.testing.assert_close(same.neck.weight, encoder.neck.weight)
    assert not torch.equal(other.neck.weight, encoder.neck.weight)


@pytest.mark.parametrize("loss", ["simclr", "moco"])
def test_pretraining_repeats_and_changes_the_encoder(loss):
    recipe = Pretraining(**SMALL, loss=loss)
    before = torch.random.get_rng_state()
    one, two = (recipe.train({"digits": TRAIN.images}, 3, "cpu") for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    torch.testing.assert_close(features(one, TEST.images), features(two, TEST.images))
    start = recipe.start(8, 3, "cpu").eval()
    assert not torch.allclose(features(one, TEST.images), features(start, TEST.images))


def test_a_pretrained_encoder_is_kept_and_is_the_one_made_from_scratch():
    recipe = Pretraining(width=4, outputs=3, steps=3, batch=8)
    kept = pretrained(recipe, "digits+stripes", 8, 60, 1, "cpu")
    assert pretrained(recipe, "digits+stripes", 8, 60, 1, "cpu") is kept
    sets = {name: load_source(name, "train", side=8, limit=60).images for name in ("digits", "stripes")}
    for mine, theirs in zip(kept.parameters(), recipe.train(sets, 1, "cpu").parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert pretrained(recipe, "digits+stripes", 8, 60, 2, "cpu") is not kept


def test_longer_pretraining_lowers_the_contrastive_loss():
    from assay.training import nt_xent

    short, long = (Pretraining(width=8, outputs=4, steps=steps, batch=32) for steps in (1, 60))
    found = []
    for recipe in (short, long):
        encoder = recipe.train({"digits": TRAIN.images}, 0, "cpu")
        views = [recipe.view(TRAIN.images, stream(0, name)) for name in ("a", "b")]
        found.append(float(nt_xent(*(features(encoder, view) for view in views), temperature=0.2)))
    assert found[1] < found[0] - 0.3


def test_a_mixture_gives_the_target_the_same_images_and_views(monkeypatch):
    """What is added to a mixture must not change what the target's set contributes."""
    seen: list[torch.Tensor] = []
    usual = Pretraining.view

    def watched(self: Pretraining, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        seen.append(usual(self, images, generator))
        return seen[-1]

    monkeypatch.setattr(Pretraining, "view", watched)
    recipe = Pretraining(**SMALL)
    recipe.train({"digits": TRAIN.images}, 0, "cpu")
    alone, seen[:] = list(seen), []
    recipe.train({"digits": TRAIN.images, "codes": CODES.images}, 0, "cpu")
    torch.testing.assert_close(torch.stack(alone), torch.stack(seen[::2]))


def test_accuracies_are_those_of_heads_on_nested_draws_and_a_diverged_encoder_has_none():
    found = accuracies(nn.Flatten(), TRAIN, TEST, (20, 100, 200), 0, 2)
    assert 0.4 < found[0] < min(found[1:])
    lost = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    nn.init.constant_(lost[1].weight, math.nan)
    assert all(math.isnan(value) for value in accuracies(lost, TRAIN, TEST, (20, 100), 0, 1))
