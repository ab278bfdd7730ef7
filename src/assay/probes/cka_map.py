"""A heat map of linear CKA: layers against layers, or models and checkpoints against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, altair, lines, plain
from assay.methods._checks import whole
from assay.methods._data import batches_of, size_of
from assay.methods._features import Pool
from assay.methods._progress import progress

from ._reading import Representation, blocks_of, features_over, layer_features
from .cka import HsicTable, gram_of, hsic_table

Side = nn.Module | Mapping[str, Representation]


@dataclass(frozen=True, repr=False)
class CkaMap(Report):
    """CKA of every row with every column, over ``samples`` samples."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Tensor  # (rows, columns)
    unbiased: bool
    samples: int

    def __getitem__(self, names: tuple[str, str]) -> float:
        """``found["first", "second"]``."""
        for name, known in zip(names, (self.rows, self.columns), strict=True):
            if name not in known:
                raise ValueError(f"there is no {name!r} in the map; there are {', '.join(known)}")
        return float(self.values[self.rows.index(names[0]), self.columns.index(names[1])])

    def table(self) -> list[dict[str, Any]]:
        return [
            {"row": row, "column": column, "cka": self[row, column]} for row in self.rows for column in self.columns
        ]

    def headline(self) -> str:
        kind = "unbiased" if self.unbiased else "plain"
        return f"CkaMap: {len(self.rows)} × {len(self.columns)}, {kind} linear CKA over {self.samples} samples"

    def __repr__(self) -> str:
        rows = [{"": row, **{column: round(self[row, column], 3) for column in self.columns}} for row in self.rows]
        return f"{self.headline()}\n{lines(rows)}"

    def figure(self) -> Any:
        alt = altair()
        data = alt.Data(values=plain(self.table()))
        size = 44 if max(len(self.rows), len(self.columns)) <= 12 else 22
        base = alt.Chart(data).encode(
            x=alt.X("column:N", sort=list(self.columns), title=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("row:N", sort=list(self.rows), title=None),
        )
        scale = alt.Scale(domain=[0, 1], scheme="viridis", clamp=True)
        cells = base.mark_rect().encode(color=alt.Color("cka:Q", scale=scale, title="CKA"))
        chart = cells
        if size == 44:
            light = alt.condition("datum.cka > 0.6", alt.value("black"), alt.value("white"))
            chart = cells + base.mark_text(fontSize=11).encode(text=alt.Text("cka:Q", format=".2f"), color=light)
        return chart.properties(width=size * len(self.columns), height=size * len(self.rows))


def cka_map(
    rows: Side,
    inputs: Any = None,
    *,
    columns: Side | None = None,
    layers: Sequence[str] | None = None,
    unbiased: bool = True,
    batch_size: int = 256,
    pool: Pool = "mean",
    show: bool | None = None,
) -> CkaMap:
    """CKA of ``rows`` with ``columns`` (with themselves when None) on the same inputs.

    Either side is a model, for its ``layers`` (its blocks when None), or a mapping from names to models (checkpoints,
    say), to functions from inputs to features, or, without inputs, to tensors of features (n, dim). Inputs are a
    tensor, a mapping of tensors or a data loader; labels in them are left aside. The unbiased form is averaged over
    mini-batches of ``batch_size`` (a data loader's own), each by its number of samples, so that memory does not grow
    with the data; the plain form needs all samples at once.
    """
    sides = [_Reader(side, layers, pool) for side in ([rows] if columns is None else [rows, columns])]
    if inputs is None:
        batches = _pieces(sides, whole("batch_size", batch_size, 1) if unbiased else None)
    else:
        if any(isinstance(each, Tensor) for side in sides for each in side.held()):
            raise ValueError("give inputs or tensors of features, and not both")
        batches, _ = batches_of(inputs, batch_size)
    if not unbiased:
        features = [side.all_features(batches) for side in sides]
        found, used = _table(features, unbiased=False), len(next(iter(features[0].values())))
    else:
        kept = [batch for batch in batches if size_of(batch) >= 4]  # fewer rows have no unbiased estimate
        if not kept:
            raise ValueError("the unbiased estimate needs batches of four samples or more")
        largest, used = max(map(size_of, kept)), sum(map(size_of, kept))
        tables = [
            _table([side(batch) for side in sides], unbiased=True).times(size_of(batch) / largest)
            for batch in progress(kept, "batch", show)
        ]
        found = sum(tables[1:], start=tables[0])
    return CkaMap(sides[0].names, sides[-1].names, found.ratio(), unbiased, used)


def _pieces(sides: Sequence[_Reader], size: int | None) -> list[Any]:
    """Indices, in parts, of features that are given as tensors."""
    counts = {len(each) if isinstance(each, Tensor) else None for side in sides for each in side.held()}
    if len(counts) != 1 or None in counts:
        raise ValueError("without inputs every representation must be a tensor of features, of the same samples")
    order = torch.arange(counts.pop() or 0)
    return list(torch.split(order, size or len(order)))


def _table(features: Sequence[Mapping[str, Tensor]], *, unbiased: bool) -> HsicTable:
    if len(counts := {len(each) for side in features for each in side.values()}) > 1:
        raise ValueError(f"features must be of the same samples, and there are {sorted(counts)} rows")
    grams = [[gram_of(each) for each in side.values()] for side in features]
    return hsic_table(grams[0], grams[-1], unbiased)


class _Reader:
    """One side of the map: from a batch to features by name."""

    def __init__(self, side: Side, layers: Sequence[str] | None, pool: Pool) -> None:
        if not isinstance(side, (nn.Module, Mapping)):
            kind = type(side).__name__
            raise ValueError(f"a side of the map is a model or a mapping from names to what is compared, not a {kind}")
        self.side, self.pool = side, pool
        layers = [layers] if isinstance(layers, str) else layers
        model = isinstance(side, nn.Module)
        self.names = tuple((layers or blocks_of(side)) if isinstance(side, nn.Module) else map(str, side))
        if not self.names:
            raise ValueError("there is nothing to compare: give a model or named representations")
        self.layers = list(self.names) if model else []

    def held(self) -> list[Any]:
        return list(self.side.values()) if isinstance(self.side, Mapping) else [self.side]

    def __call__(self, batch: Any) -> dict[str, Tensor]:
        if isinstance(self.side, nn.Module):
            return layer_features(self.side, self.layers, batch, self.pool)
        read: Callable[[Any], Tensor] = lambda each: features_over(  # noqa: E731
            each[batch] if isinstance(each, Tensor) else each, [batch], self.pool
        )
        return {str(name): read(each) for name, each in self.side.items()}

    def all_features(self, batches: Sequence[Any]) -> dict[str, Tensor]:
        parts = [self(batch) for batch in batches]
        return {name: torch.cat([part[name] for part in parts]) for name in self.names}
