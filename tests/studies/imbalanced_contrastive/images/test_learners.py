import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from assay.data.images import load_images
from assay.methods.pruned_infonce import PrunedLoss
from assay.methods.pruning_masks import MaskReport
from assay.studies.imbalanced_contrastive.images import learners
from assay.studies.imbalanced_contrastive.images.learners import LongTail, Pretraining, make_encoder

SMALL = Pretraining(width=4, epochs=2, batch=32)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", limit=400), load_images("digits", "test", limit=150)


def test_backbones_end_in_features_and_the_projector_comes_after():
    for network, width, features in (("cnn", 4, 16), ("resnet", 2, 16)):
        encoder = make_encoder(network, 1, width, torch.Generator().manual_seed(0))
        assert encoder.backbone(torch.rand(3, 1, 8, 8)).shape == (3, features)
        assert encoder(torch.rand(3, 1, 8, 8)).shape == (3, features)


def final_weights(recipe, images, seed=0):
    *_, (epoch, encoder, loss, masked) = recipe.encoders(images, seed)
    assert epoch == recipe.epochs
    return torch.cat([p.detach().flatten() for p in encoder.parameters()]), loss, masked


class Bare:
    """Stands where the pruner does: InfoNCE of the bare encoder by its definition, the candidates held fixed."""

    def __init__(self, encoder, **_):
        self.encoder = encoder

    def loss(self, x, y, *, tau):
        f_x, f_y = (normalize(self.encoder(view), dim=1) for view in (x, y))
        target = torch.arange(len(x))
        loss = sum(cross_entropy(a @ b.detach().T / tau, target) for a, b in ((f_x, f_y), (f_y, f_x))) / 2
        return PrunedLoss(loss, loss.detach())

    def end_epoch(self):
        pass

    def report(self):
        return MaskReport({"none": 0}, {"none": 1})


def test_pruning_nothing_is_infonce_of_the_bare_encoder_and_pruning_is_not(digits, monkeypatch):
    images = digits[0].images[:128]
    plain, loss, masked = final_weights(SMALL, images)
    assert masked == 0
    pruned, _, share = final_weights(replace(SMALL, mode="logit_masked", alpha=0.5), images)
    assert share == pytest.approx(0.5, abs=0.01)
    assert (pruned - plain).abs().max() > 0.01
    with monkeypatch.context() as patch:
        patch.setattr(learners, "ForwardMagnitudePruner", Bare)
        bare, bare_loss, _ = final_weights(SMALL, images)
    torch.testing.assert_close(plain, bare, rtol=1e-3, atol=1e-4)
    assert loss == pytest.approx(bare_loss, rel=1e-4)
    # The masked path with a mask that hides nothing.
    monkeypatch.setattr(learners.ForwardMagnitudePruner, "active", True)
    assert torch.equal(final_weights(replace(SMALL, mode="logit_masked", alpha=0.0), images)[0], plain)


def test_pretraining_lowers_the_loss(digits):
    losses = [loss for _, _, loss, _ in replace(SMALL, epochs=6).encoders(digits[0].images, 0)]
    assert losses[-1] < losses[1]


def test_a_pretraining_that_diverges_has_no_accuracy(digits):
    run = LongTail(*digits, ratio=5, largest=30, probe=15).run(replace(SMALL, rate=1e30), 0, "cpu")
    assert math.isnan(run.trained.accuracy)
    assert math.isnan(run.trained.gap)
    assert run.untrained.accuracy > 0


def test_a_long_tail_run_is_paired_by_its_seed(digits):
    task = LongTail(*digits, ratio=5, largest=30, probe=15)
    plain, pruned = (task.run(replace(SMALL, mode=mode), 3, "cpu") for mode in (None, "self_competitor"))
    assert plain.images == pruned.images
    assert plain.images < len(digits[0])
    assert plain.untrained.accuracy == pruned.untrained.accuracy
    assert plain.trained.head == pruned.trained.head
    assert len(plain.losses) == 2
    assert plain.trained.accuracy > 0.3
    other = task.run(SMALL, 4, "cpu")
    assert other.trained.head != plain.trained.head or other.trained.tail != plain.trained.tail
