"""Features from one gradient step: a two-layer ReLU network of zero output takes a step that forgets where it began.

Four copies of every neuron, (a, w, b), (−a, −w, −b), (−a, w, b) and (a, −w, −b), cancel in the output, so that the step
with weight decay 1/rate leaves w = a·G(w, b) up to a factor, G = mean of residual · input · 1{⟨w, input⟩ > b}. The
length of w sets where the neuron switches, b/‖w‖; the spread of a spreads the switches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._arrays import of_tensors
from ._checks import all_finite, number, one_of, whole
from ._precision import full_precision

_CHUNK = 4096  # samples at a time
_MEDIAN = 0.6745  # of |N(0, 1)|


@dataclass(frozen=True)
class OneStepLayer:
    """max(0, ⟨weights_i, x − centre⟩ − switches_i), with rows of unit norm, or zero for a neuron without a gradient.
    Dividing a neuron by its norm changes nothing that a linear head on top cannot undo."""

    weights: Tensor  # (width, dim)
    switches: Tensor  # (width,)
    centre: Tensor  # (dim,)

    @of_tensors
    def __call__(self, inputs: Tensor) -> Tensor:
        """(n, dim) → (n, width)."""
        if inputs.ndim != 2 or inputs.shape[1] != len(self.centre):
            raise ValueError(f"inputs are (n, {len(self.centre)}), as in the step, not {tuple(inputs.shape)}")
        return torch.relu((inputs.to(self.weights) - self.centre) @ self.weights.T - self.switches)


@dataclass(frozen=True)
class FirstStep:
    """Where the step sent the neurons: ``moves`` (width, dim) are a·G, and ``signs`` those of the biases."""

    moves: Tensor
    signs: Tensor  # (width,) ±1
    centre: Tensor
    rows: Tensor  # centred inputs, to measure projections on

    @full_precision()
    def layer(self, switch: float = 0.7, *, redraw: torch.Generator | None = None) -> OneStepLayer:
        """The features, scaled so that the median |switch| is ``switch`` times the root mean square of the inputs'
        projections on the neurons. With ``redraw`` switches are drawn anew from a Gaussian of that median."""
        number("switch", switch, above=0)
        norms = torch.linalg.vector_norm(self.moves, dim=1)
        alive = norms > 0
        if not bool(alive.any()):
            raise ValueError(
                "the step leaves no neuron a direction: the residuals are zero, or every neuron is inactive"
            )
        weights = torch.where(alive, 1 / torch.where(alive, norms, 1), 0).unsqueeze(1) * self.moves
        projections = self.rows @ weights[alive].T
        median = switch * projections.square().mean().sqrt()
        if redraw is not None:
            drawn = torch.randn(len(norms), generator=redraw, dtype=torch.float64).to(weights)
            return OneStepLayer(weights, drawn * median / _MEDIAN, self.centre)
        switches = torch.zeros_like(norms)
        reach = 1 / norms[alive]
        switches[alive] = self.signs[alive] * reach / reach.quantile(0.5) * median
        # Beyond the farthest input a neuron is silent, or linear: where exactly makes no difference but for rounding.
        farthest = projections.abs().amax(0)
        switches[alive] = switches[alive].clamp(-farthest, farthest)
        return OneStepLayer(weights, switches, self.centre)


@full_precision()
def first_step(
    inputs: Tensor, residuals: Tensor, *, generator: torch.Generator, width: int = 512, bias_scale: float = 1.0
) -> FirstStep:
    """One step on inputs (n, dim) with residuals (n,) or (n, outputs): ±1, one-hot − 1/classes, or centred numbers.

    ``width`` neurons, a multiple of four; biases are ± ``bias_scale`` times the spread of ⟨w, input⟩ at the start.
    """
    width = whole("width", width, 4)
    number("bias_scale", bias_scale, above=0)
    if width % 4:
        raise ValueError(f"width must be a multiple of 4, since neurons come in cancelling fours, not {width}")
    if inputs.ndim != 2 or len(residuals) != len(inputs) or residuals.ndim not in (1, 2):
        shapes = f"{tuple(inputs.shape)} and {tuple(residuals.shape)}"
        raise ValueError(f"a step needs inputs (n, dim) and residuals (n,) or (n, outputs), not {shapes}")
    if not len(inputs):
        raise ValueError("a step needs at least one sample, and there is none")
    all_finite("inputs", inputs)
    all_finite("residuals", residuals)
    # Integers have no mean, half precision no quantiles; and the step is no part of what the inputs come from.
    kind = torch.promote_types(inputs.dtype, torch.float32) if inputs.is_floating_point() else torch.get_default_dtype()
    inputs, residuals = inputs.detach().to(kind), residuals.detach()
    centre = inputs.mean(0)
    rows = inputs - centre
    signals = residuals.to(rows).reshape(len(rows), -1)
    m = width // 4
    weights = torch.randn(m, rows.shape[1], generator=generator, dtype=torch.float64).to(rows)
    outgoing = torch.randn(m, signals.shape[1], generator=generator, dtype=torch.float64).to(rows)
    bias = bias_scale * rows.square().sum(1).mean().sqrt()
    above, every = torch.zeros_like(weights), torch.zeros_like(weights)
    for x, r in zip(torch.split(rows, _CHUNK), torch.split(signals, _CHUNK), strict=True):
        sent = r @ outgoing.T  # (chunk, m): what each neuron hears of a sample
        above += (sent * (x @ weights.T > bias)).T @ x / len(rows)
        every += sent.T @ x / len(rows)
    # (−a, −w, −b) is active where (a, w, b) is not: −a·G(−w, −b) = a·G(w, b) − a·mean of residual · input.
    half = torch.cat([above, above - every])
    signs = torch.ones(width, dtype=rows.dtype, device=rows.device)
    signs[m : 2 * m], signs[3 * m :] = -1, -1
    return FirstStep(torch.cat([half, -half]), signs, centre, rows[:_CHUNK])


@of_tensors
def one_step(
    inputs: Tensor,
    residuals: Tensor,
    *,
    generator: torch.Generator,
    width: int = 512,
    bias_scale: float = 1.0,
    switch: float = 0.7,
    biases: str = "keep",
) -> OneStepLayer:
    """The features of one gradient step, for inputs wherever they come from (hidden states of a frozen model, say).

    ``biases`` are kept through the step, or redrawn after it.
    """
    one_of("biases", biases, ("keep", "redraw"))
    step = first_step(inputs, residuals, generator=generator, width=width, bias_scale=bias_scale)
    return step.layer(switch, redraw=generator if biases == "redraw" else None)
