"""Gradients of layers of every kind, and what their parts say about each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from assay.probes.gradient_features import gradient_features
from assay.probes.layer_gradients import LayerGradients


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_convolutions_and_their_shapes():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    inputs = torch.randn(200, 3, 8, 8, generator=generator())
    labels = (inputs[:, 0].mean((1, 2)) > 0).long()
    found = gradient_features(model, "0", inputs, labels)
    assert found.gradients.shape == (8, 27)
    assert found.shape == (3, 3, 3)
    residual = nn.functional.one_hot(labels, 2) - 0.5
    (gradient,) = torch.autograd.grad((model(inputs) * residual).sum(), [model[0].weight])
    torch.testing.assert_close(
        nn.functional.normalize(found.gradients), nn.functional.normalize(gradient.flatten(1)), atol=1e-4, rtol=1e-3
    )
    deeper = nn.Sequential(nn.Unflatten(1, (3, 8, 8)), *model)
    assert gradient_features(deeper, "1", inputs.flatten(1), labels).units == 8


def test_transformers_layers_of_both_kinds():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    tokens = torch.randint(3, 50, (120, 10), generator=generator())
    labels = (tokens[:, 0] > 25).long()
    sizes = dict(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    bert = transformers.BertForSequenceClassification(transformers.BertConfig(**sizes, num_labels=2))
    batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels}
    assert gradient_features(bert, "bert.encoder.layer.0.intermediate.dense", batch).gradients.shape == (32, 16)
    gpt = transformers.GPT2ForSequenceClassification(
        transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_inner=32, num_labels=2, pad_token_id=0)
    )
    found = gradient_features(gpt, "transformer.h.0.mlp.c_fc", {"input_ids": tokens, "labels": labels})
    assert found.gradients.shape == (32, 16)
    gpt.eval()
    residual = nn.functional.one_hot(labels, 2) - 0.5
    (gradient,) = torch.autograd.grad(
        (gpt(input_ids=tokens).logits * residual).sum(), [gpt.transformer.h[0].mlp.c_fc.weight]
    )
    cosines = nn.functional.cosine_similarity(found.gradients, gradient.T, dim=1)
    assert float(cosines.min()) > 0.999


def parts_of(rows: Tensor, shares: Tensor) -> LayerGradients:
    return LayerGradients(rows * shares[:, None, None], shares, residuals=None)  # type: ignore[arg-type]


def test_stability_of_equal_parts_of_two_halves_and_of_noise():
    shares = torch.tensor([0.25, 0.25, 0.5])
    equal = torch.randn(1, 4, 6, generator=generator()).expand(3, -1, -1)
    assert parts_of(equal, shares).stability(torch.arange(4)) == pytest.approx(1, abs=1e-5)
    a, b = torch.randn(2, 5, generator=generator(1))
    both = parts_of(torch.stack([a, b])[:, None], torch.tensor([0.5, 0.5])).stability(torch.tensor([0]))
    assert both == pytest.approx(float(2 * (a @ b) / (a @ a + b @ b)), abs=1e-5)
    noise = parts_of(torch.randn(8, 1, 4000, generator=generator(2)), torch.full((8,), 1 / 8))
    assert abs(noise.stability(torch.tensor([0]))) < 0.1
    # Signal s and noise σ per part: halves have cosine s² / (s² + 2σ²/8).
    signal = torch.zeros(4000)
    signal[0] = 40.0
    mixed = parts_of(signal + torch.randn(8, 1, 4000, generator=generator(3)), torch.full((8,), 1 / 8))
    assert mixed.stability(torch.tensor([0])) == pytest.approx(1600 / (1600 + 1000), abs=0.05)
    empty = parts_of(torch.randn(2, 1, 3), torch.tensor([1.0, 0.0]))
    assert empty.stability(torch.tensor([0])) == 0
