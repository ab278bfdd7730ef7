"""Linear heads on frozen features, each the one minimum of a convex problem, so that nothing is random: ridge
regression for any number of penalties from one decomposition, and logistic or hinge regression by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, multi_margin_loss, one_hot

from assay.methods._checks import all_finite, number, one_of, whole
from assay.methods._data import as_classes
from assay.methods._precision import full_precision

LOSSES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "logistic": cross_entropy,
    "hinge": partial(multi_margin_loss, p=2),  # squared, since L-BFGS needs a slope everywhere
}
SCALINGS = ("raw", "rescaled", "standardized")
PENALTIES = tuple(10.0 ** (k / 2) for k in range(-8, 7))


@dataclass(frozen=True)
class LinearHead:
    """``scores = ((features - shift) / scale) @ weight.T + bias``, in float64. ``classes`` are the labels, ascending;
    a head that predicts numbers has none."""

    weight: Tensor  # (outputs, dim)
    bias: Tensor  # (outputs,)
    shift: Tensor  # (dim,)
    scale: Tensor  # (dim,)
    classes: Tensor | None = None  # (outputs,)

    @full_precision()
    def scores(self, features: Tensor) -> Tensor:
        """(n, dim) -> (n, outputs)."""
        return ((features.detach().to(self.weight) - self.shift) / self.scale) @ self.weight.T + self.bias

    def predict(self, features: Any) -> Tensor:
        """The likeliest class of every row, or the numbers (n, outputs) themselves."""
        scores = self.scores(torch.as_tensor(features))
        return scores if self.classes is None else self.classes[scores.argmax(dim=1)]


def scaling_of(features: Tensor, scaling: str) -> tuple[Tensor, Tensor, Tensor]:
    """Shift and scale (dim,) that a scaling takes from the training features, and which of these vary at all: a spread
    at the level of the features' own rounding is no signal, and dividing by it would blow noise up."""
    one_of("scaling", scaling, SCALINGS)
    values = features.detach().double()
    centre, spread = values.mean(dim=0), values.std(dim=0, correction=0)
    if scaling == "raw":
        return torch.zeros_like(centre), torch.ones_like(centre), torch.ones_like(centre, dtype=torch.bool)
    noise = 4 * torch.finfo(features.dtype if features.is_floating_point() else torch.float32).eps
    varies = spread > noise * values.abs().amax(dim=0)
    spread = spread.where(varies, 0.0)
    if scaling == "rescaled":
        common = spread.square().mean().sqrt()
        return centre, torch.ones_like(centre) * (common if common > 0 else 1.0), varies
    return centre, spread.where(varies, 1.0), varies


@full_precision()
def fit_head(
    features: Any,
    labels: Any,
    *,
    scaling: str = "standardized",
    loss: str = "logistic",
    penalty: float = 1e-4,
    steps: int = 300,
    start: LinearHead | None = None,
    classes: Any = None,
) -> LinearHead:
    """The linear head on features (n, dim) that minimises the loss plus ``penalty`` · ‖weights‖², by L-BFGS.

    Features are taken raw, centred and divided by one common number ("rescaled"), or standardised one by one; a feature
    that is constant gets no weight. The loss is cross-entropy or the squared hinge; the bias is free. ``steps`` are the
    iterations at most, and ``start`` is a head for the same data to begin from (zero otherwise). ``classes`` are the
    labels to have a score for, by default those that occur.
    """
    x, names, places = _samples(features, labels, classes)
    one_of("loss", loss, LOSSES)
    whole("steps", steps, 1)
    number("penalty", penalty, least=0)
    shift, scale, varies = scaling_of(x, scaling)
    # What follows takes gradients, also when it is called, or its data were made, in inference mode.
    with torch.inference_mode(False), torch.enable_grad():
        inputs, places = torch.where(varies, (x.double() - shift) / scale, 0.0), places.clone()
        shape = (len(names), inputs.shape[1])
        weight = inputs.new_zeros(shape) if start is None else start.weight.clone()
        bias = inputs.new_zeros(shape[0]) if start is None else start.bias.clone()
        weight, bias = weight.requires_grad_(), bias.requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=steps, tolerance_grad=1e-6, tolerance_change=1e-10, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            objective = LOSSES[loss](inputs @ weight.T + bias, places) + penalty * weight.square().sum()
            objective.backward()  # type: ignore[no-untyped-call]
            return objective

        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return LinearHead(weight.detach(), bias.detach(), shift, scale, names)


class Ridge:
    """Least squares to targets (n, outputs) on features (n, dim), with an intercept; one decomposition serves all
    penalties."""

    @full_precision()
    def __init__(self, features: Tensor, targets: Tensor, scaling: str = "rescaled") -> None:
        self.shift, self.scale, varies = scaling_of(features, scaling)
        inputs = torch.where(varies, (features.detach().double() - self.shift) / self.scale, 0.0)
        self.centre, self.mean = inputs.mean(0), targets.double().mean(0)
        self.inputs, self.targets = inputs - self.centre, targets.double() - self.mean
        if len(inputs) > inputs.shape[1]:
            values, self.basis = torch.linalg.eigh(self.inputs.T @ self.inputs)
            self.values = values.clamp_min(0)
        else:
            _, sizes, right = torch.linalg.svd(self.inputs, full_matrices=False)
            self.values, self.basis = sizes.square(), right.T
        self.along = self.basis.T @ (self.inputs.T @ self.targets)  # (rank, outputs)

    @property
    def spread(self) -> float:
        """The trace of the scaled features' covariance."""
        return float(self.values.sum()) / len(self.inputs)

    def _damped(self, penalty: float) -> Tensor:
        rounding = torch.finfo(self.values.dtype).eps * self.values.amax().clamp_min(1)
        damped: Tensor = self.values + penalty * len(self.inputs) + rounding
        return damped

    @full_precision()
    def head(self, penalty: float, classes: Tensor | None = None) -> LinearHead:
        """The minimum of mean squared error + ``penalty`` · ‖weights‖²."""
        weight = (self.basis @ (self.along / self._damped(penalty).unsqueeze(1))).T
        return LinearHead(weight, self.mean - weight @ self.centre, self.shift, self.scale, classes)

    @full_precision()
    def left_out(self, penalty: float) -> float:
        """Σ over points of the squared error at each when it is left out: its residual over 1 − its leverage."""
        damped, turned = self._damped(penalty), self.inputs @ self.basis
        residual = self.targets - turned @ (self.along / damped.unsqueeze(1))
        leverage = 1 / len(turned) + (turned.square() / damped).sum(1)
        return float((residual / (1 - leverage).clamp(min=1e-12).unsqueeze(1)).square().sum())

    def best(self, penalties: Sequence[float]) -> float:
        """The penalty with the least error on points left out one by one, the largest among equals."""
        number("the smallest of penalties", min(penalties, default=0), above=0)
        return min(sorted(penalties, reverse=True), key=self.left_out)


def ridge_head(
    features: Any, labels: Any, *, scaling: str = "rescaled", penalties: Sequence[float] = PENALTIES
) -> LinearHead:
    """Least squares to the classes' indicators, with an intercept, on features (n, dim).

    Of ``penalties``, in units of the features' mean square, the one with the least squared error on points left out one
    by one is taken, the largest among equals; one decomposition gives all these errors. Features are centred and
    divided by one common number ("rescaled"), which keeps their weights relative to each other: a feature that a
    representation has made small stays hard to use. "standardized" gives all features the same weight.
    """
    number("the smallest of penalties", min(penalties, default=0), above=0)
    x, classes, places = _samples(features, labels)
    ridge = Ridge(x, one_hot(places), scaling)
    unit = ridge.spread / len(x)
    return ridge.head(ridge.best([each * unit or each for each in penalties]), classes)


def _samples(features: Any, labels: Any, classes: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Features (n, dim), the classes, ascending, and the place of every label among them."""
    x = torch.as_tensor(features).detach()
    if x.ndim != 2:
        raise ValueError(f"a head needs features (n, dim), not {tuple(x.shape)}")
    all_finite("features", x)
    own = as_classes(labels, len(x)).to(x.device)
    names = torch.unique(own)
    if len(names) < 2:
        raise ValueError("a head needs samples of at least two classes")
    if classes is not None:
        given = torch.as_tensor(classes).to(own)
        if bool((~torch.isin(names, given)).any()):
            raise ValueError(f"a label is none of the {len(given)} classes")
        names = torch.unique(given)
    return x, names, torch.searchsorted(names, own)
