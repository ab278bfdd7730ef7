"""Backbones from libraries that are imported when one is built; timm is stood in for."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn

from assay.methods import NuclearNorm
from assay.networks import Backbone, huggingface_backbone, timm_backbone


def small(classes):
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, classes)
    )


def test_images_are_normalised_and_statistics_stay():
    torch.manual_seed(0)
    network = small(5)
    images = torch.rand(6, 3, 8, 8)
    frozen = Backbone(network, (0.4, 0.5, 0.6), (0.2, 0.2, 0.1)).train()
    assert not network[1].training
    assert network[4].training
    centred = (images - torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)) / torch.tensor([0.2, 0.2, 0.1]).view(3, 1, 1)
    torch.testing.assert_close(frozen(images), network(centred))
    assert torch.equal(network[1].running_mean, torch.zeros(4))
    free = Backbone(network, (0.5,) * 3, (0.5,) * 3, freeze_norm=False).train()
    free(images)
    assert not torch.equal(network[1].running_mean, torch.zeros(4))
    assert free.get_classifier() is network[4]


def test_a_hugging_face_classifier_from_a_configuration():
    transformers = pytest.importorskip("transformers", reason="needs the extra llm")
    sizes = dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3)
    make = huggingface_backbone(transformers.ResNetConfig(**sizes))
    model = make(7).train()
    assert model(torch.rand(4, 3, 32, 32)).shape == (4, 7)
    with NuclearNorm(lam=1.0, warmup=0).attach(model) as penalty:
        loss = model(torch.rand(4, 3, 32, 32)).sum()
        assert bool(penalty(loss) > loss)
    assert penalty.layer == "network.classifier.1"


def test_a_hugging_face_classifier_from_a_folder(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs the extra llm")
    sizes = dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3)
    transformers.ResNetForImageClassification(transformers.ResNetConfig(**sizes)).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 1, 1]}')
    model = huggingface_backbone(str(tmp_path))(7)
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 7)
    assert model.mean.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_a_network_of_timm(monkeypatch):
    asked = {}

    def create_model(name, **options):
        asked.update(options, name=name)
        network = small(options["num_classes"])
        network.pretrained_cfg = {"mean": (0.1, 0.1, 0.1), "std": (0.3, 0.3, 0.3)}
        network.get_classifier = lambda: network[4]
        return network

    monkeypatch.setitem(sys.modules, "timm", types.SimpleNamespace(create_model=create_model))
    model = timm_backbone("resnet50", dropout=0.1)(4)
    assert asked == {"name": "resnet50", "pretrained": True, "num_classes": 4, "drop_rate": 0.1}
    assert model.deviation.flatten().tolist() == pytest.approx([0.3] * 3)
    assert NuclearNorm().attach(model).layer == "network.4"


def test_without_timm_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="pip install timm"):
        timm_backbone("resnet50")(2)
