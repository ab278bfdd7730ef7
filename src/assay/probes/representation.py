"""What can a linear head read from the features of a snapshot? The k-step representation probe.

Snapshots after chosen training steps are frozen and a head is trained on each. The head is trained on raw features, on
features that are centred and divided by one common number, and on features standardised one by one: where only the raw
head fails, the information is there and the *scale* hides it, so that the failure says nothing about directions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, multi_margin_loss

from assay.methods._checks import all_finite, number, one_of, whole

LOSSES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {"logistic": cross_entropy, "hinge": multi_margin_loss}
SCALINGS = ("raw", "rescaled", "standardized")


@dataclass(frozen=True)
class LinearHead:
    """``scores = ((features - shift) / scale) @ weight.T + bias``, in float64."""

    weight: Tensor  # (classes, dim)
    bias: Tensor  # (classes,)
    shift: Tensor  # (dim,)
    scale: Tensor  # (dim,)
    classes: Tensor  # (classes,) labels, ascending

    def scores(self, features: Tensor) -> Tensor:
        """(n, dim) -> (n, classes)."""
        return ((features.detach().double() - self.shift) / self.scale) @ self.weight.T + self.bias

    def predict(self, features: Tensor) -> Tensor:
        return self.classes[self.scores(features).argmax(dim=1)]


def fit_head(
    features: Tensor,
    labels: Tensor,
    *,
    scaling: str = "standardized",
    loss: str = "logistic",
    learning_rate: float = 0.1,
    steps: int = 300,
    penalty: float = 0.0,
) -> LinearHead:
    """Train a linear head on features (n, dim) by full-batch Adam from zero, with a rate that falls linearly to zero.

    Nothing is random. ``penalty`` multiplies the squared norm of the weights; the bias is free.
    """
    _check(features, labels, scaling, loss)
    number("learning_rate", learning_rate, above=0)
    whole("steps", steps, 1)
    number("penalty", penalty, least=0)
    classes, targets = torch.unique(labels, return_inverse=True)
    shift, scale = scaling_of(features, scaling)
    inputs = (features.detach().double() - shift) / scale
    weight = inputs.new_zeros(len(classes), inputs.shape[1], requires_grad=True)
    bias = inputs.new_zeros(len(classes), requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=learning_rate)
    with torch.enable_grad():
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
            optimizer.zero_grad()
            objective = LOSSES[loss](inputs @ weight.T + bias, targets) + penalty * weight.square().sum()
            objective.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return LinearHead(weight.detach(), bias.detach(), shift, scale, classes)


def _check(features: Tensor, labels: Tensor, scaling: str, loss: str) -> None:
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            f"a head needs features (n, dim) and n labels, not {tuple(features.shape)} and {tuple(labels.shape)}"
        )
    all_finite("features", features)
    if len(torch.unique(labels)) < 2:
        raise ValueError("a head needs samples of at least two classes")
    one_of("scaling", scaling, SCALINGS)
    one_of("loss", loss, LOSSES)


def scaling_of(features: Tensor, scaling: str) -> tuple[Tensor, Tensor]:
    """Shift and scale (dim,) that a scaling takes from the training features."""
    values = features.detach().double()
    centre, spread = values.mean(dim=0), values.std(dim=0, correction=0)
    if scaling == "raw":
        return torch.zeros_like(centre), torch.ones_like(centre)
    # Spread at the level of the features' own rounding is not signal; dividing by it would blow noise up.
    noise = 4 * torch.finfo(features.dtype if features.is_floating_point() else torch.float32).eps
    spread = spread.where(spread > noise * values.abs().amax(dim=0), 0.0)
    if scaling == "rescaled":
        common = spread.square().mean().sqrt()
        return centre, torch.ones_like(centre) * (common if common > 0 else 1.0)
    return centre, spread.where(spread > 0, 1.0)


@dataclass(frozen=True)
class HeadScore:
    """How well a head on one snapshot reads the labels."""

    snapshot: Hashable
    scaling: str
    train_accuracy: float
    accuracy: float
    balanced_accuracy: float  # mean over classes of the share that is right
    majority: float  # accuracy of the best constant answer on the test labels


def representation_probe(
    snapshots: Mapping[Any, Callable[[Tensor], Tensor]],
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    scalings: Sequence[str] = SCALINGS,
    **head: Any,
) -> list[HeadScore]:
    """Score heads on every snapshot: a function from inputs (n, ...) to features, such as ``snapshot`` returns.

    ``train`` and ``test`` are (inputs, labels); ``head`` goes to ``fit_head``.
    """
    scores = []
    for name, features_of in snapshots.items():
        with torch.no_grad():
            seen, unseen = features_of(train[0]).flatten(1), features_of(test[0]).flatten(1)
        for scaling in scalings:
            fitted = fit_head(seen, train[1], scaling=scaling, **head)
            right = fitted.predict(unseen) == test[1]
            classes, counts = torch.unique(test[1], return_counts=True)
            balanced = torch.stack([right[test[1] == c].double().mean() for c in classes]).mean()
            train_accuracy = (fitted.predict(seen) == train[1]).double().mean()
            majority = counts.max().double() / len(right)
            numbers = (train_accuracy, right.double().mean(), balanced, majority)
            scores.append(HeadScore(name, scaling, *(float(number) for number in numbers)))
    return scores


def snapshot(model: nn.Module, layer: str | None = None, *, batch_size: int = 1024) -> Callable[[Tensor], Tensor]:
    """A frozen copy of the model as it is now: a function from inputs to the output of ``layer`` (or the model's).

    The copy is in evaluation mode; training the original afterwards does not change it. Where a layer returns a tuple
    (a transformer block), its first entry counts, and of a Hugging Face output its last hidden state; where it runs
    several times, the last run counts.
    """
    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    modules = dict(frozen.named_modules(remove_duplicate=False))
    if layer is not None and layer not in modules:
        raise ValueError(f"the model has no layer {layer!r}; it has {', '.join(name for name in modules if name)}")
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        value = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", output)
        # A copy: the next layer may be an activation that works in place.
        seen[:] = [value.clone()]

    modules[layer or ""].register_forward_hook(keep)

    def features(inputs: Tensor) -> Tensor:
        parts = []
        with torch.no_grad():
            for part in torch.split(inputs, batch_size):
                seen.clear()
                frozen(part)
                if not seen:
                    raise ValueError(f"the model never ran its layer {layer!r} on these inputs")
                parts.append(seen[-1])
        seen.clear()
        return torch.cat(parts)

    return features
