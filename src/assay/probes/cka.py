"""Linear CKA: how alike are two representations of the same samples, up to rotation and scale?

‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F) on centred features; the same number from Gram matrices of the samples. The plain form
grows with the number of features over that of samples, also for unrelated ones; the unbiased form does not, and can be
averaged over mini-batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from assay.methods._checks import all_finite, one_of

Form = Literal["auto", "features", "gram"]
UNDEFINED = "CKA is 0/0 for features that are constant over the samples"
UNBIASED_UNDEFINED = (
    "unbiased CKA is 0/0 up to rounding for features in which products of different samples tell nothing, such as one "
    "sample apart from all others that are equal"
)


class UndefinedCka(ValueError):
    """The similarity is 0/0: one side does not vary over the samples."""


def linear_cka(first: Any, second: Any, *, unbiased: bool = False, form: Form = "auto") -> float:
    """CKA of features (n, dim) and (n, other dim), row by row of the same samples.

    Both forms give the same number; "auto" takes the cheaper one: products of features where there are more samples
    than features, Gram matrices otherwise. ``unbiased`` uses the unbiased estimate of HSIC: about 0 for unrelated
    features, and a little below 0 now and then; it needs four rows.
    """
    one_of("form", form, ("auto", "features", "gram"))
    x, y = _checked(first), _checked(second)
    if len(x) != len(y):
        raise ValueError(f"CKA compares representations of the same samples, and there are {len(x)} and {len(y)} rows")
    if form == "features" or (form == "auto" and max(x.shape[1], y.shape[1]) <= len(x)):
        sums = CkaSums()
        sums.update(x, y)
        return sums.value(unbiased=unbiased)
    _enough(len(x), unbiased)
    return float(hsic_table([gram_of(x)], [gram_of(y)], unbiased).ratio()[0, 0])


def gram_of(features: Any) -> Tensor:
    """Gram matrix (n, n) of centred features (n, dim)."""
    rows = _checked(features)
    low, high = rows.amin(0), rows.amax(0)
    rows = torch.zeros_like(rows) if _constant(low, high) else rows - rows.mean(0)
    return rows @ rows.T


def _constant(low: Tensor, high: Tensor) -> bool:
    """Whether features of these ranges (dim,) differ by no more than rounding in single precision."""
    rounding = 4 * torch.finfo(torch.float32).eps * torch.maximum(low.abs(), high.abs())
    return bool((high - low <= rounding).all())


def _checked(features: Any) -> Tensor:
    """Rows in double precision: the sums that follow cancel."""
    found = torch.as_tensor(features).detach()
    if found.ndim != 2:
        raise ValueError(f"features must be (n, dim), not {tuple(found.shape)}: average or flatten the other axes")
    if found.is_complex():
        raise ValueError("features must be real numbers, and these are complex")
    all_finite("features", found)
    return found.double()


def _enough(rows: int, unbiased: bool) -> None:
    least = 4 if unbiased else 2
    if rows < least:
        raise ValueError(f"{'unbiased ' if unbiased else ''}CKA needs {least} rows or more, not {rows}")


@dataclass
class _Pair:
    """Sums over rows of one ordered pair of representations."""

    product: Tensor  # Σ x yᵀ
    weighted: Tensor  # Σ x ‖y‖²
    norms: Tensor  # Σ ‖x‖² ‖y‖²


@dataclass
class CkaSums:
    """CKA of data that comes in mini-batches, exactly that of all rows at once, whatever their sizes: sums of products
    of the features, (dim, other dim) numbers, are all that is kept."""

    rows: int = 0
    _shift: list[Tensor] = field(default_factory=list, repr=False)
    _sums: list[Tensor] = field(default_factory=list, repr=False)
    _ranges: list[tuple[Tensor, Tensor]] = field(default_factory=list, repr=False)
    _pairs: dict[tuple[int, int], _Pair] = field(default_factory=dict, repr=False)

    def update(self, first: Any, second: Any) -> None:
        """Take in features (n, dim) and (n, other dim) of the same n samples."""
        batch = [_checked(first), _checked(second)]
        if len(batch[0]) != len(batch[1]):
            raise ValueError(
                f"CKA compares representations of the same samples, and there are {len(batch[0])} and "
                f"{len(batch[1])} rows"
            )
        if not len(batch[0]):
            return
        if not self.rows:
            # Neither form depends on where the origin is; near the mean the sums lose fewer digits.
            self._shift = [each.mean(0) for each in batch]
            self._sums = [torch.zeros_like(shift) for shift in self._shift]
            self._ranges = [(each.amin(0), each.amax(0)) for each in batch]
        if [each.shape[1] for each in batch] != [len(shift) for shift in self._shift]:
            raise ValueError("every batch must have as many features as the first")
        self._ranges = [
            (torch.minimum(low, each.amin(0)), torch.maximum(high, each.amax(0)))
            for (low, high), each in zip(self._ranges, batch, strict=True)
        ]
        batch = [each - shift for each, shift in zip(batch, self._shift, strict=True)]
        self.rows += len(batch[0])
        for total, each in zip(self._sums, batch, strict=True):
            total += each.sum(0)
        for one, other in ((0, 0), (1, 1), (0, 1), (1, 0)):
            x, y = batch[one], batch[other]
            squares = y.square().sum(1)
            found = _Pair(x.T @ y, x.T @ squares, (x.square().sum(1) * squares).sum())
            held = self._pairs.setdefault((one, other), found)
            if held is not found:
                held.product += found.product
                held.weighted += found.weighted
                held.norms += found.norms

    def value(self, *, unbiased: bool = False) -> float:
        """CKA of the rows so far."""
        _enough(self.rows, unbiased)
        if any(_constant(*ends) for ends in self._ranges):
            raise UndefinedCka(UNDEFINED)
        if unbiased and any(self._hsic(each, each) <= self._rounding(each) for each in (0, 1)):
            raise UndefinedCka(UNBIASED_UNDEFINED)
        hsic = self._hsic if unbiased else self._product
        own, other, cross = (hsic(*pair) for pair in ((0, 0), (1, 1), (0, 1)))
        return float(cross / (own * other).sqrt())

    def _product(self, one: int, other: int) -> Tensor:
        """‖centred product‖²."""
        x, y = self._sums[one], self._sums[other]
        return (self._pairs[one, other].product - torch.outer(x, y) / self.rows).square().sum()

    def _rounding(self, one: int) -> Tensor:
        """What rounding may leave of a representation's HSIC with itself: its terms are as large as Σ K_ij²."""
        return rounding_of(self.rows) * self._pairs[one, one].product.square().sum()

    def _hsic(self, one: int, other: int) -> Tensor:
        """The unbiased estimate of HSIC up to 1/(n(n−3)), from the Gram matrices without their diagonals, whose sums
        are sums over features: Σ_j K_ij = x_i·Σx − ‖x_i‖², for one."""
        pair, n = self._pairs[one, other], self.rows
        x, y = self._sums[one], self._sums[other]
        x_norms = self._pairs[one, one].product.diagonal().sum()
        y_norms = self._pairs[other, other].product.diagonal().sum()
        trace = pair.product.square().sum() - pair.norms
        totals = (x.square().sum() - x_norms) * (y.square().sum() - y_norms)
        back = self._pairs[other, one].weighted  # Σ y ‖x‖²
        rows = x @ pair.product @ y - x @ pair.weighted - y @ back + pair.norms
        return trace + totals / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)


@dataclass
class HsicTable:
    """HSIC of rows against columns and of each with itself, with what rounding may leave of the latter; tables of
    several mini-batches add up."""

    cross: Tensor  # (rows, columns)
    first: Tensor  # (rows,)
    second: Tensor  # (columns,)
    first_rounding: Tensor  # (rows,)
    second_rounding: Tensor  # (columns,)

    def __add__(self, other: HsicTable) -> HsicTable:
        return HsicTable(*(one + another for one, another in zip(self._parts(), other._parts(), strict=True)))

    def times(self, weight: float) -> HsicTable:
        return HsicTable(*(part * weight for part in self._parts()))

    def _parts(self) -> tuple[Tensor, ...]:
        return self.cross, self.first, self.second, self.first_rounding, self.second_rounding

    def ratio(self) -> Tensor:
        """CKA (rows, columns)."""
        sides = ((self.first, self.first_rounding), (self.second, self.second_rounding))
        if any(bool((limit <= 0).any()) for _, limit in sides):
            raise UndefinedCka(UNDEFINED)
        if any(bool((own <= limit).any()) for own, limit in sides):
            raise UndefinedCka(UNBIASED_UNDEFINED)
        return self.cross / torch.outer(self.first, self.second).sqrt()


def hsic_table(first: Sequence[Tensor], second: Sequence[Tensor], unbiased: bool) -> HsicTable:
    """HSIC of every Gram matrix (n, n) of ``first`` with every one of ``second``."""
    rows, columns = (torch.stack([_centred(gram, unbiased).flatten() for gram in side]) for side in (first, second))
    n = len(first[0])
    scale = n * (n - 3) if unbiased else n * n
    limits = [rounding_of(n) * torch.stack([gram.square().sum() for gram in side]) / scale for side in (first, second)]
    return HsicTable(rows @ columns.T / scale, rows.square().sum(1) / scale, columns.square().sum(1) / scale, *limits)


def rounding_of(rows: int) -> float:
    """Of a sum over so many rows in double precision, relative to its terms."""
    return 64 * math.sqrt(rows) * torch.finfo(torch.float64).eps


def _centred(gram: Tensor, unbiased: bool) -> Tensor:
    """Centred, or U-centred: with a zero diagonal, so that products are the unbiased estimate."""
    n = len(gram)
    if not unbiased:
        return gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    gram = gram - torch.diag(gram.diagonal())
    sums = gram.sum(0)
    found = gram - (sums + sums.unsqueeze(1)) / (n - 2) + sums.sum() / ((n - 1) * (n - 2))
    return found - torch.diag(found.diagonal())
