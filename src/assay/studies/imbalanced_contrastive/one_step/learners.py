"""Looks into one step: is the gradient that of the formula, and what does a mask change?"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from assay.training import Seeds

from ..learners import Attention, Cells, Contrastive, Encoders, brelu, infonce_step
from ..problem import TokenPairs
from .theory import first_order_response


def outputs(weights: Tensor, encoders: Encoders, attended: Tensor) -> Tensor:
    """f(X) written out, with other weights than the encoders' own: (seeds, cells, batch, neurons)."""
    s = (attended.unsqueeze(-2) * weights[:, :, None, None]).sum(-1)
    return encoders.multiplicity * brelu(s, encoders.biases[..., None, None, :]).sum(-2)


def plain_loss(weights: Tensor, encoders: Encoders, first: Tensor, second: Tensor, tau: float) -> Tensor:
    """InfoNCE by its definition, the candidates held at the encoders' own weights: (seeds, cells)."""
    logits = outputs(weights, encoders, first) @ outputs(encoders.weights, encoders, second).mT / tau
    return (logits.logsumexp(-1) - logits.diagonal(dim1=-2, dim2=-1)).mean(-1)


def masked_surrogate(
    weights: Tensor, encoders: Encoders, first: Tensor, second: Tensor, tau: float, mask: Tensor
) -> Tensor:
    """S = (1/Kτ) Σ_k [Σ_s P_k(s)⟨f(X_k), f(Y_s)⟩ − ⟨f(X_k), f(Y_k)⟩], P the softmax of the masked outputs."""
    h_x, h_y = (outputs(encoders.weights, encoders, view) for view in (first, second))
    P = ((h_x * mask.unsqueeze(-2)) @ (h_y * mask.unsqueeze(-2)).mT / tau).softmax(-1)
    similarity = outputs(weights, encoders, first) @ h_y.mT
    return ((P * similarity).sum(-1) - similarity.diagonal(dim1=-2, dim2=-1)).mean(-1) / tau


def own_growth(gradient: Tensor, encoders: Encoders, features: int) -> Tensor:
    """−⟨∇_i, M_j⟩/⟨w_i, M_j⟩ of pure neurons on their own feature, averaged over a feature's neurons: the growth per
    unit rate: (seeds, cells, features)."""
    per = encoders.weights.shape[-2] // features
    own = torch.arange(features, device=gradient.device).repeat_interleave(per)[:, None]
    index = own.expand(*gradient.shape[:2], -1, 1)
    growth = -gradient.gather(-1, index) / encoders.weights.gather(-1, index)
    return torch.unflatten(growth.squeeze(-1), -1, (features, per)).mean(-1)


def pruned_growth(
    problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders, run: Contrastive, batches: int
) -> Tensor:
    """Growth per unit rate at a fixed state, averaged over batches, with each cell's mask: (seeds, cells, features)."""
    stream, mask = run.pairs(problem, cells, seeds, "one step"), cells.masks(start.weights)
    total = torch.zeros((), device=seeds.device, dtype=seeds.dtype)
    for _ in range(batches):
        found = infonce_step(start, *run.attended(stream.next(run.batch)), run.temperature, mask)
        total = total + own_growth(found.gradient, start, problem.features)
    return total / batches


def response_deviation(
    problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders, run: Contrastive, scale: float
) -> Tensor:
    """How far the first-order formula for Δℓ'_p is from the true change when the mask is put on, relative to that
    change (root mean square over anchors), with all weights multiplied by ``scale``: (seeds,)."""
    small = replace(start, weights=scale * start.weights, biases=scale * start.biases)
    first, second = run.attended(run.pairs(problem, cells, seeds, "response").next(run.batch))
    mask = cells.masks(small.weights)
    assert mask is not None
    h_x, h_y = small(first), small(second)
    hidden = 1 - mask.unsqueeze(-2)
    change = -(h_x * hidden) @ h_y.mT
    before, after = (infonce_step(small, first, second, run.temperature, m).softmax for m in (None, mask))
    true = (after - before).diagonal(dim1=-2, dim2=-1)
    apart = true - first_order_response(before, change, run.temperature)
    return (apart.square().mean(-1) / true.square().mean(-1)).sqrt().amax(1)


class AttentionEncoder(nn.Module):
    """The same encoder as a torch module, for autograd and for attention that is trained: (batch, tokens, dim) →
    (batch, neurons). Query, key and value start as the identity and are frozen unless ``train_attention``."""

    biases: Tensor

    def __init__(
        self,
        dim: int,
        width: int,
        *,
        attention: Attention = "softmax",
        score_scale: float = 1.0,
        train_attention: bool = False,
        generator: torch.Generator,
        scale: float = 0.01,
    ) -> None:
        super().__init__()
        self.neurons = nn.Linear(dim, width, bias=False)
        with torch.no_grad():
            self.neurons.weight.copy_(scale * torch.randn(width, dim, generator=generator))
        self.attention, self.score_scale = attention, score_scale
        self.query, self.key, self.value = (
            nn.Parameter(torch.eye(dim), requires_grad=train_attention) for _ in range(3)
        )
        self.register_buffer("biases", torch.zeros(width))

    def forward(self, tokens: Tensor) -> Tensor:
        values = tokens @ self.value
        if self.attention == "uniform":
            mixed = values.mean(-2, keepdim=True).expand_as(values)
        else:
            scores = self.score_scale * (tokens @ self.query) @ (tokens @ self.key).mT
            mixed = scores.softmax(-1) @ values
        return brelu(self.neurons(mixed), self.biases).sum(-2)
