"""A penalty on whole hidden units: the norm ‖θ‖_{2,b} over units, each with its in- and outgoing weights.

With b equal to the degree of homogeneity of a unit (k + 1 for z^k and linear outputs, 2 for ReLU), minimisers of loss
plus a small penalty have the largest margin for their norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ._checks import check_fields, limits


@dataclass(frozen=True)
class GroupPenalty:
    """``groups`` lists (parameter name, axis): unit i owns slice i of each. ``order`` is b, and the penalty is
    ‖θ‖_{2,b} to ``power``: 1 for the norm itself, b for the sum of ‖θ_i‖^b. ``eps`` stands inside the roots, so that
    the gradient at a unit of zeros is zero and not NaN. Half precision has no number that small: such models are
    squared and summed in float32, and so is the answer.

    >>> GroupPenalty([("0.weight", 0), ("2.weight", 1)], order=2)(model)
    """

    groups: Sequence[tuple[str, int]]
    order: float = field(metadata=limits(least=1))
    power: float = field(default=1.0, metadata=limits(above=0))
    eps: float = field(default=1e-24, metadata=limits(least=0))

    def __post_init__(self) -> None:
        if not self.groups:
            raise ValueError("groups must list at least one (parameter name, axis)")
        check_fields(self)

    def norms(self, model: nn.Module) -> Tensor:
        """‖θ_i‖ of every unit: (units,). Units near zero are those that the penalty has switched off."""
        return self._squares(model).sqrt()

    def __call__(self, model: nn.Module) -> Tensor:
        return group_norm(self._squares(model), self.order, self.power, self.eps)

    def _squares(self, model: nn.Module) -> Tensor:
        squares: Tensor | None = None
        for name, axis in self.groups:
            part = model.get_parameter(name).movedim(axis, 0)
            part = _wide(part.reshape(len(part), -1)).square().sum(1)
            if squares is not None and len(squares) != len(part):
                raise ValueError(f"{name!r} has {len(part)} units along axis {axis}, and the others {len(squares)}")
            squares = part if squares is None else squares + part
        assert squares is not None
        return squares


def l2_group_penalty(model: nn.Module, groups: Sequence[tuple[str, int]], b: float, power: float = 1.0) -> Tensor:
    """The penalty as one call, for a loss written by hand."""
    return GroupPenalty(groups, b, power)(model)


def group_norm(squares: Tensor, order: float, power: float = 1.0, eps: float = 1e-24) -> Tensor:
    """(Σ_i ‖θ_i‖^b)^{power/b} from the squared norms (..., units): (...)."""
    squares = _wide(squares)
    total = (squares + eps).pow(order / 2).sum(-1)
    return total if power == order else (total + eps).pow(power / order)


def _wide(values: Tensor) -> Tensor:
    """float32 for half precision; wider formats as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
