from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest
import torch
from torch import nn

from assay import lab
from assay.data.text import TextSet
from assay.lab import discovery
from assay.networks.pretrained import Loaded
from assay.studies.universality_tradeoff.text.learners import (
    AdapterTuning,
    Embedded,
    HeadTuning,
    Split,
    dropout_views,
    labelled_texts,
    tuned,
)

from .test_learners import TEXTS, Tiny, tokenizer


@pytest.fixture
def loaded() -> Loaded:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Loaded(Tiny().eval(), tokenizer, "tiny")


def clouds(count: int, seed: int, spread: float = 0.5) -> Embedded:
    """Four classes around four corners, six views of each point."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 4
    plain = torch.eye(4, 12)[labels] * 3 + spread * torch.randn(count, 12, generator=generator)
    return Embedded(plain, plain.unsqueeze(1) + 0.1 * torch.randn(count, 6, 12, generator=generator), labels)


RECIPE = AdapterTuning(steps=30, hidden=16, rate=0.05)


def test_views_differ_and_leave_model_and_generator(loaded):
    state = torch.random.get_rng_state()
    found = [dropout_views(loaded, list(TEXTS.texts), 3, seed, "cpu") for seed in (0, 0, 1)]
    assert torch.equal(state, torch.random.get_rng_state())
    assert not loaded.model.training
    assert found[0].shape == (len(TEXTS), 3, 16)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[0][:, 0], found[0][:, 1])


def test_an_encoder_that_breaks_is_put_back(loaded):
    def broken(texts, **_):
        raise RuntimeError("no tokens")

    with pytest.raises(RuntimeError, match="no tokens"):
        dropout_views(replace(loaded, tokenizer=broken), ["a"], 2, 0, "cpu")
    assert not loaded.model.training


def test_no_text_is_trained_on_and_tried_on():
    split = Split.of(TEXTS, 8, 6, 3)
    places = torch.cat([split.own, split.tuning, split.held])
    assert len(places.unique()) == 8 + 8 + 6
    assert torch.bincount(TEXTS.labels[split.own]).tolist() == torch.bincount(TEXTS.labels[split.tuning]).tolist()
    with pytest.raises(ValueError, match="16 \\+ 10 are asked for"):
        Split.of(TEXTS, 8, 10, 3)


def test_the_labelled_texts_are_those_of_fine_tuning():
    own = Split.of(TEXTS, 8, 6, 3).own
    assert [TEXTS.texts[k] for k in own.tolist()] == labelled_texts(TEXTS, 8, 3)[0]


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_an_adapter_learns_and_leaves_the_generator(strength):
    state = torch.random.get_rng_state()
    recipe = replace(RECIPE, strength=strength)
    found = [recipe.accuracy(clouds(40, 0), clouds(200, 1), 0, "cpu") for _ in range(2)]
    assert torch.equal(state, torch.random.get_rng_state())
    assert found[0] == found[1] > 0.9


def test_the_regulariser_changes_the_adapter_and_next_to_none_of_it_next_to_nothing():
    train = clouds(40, 0)

    def weights(strength: float) -> torch.Tensor:
        network = replace(RECIPE, strength=strength).train(train, 4, 0, "cpu")
        return nn.utils.parameters_to_vector(network.parameters()).detach()

    plain = weights(0.0)
    # A start, an order or views of its own would show here.
    torch.testing.assert_close(weights(1e-7), plain, rtol=1e-3, atol=1e-4)
    assert float((weights(1.0) - plain).abs().max()) > 0.01


def test_views_are_what_adapters_train_on():
    train = clouds(40, 0)
    elsewhere = replace(train, views=train.views[:, :1].expand(-1, 6, -1))
    a, b = (RECIPE.train(each, 4, 0, "cpu") for each in (train, elsewhere))
    assert not torch.equal(a[0][0].weight, b[0][0].weight)


def test_a_training_that_diverges_has_no_accuracy():
    wild = replace(RECIPE, rate=1e4, strength=1.0)
    assert math.isnan(wild.accuracy(clouds(40, 0), clouds(40, 1), 0, "cpu"))


def test_a_penalty_shrinks_a_head():
    train, test = clouds(40, 0), clouds(200, 1)
    assert HeadTuning(0.1).accuracy(train, test, 0, "cpu") > 0.9
    unequal = replace(train, plain=train.plain[:13], labels=torch.tensor([0] * 10 + [1, 2, 3]))
    apart = (test.labels == 0).double().mean()  # what a head without weights says: the commonest class
    assert HeadTuning(1e12).accuracy(unequal, test, 0, "cpu") == pytest.approx(float(apart))


def test_settings_are_chosen_on_what_is_kept_for_it():
    """The best one on test data is not the best on the data kept for tuning, and the diverged one is never it."""
    own, tuning, held = clouds(16, 0), clouds(16, 1), clouds(200, 2)
    turned = replace(held, labels=(held.labels + 1) % 4)
    settings = {
        "diverges": replace(RECIPE, rate=1e4),
        "stands": replace(RECIPE, rate=1e-9),
        "learns": RECIPE,
    }
    found = tuned(settings, own, tuning, held, turned, 0, "cpu")
    assert math.isnan(found.tried["diverges"])
    assert found.tried["stands"] < found.tried["learns"]
    assert found.chosen == "learns"
    assert found.accuracy < 0.1


def rows(accuracy, way):
    where = {"arm": "text-adapter", "data": "ag_news", "labels": 64, "way": way, "metric": "accuracy", "trials": 400}
    return [{**where, "seed": s, "value": v} for s, v in enumerate(accuracy)]


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, "holds"), (-0.05, "fails"), (0.0, "undecided")])
def test_gains_are_paired_over_seeds(gain, verdict):
    """Seeds differ by much more than the two ways do."""
    study = discovery.studies()["universality-tradeoff"]
    base = [0.6, 0.7, 0.8, 0.65, 0.75, 0.85, 0.7, 0.8]
    found = rows(base, "adapter")
    found += rows([b + gain + e for b, e in zip(base, [0.005, -0.005] * 4, strict=True)], "regularised adapter")
    frame = pl.DataFrame(found).with_columns(setting=pl.lit(None), step=pl.lit(None))
    m = lab.Measurements(frame, study.resolve("laptop", {}))
    assert study.claims["C8r"].judge(m).verdict == verdict


def test_the_arm_runs_at_tiny_size(monkeypatch, loaded):
    arm = discovery.find("universality-tradeoff").arms["text-adapter"]
    names = arm.function.__globals__
    monkeypatch.setitem(names, "loaded_encoder", lambda name, device: loaded)
    monkeypatch.setitem(
        names, "load_texts", lambda name, split: TextSet(TEXTS.texts * 2, TEXTS.labels.repeat(2), name, 2)
    )
    m = lab.try_arm("universality-tradeoff", "text-adapter", preset="smoke", seeds=3)
    assert set(m.rows("accuracy")["way"]) == {"linear head", "adapter", "regularised adapter"}
    tried = m.rows("validation_accuracy").group_by("way").len()
    assert set(tried["len"]) == {3 * 16}  # as many settings for each way
    assert m.rows("chosen")["value"].sum() == 3 * 3
    table = discovery.find("universality-tradeoff").tables["text-adapter"].make(m)
    assert "paper, CLIP, gtsrb" in table["data"].to_list()
