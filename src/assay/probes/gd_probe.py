"""Does a model run gradient descent in its forward pass? For the query states of linear-attention and looped models.

The states q of the query row are read as parameters θ = −q/α. Each layer's movement is compared with the gradient of
½‖y − Xθ‖² where the layer starts. For softmax language models the reading is exploratory: no theory backs it there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, curves
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite


@dataclass(frozen=True, repr=False)
class GradientDescentFit(Report):
    """How close each layer is to a gradient step.

    ``steps`` (layers, ...) is the best step size of each layer on each prompt and ``residuals`` the share of the
    movement that is not along the gradient, 1 − cos²; NaN where the layer does not move or the gradient vanishes.
    ``shared_steps`` and ``shared_residuals`` (layers,) fit one step size to all prompts at once: small residuals with
    large shared ones mean that the model adapts its step to the prompt.
    """

    steps: Tensor
    residuals: Tensor
    shared_steps: Tensor
    shared_residuals: Tensor

    def headline(self) -> str:
        share = 1 - float(self.shared_residuals.nanmean())
        return f"one step size per layer explains {share:.1%} of the layers' movements"

    def table(self) -> list[dict[str, Any]]:
        """A row per layer."""
        each = self.residuals.flatten(1).nanmean(1) if self.residuals.ndim > 1 else self.residuals
        rows = zip(self.shared_steps.tolist(), self.shared_residuals.tolist(), each.tolist(), strict=True)
        return [
            {"layer": layer, "step": step, "shared_residual": shared, "residual": own}
            for layer, (step, shared, own) in enumerate(rows)
        ]

    def figure(self) -> Any:
        """The share of each layer's movement that is no gradient step."""
        rows = [
            {"layer": row["layer"], "residual": row[name], "fit": fit}
            for row in self.table()
            for name, fit in (("residual", "a step size per prompt"), ("shared_residual", "one for all prompts"))
        ]
        return curves(rows, "layer", "residual", "fit", residual="share not along the gradient")


@of_tensors
def gd_probe(query_rows: Tensor, inputs: Tensor, targets: Tensor, alpha: float | Tensor = 1.0) -> GradientDescentFit:
    """Fit gradient steps to query states (layers+1, ..., dim) on examples (..., n, dim) with targets (..., n).

    ``alpha`` is the query's scalar, or −1 when the states are parameters already.
    """
    fits = query_rows.shape[1:] == (*inputs.shape[:-2], inputs.shape[-1]) and inputs.shape[:-1] == targets.shape
    if not fits or len(query_rows) < 2:
        raise ValueError(
            f"query states {tuple(query_rows.shape)}, examples {tuple(inputs.shape)} and targets "
            f"{tuple(targets.shape)} do not fit: (layers+1 >= 2, ..., dim), (..., n, dim) and (..., n)"
        )
    alpha = torch.as_tensor(alpha, dtype=query_rows.dtype, device=query_rows.device)
    if bool((alpha == 0).any()):
        raise ValueError("α = 0: the query states say nothing about a parameter")
    all_finite("query states, examples and targets", query_rows, inputs, targets)
    theta = -query_rows / alpha.unsqueeze(-1)
    moved = theta[:-1] - theta[1:]
    residual = (inputs @ theta[:-1].unsqueeze(-1)).squeeze(-1) - targets
    gradient = (residual.unsqueeze(-2) @ inputs).squeeze(-2)
    along, lengths = (moved * gradient).sum(-1), gradient.square().sum(-1)
    prompts = tuple(range(1, along.ndim))
    whole, total, size = ((x.sum(prompts) if prompts else x) for x in (along, lengths, moved.square().sum(-1)))
    return GradientDescentFit(
        steps=_ratio(along, lengths),
        residuals=_residual(along, lengths, moved.square().sum(-1)),
        shared_steps=_ratio(whole, total),
        shared_residuals=_residual(whole, total, size),
    )


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    return above / below.where(below > 0, math.nan)


def _residual(along: Tensor, gradient: Tensor, moved: Tensor) -> Tensor:
    # Two divisions rather than one: the product of two tiny squared lengths would underflow.
    return (1 - _ratio(along, gradient) * _ratio(along, moved)).clamp(min=0)
