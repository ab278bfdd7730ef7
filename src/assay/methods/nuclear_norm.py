"""The nuclear-norm penalty on features: a smooth stand-in for their rank, added to any loss.

The sum of the singular values of a batch's features (rows, dim) falls when directions that carry little are dropped. In
domain generalisation the hope is that features which go with the label in some places only are such directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.distributed
from torch import Tensor, nn

from ._arrays import of_tensors
from ._attached import AttachedPenalty
from ._checks import all_finite, check_fields, limits, one_of, whole
from ._features import Side, as_matrix

Normalize = Literal["rows", "none", "sqrt_rows", "fro"]
Solver = Literal["svd", "gram"]
NORMALIZATIONS: tuple[Normalize, ...] = ("rows", "none", "sqrt_rows", "fro")
RIDGE = 1e-6  # of the mean eigenvalue: what rounding leaves of a Gram matrix's small ones in float32


@dataclass(frozen=True)
class NuclearNorm:
    """The settings of the penalty ``lam`` · ‖F‖_* on the features F of a batch, which starts after ``warmup`` steps.

    ``lam`` and ``normalize="rows"`` belong together: the sum is divided by the rows of the batch, and without that the
    same ``lam`` is as many times stronger. ``sqrt_rows`` gives a value that does not depend on the size of large
    batches; ``fro`` divides by ‖F‖_F, which no rescaling of the features moves. ``center`` subtracts the batch's mean
    first. ``max_rank`` leaves the largest so many singular values free: the penalty is zero at that rank.
    ``solver="gram"`` takes roots of the smaller Gram matrix's eigenvalues, faster on a GPU and less exact near zero.
    ``gather`` penalises the features of all processes as one matrix; without it each penalises its own, a different
    value. ``every`` is the number of steps between rows of the report; 0 keeps none.

    >>> with NuclearNorm(lam=0.01).attach(model) as penalty:
    ...     loss = penalty(cross_entropy(model(inputs), labels))
    """

    lam: float = field(default=0.01, metadata=limits(least=0))
    warmup: int = field(default=100, metadata=limits(least=0))
    normalize: Normalize = "rows"
    center: bool = False
    max_rank: int | None = field(default=None, metadata=limits(least=1))
    solver: Solver = "svd"
    gather: bool = False
    every: int = field(default=1, metadata=limits(least=0))

    def __post_init__(self) -> None:
        check_fields(self)

    def value(self, features: Tensor) -> Tensor:
        """The normalised norm of features, not multiplied by ``lam``."""
        matrix = self.matrix(features)
        return self.normalised(self.spectrum(matrix), len(matrix))

    def matrix(self, features: Tensor) -> Tensor:
        """The features (rows, dim) that are penalised together."""
        return _gathered(as_matrix(features)) if self.gather else as_matrix(features)

    def spectrum(self, matrix: Tensor) -> Tensor:
        """Singular values, largest first, with gradients."""
        return singular_values(matrix, self.center, self.solver)

    def normalised(self, values: Tensor, rows: int) -> Tensor:
        """What ``value`` makes of the singular values of so many rows."""
        return _normalised(values, rows, self.normalize, self.max_rank)

    def attach(
        self, model: nn.Module, layer: str | None = None, *, at: Side = "input", to_output: bool = False
    ) -> AttachedPenalty:
        """Watch the features that reach ``layer`` (by default the classification head) or, with ``at="output"``, leave
        it. Call what this returns on the loss of every step, and ``remove()`` it, or use it in a ``with``. With
        ``to_output`` the model itself adds the penalty to the ``loss`` that it returns, as Hugging Face models do."""
        return AttachedPenalty(self, model, layer, at, to_output)


@of_tensors
def nuclear_norm(
    features: Tensor,
    normalize: Normalize = "rows",
    center: bool = False,
    max_rank: int | None = None,
    *,
    solver: Solver = "svd",
    stacked: bool = False,
) -> Tensor:
    """The sum of the singular values of features (rows, dim), as a differentiable number. Tokens (batch, tokens, dim)
    are rows each. With ``stacked`` (..., rows, dim) is many matrices and gives (...).

    The gradient is U Vᵀ over the values that are not zero. Half precision is computed in float32, also inside
    autocast. See ``NuclearNorm`` for the options.
    """
    one_of("normalize", normalize, NORMALIZATIONS)
    one_of("solver", solver, ("svd", "gram"))
    kept = None if max_rank is None else whole("max_rank", max_rank, 1)
    rows = features.shape[-2] if stacked and features.ndim >= 2 else len(as_matrix(features))
    return _normalised(singular_values(features, center, solver, stacked), rows, normalize, kept)


def singular_values(features: Tensor, center: bool = False, solver: Solver = "svd", stacked: bool = False) -> Tensor:
    """Singular values (..., smaller side), largest first, in float32 or wider. Those at the level of rounding are
    zero: their directions are arbitrary, and so would be a gradient along them."""
    matrix = features if stacked and features.ndim >= 2 and features.numel() else as_matrix(features)
    all_finite("features", matrix.detach())
    with torch.autocast(matrix.device.type, enabled=False):
        matrix = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        matrix = matrix - matrix.mean(-2, keepdim=True) if center else matrix
        if solver == "gram":
            return _roots_of_gram(matrix)
        values = torch.linalg.svdvals(matrix)
        least = values.detach()[..., :1] * (max(matrix.shape[-2:]) * torch.finfo(values.dtype).eps)
        return torch.where(values > least, values, 0)


def _roots_of_gram(matrix: Tensor) -> Tensor:
    """Eigenvalues alone have a stable gradient; the ridge keeps that of their roots finite."""
    wide = matrix if matrix.shape[-2] <= matrix.shape[-1] else matrix.mT
    eigenvalues = torch.linalg.eigvalsh(wide @ wide.mT).flip(-1).clamp(min=0)
    ridge = RIDGE * eigenvalues.mean(-1, keepdim=True) + torch.finfo(eigenvalues.dtype).tiny
    roots: Tensor = (eigenvalues + ridge).sqrt()
    return roots


def _normalised(values: Tensor, rows: int, normalize: Normalize, max_rank: int | None) -> Tensor:
    total = values[..., max_rank or 0 :].sum(-1)
    if normalize == "fro":
        length = values.square().sum(-1).clamp(min=torch.finfo(values.dtype).tiny).sqrt()
        return total.div(length)
    return total.div({"rows": float(rows), "sqrt_rows": float(rows) ** 0.5, "none": 1.0}[normalize])


def _gathered(features: Tensor) -> Tensor:
    """The rows of all processes, in the order of their ranks; batches must be of one size."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return features
    rows: Tensor = _Gather.apply(features)  # type: ignore[no-untyped-call]
    return rows


class _Gather(torch.autograd.Function):
    """Every process computes the same penalty: the gradients of all go back to each row's owner, and averaging over
    processes, which follows, makes them those of one large batch."""

    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        parts = [torch.empty_like(features) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(parts, features.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        torch.distributed.all_reduce(gradient)
        return gradient.chunk(torch.distributed.get_world_size())[torch.distributed.get_rank()]
