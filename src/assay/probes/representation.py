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

from assay.methods._models import module_named

from .heads import SCALINGS, fit_head


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
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        value = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", output)
        # A copy: the next layer may be an activation that works in place.
        seen[:] = [value.clone()]

    module_named(frozen, layer or "").register_forward_hook(keep)

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
