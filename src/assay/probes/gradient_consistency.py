"""Do the first gradients of a filter agree in direction? For any PyTorch model, watched while it trains.

Gradients of the first steps are averaged in chunks (three chunks of ten steps by default), and the chunk means of every
output row or filter are compared with each other and with their grand mean.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, check_fields, limits

from ._tracking import Tracker
from .intervals import mean_interval


@dataclass(frozen=True, repr=False)
class ChunkCosines(Report):
    """Agreement of chunk means, row by row; a row whose gradient vanished in a chunk has NaN there."""

    pairwise: Tensor  # (rows, chunks, chunks)
    to_mean: Tensor  # (rows, chunks): each chunk against the grand mean, which contains it
    dim: int

    @property
    def null_pairwise(self) -> float:
        """Size of the cosine between two independent directions: 1 / sqrt(dim)."""
        return 1 / math.sqrt(self.dim)

    @property
    def null_to_mean(self) -> float:
        """Cosine with the grand mean when the chunks are orthogonal and equally long: 1 / sqrt(chunks), not 0."""
        return 1 / math.sqrt(self.to_mean.shape[1])

    @property
    def silent_rows(self) -> int:
        """Rows without any gradient in at least one chunk (dead units, tokens that never came up)."""
        return int(self.to_mean.isnan().any(dim=1).sum())

    def summary(self) -> dict[str, float]:
        """Means over the rows that have gradients: ``v1,mean`` ... then ``v1,v2`` ..., in the order of the table."""
        chunks = range(self.to_mean.shape[1])
        means = {f"v{i + 1},mean": float(self.to_mean[:, i].nanmean()) for i in chunks}
        pairs = {f"v{i + 1},v{j + 1}": float(self.pairwise[:, i, j].nanmean()) for i in chunks for j in chunks if i < j}
        return means | pairs

    def headline(self) -> str:
        found = mean_interval(self._agreement().tolist())
        return f"mean cosine between chunks {found} over rows; two unrelated directions have {self.null_pairwise:.3f}"

    def table(self) -> list[dict[str, Any]]:
        """A row per output row: its mean cosine between chunks, NaN where it is silent."""
        return [{"row": row, "cosine": value} for row, value in enumerate(self._agreement(silent=True).tolist())]

    def figure(self) -> Any:
        """Every row's mean cosine between chunks; the dashed lines are ± the size of a chance cosine."""
        return _strips([{**row, "parameter": ""} for row in self.table()], self.null_pairwise)

    def _agreement(self, silent: bool = False) -> Tensor:
        """The mean cosine over pairs of chunks, by row."""
        chunks = self.pairwise.shape[1]
        upper = torch.triu(torch.ones(chunks, chunks, dtype=torch.bool, device=self.pairwise.device), 1)
        found: Tensor = self.pairwise[:, upper].mean(1)
        return found if silent else found[~found.isnan()]


@dataclass(frozen=True, repr=False)
class ConsistencyReport(Report, Mapping[str, ChunkCosines]):
    """The agreement of every watched parameter, by name; ``left_out`` steps had gradients that were not finite."""

    parameters: Mapping[str, ChunkCosines]
    left_out: int = 0

    def __getitem__(self, name: str) -> ChunkCosines:
        return self.parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def headline(self) -> str:
        lost = f"; {self.left_out} steps with gradients that are not finite are left out" if self.left_out else ""
        return f"agreement of early gradients in {len(self)} parameters{lost}"

    def table(self) -> list[dict[str, Any]]:
        """A row per parameter: the mean cosine between chunks with its interval over rows, the size of a chance cosine,
        and whether the interval lies above it."""
        rows = []
        for name, found in self.parameters.items():
            at = mean_interval(found._agreement().tolist())
            rows.append(
                {
                    "parameter": name,
                    "rows": len(found.pairwise),
                    "silent": found.silent_rows,
                    "cosine": at.estimate,
                    "low": at.low,
                    "high": at.high,
                    "chance": found.null_pairwise,
                    "agrees": {"above": "yes", "below": "no"}.get(at.compared(found.null_pairwise), "undecided"),
                }
            )
        return rows

    def figure(self) -> Any:
        """Every row's mean cosine between chunks, by parameter; dashed, ± the size of a chance cosine."""
        rows = [{**row, "parameter": name} for name, found in self.items() for row in found.table()]
        chance = max(found.null_pairwise for found in self.values())
        return _strips(rows, chance)


def _strips(rows: Sequence[Mapping[str, Any]], chance: float) -> Any:
    """Every row of every parameter as a mark on an axis of cosines, the mean as a point."""
    known = [row for row in rows if row["cosine"] == row["cosine"]]
    names = list(dict.fromkeys(row["parameter"] for row in known))
    place = {"field": "parameter", "type": "nominal", "sort": names, "title": None}
    axis = {"field": "cosine", "type": "quantitative", "scale": {"domain": [-1, 1]}, "title": "cosine between chunks"}
    base = chart(known).encode(y=place)
    marks = base.mark_tick(thickness=2, opacity=0.6).encode(x=axis)
    means = base.mark_point(filled=True, size=70, color="black").encode(x={**axis, "aggregate": "mean"})
    limits = chart([{"cosine": chance}, {"cosine": -chance}]).mark_rule(strokeDash=[4, 4]).encode(x="cosine:Q")
    return (limits + marks + means).properties(width=380, height=40 * len(names))


@of_tensors
def chunk_cosines(chunk_means: Tensor) -> ChunkCosines:
    """Cosines among the chunk means (chunks, rows, dim) of every row, and to their grand mean."""
    if chunk_means.ndim != 3 or len(chunk_means) < 2:
        raise ValueError(f"chunk means must have shape (chunks >= 2, rows, dim), not {tuple(chunk_means.shape)}")
    all_finite("chunk means", chunk_means)
    rows = _unit_or_nan(chunk_means.transpose(0, 1).double())
    grand = _unit_or_nan(chunk_means.double().mean(dim=0))
    pairwise = (rows @ rows.mT).clamp(-1, 1)
    to_mean = torch.einsum("rcd,rd->rc", rows, grand).clamp(-1, 1)
    return ChunkCosines(pairwise, to_mean, chunk_means.shape[2])


def _unit_or_nan(vectors: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / norms.where(norms > 0, math.nan)


@dataclass(frozen=True)
class GradientConsistency(Tracker["GradientRecord"]):
    """What to watch, and for how long.

    ``parameters`` names parameters (``layer4.1.conv2.weight``) or modules (``layer4``: all of its weights with two axes
    or more). ``output_axis`` is the axis of output units: 0, except for transposed convolutions and GPT-2's ``Conv1D``
    (1). A parameter with one axis counts as a single row.
    """

    parameters: Sequence[str]
    chunks: int = field(default=3, metadata=limits(least=2))
    steps_per_chunk: int = field(default=10, metadata=limits(least=1))
    output_axis: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, model: nn.Module) -> GradientRecord:
        """Put hooks on the parameters; ``remove()`` of the record takes them off."""
        return GradientRecord(self, _resolve(model, self.parameters))


class GradientRecord:
    """Running sums of raw gradients: memory is chunks + 1 copies of the watched parameters."""

    def __init__(self, settings: GradientConsistency, watched: dict[str, nn.Parameter]) -> None:
        self.watched = watched
        self.steps = 0
        self.left_out = 0  # steps whose gradients were not finite
        self._settings = settings
        self._latest: dict[str, Tensor] = {}
        self._sums: list[dict[str, Tensor]] = [{} for _ in range(settings.chunks)]
        self._hooks: list[Any] = [
            parameter.register_post_accumulate_grad_hook(self.hook(name))  # type: ignore[no-untyped-call]
            for name, parameter in watched.items()
        ]

    def remove(self) -> None:
        """Take the hooks off; what was seen stays."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    @property
    def complete(self) -> bool:
        return self.steps == self._settings.chunks * self._settings.steps_per_chunk

    def hook(self, name: str) -> Callable[[Tensor], None]:
        def copy_gradient(parameter: Tensor) -> None:
            # A copy of what backward left in .grad: the sum over accumulated micro-batches, not yet clipped or scaled
            # by the optimiser. A later backward of the same step replaces it; so does one after a discarded step.
            if not self.complete and parameter.grad is not None:
                gradient = parameter.grad.detach()
                gradient = gradient.to_dense() if gradient.is_sparse else gradient
                self._latest[name] = gradient.to(torch.promote_types(gradient.dtype, torch.float32), copy=True)

        return copy_gradient

    def step(self) -> None:
        """End an optimiser step; after the last one that was asked for, this does nothing. A step with a gradient that
        is not finite (one that a gradient scaler skips, say) is left out and counted."""
        if self.complete:
            return
        if not self._latest:
            raise RuntimeError("no gradient of a watched parameter arrived since the last step: step after backward")
        if not all(bool(gradient.isfinite().all()) for gradient in self._latest.values()):
            self._latest.clear()
            self.left_out += 1
            return
        sums = self._sums[self.steps // self._settings.steps_per_chunk]
        for name, gradient in self._latest.items():
            sums[name] = sums[name].add_(gradient) if name in sums else gradient
        self._latest.clear()
        self.steps += 1

    def report(self) -> ConsistencyReport:
        """The agreement of every watched parameter, by name."""
        if not self.complete:
            wanted = self._settings.chunks * self._settings.steps_per_chunk
            lost = f" ({self.left_out} more had gradients that are not finite)" if self.left_out else ""
            raise RuntimeError(f"only {self.steps} of {wanted} steps are recorded{lost}; train on, or ask for fewer")
        found = {name: chunk_cosines(self._chunk_means(name)) for name in self.watched}
        return ConsistencyReport(found, self.left_out)

    def _chunk_means(self, name: str) -> Tensor:
        """(chunks, rows, dim); the gradient of a parameter that took no part in a chunk is zero."""
        zero = torch.zeros_like(self.watched[name])
        means = [sums.get(name, zero) / self._settings.steps_per_chunk for sums in self._sums]
        if zero.ndim < 2:
            return torch.stack(means).reshape(len(means), 1, -1)
        return torch.stack([mean.movedim(self._settings.output_axis, 0).flatten(1) for mean in means])


def _resolve(model: nn.Module, names: Sequence[str]) -> dict[str, nn.Parameter]:
    """Parameters by the names they were asked for; a tied weight is watched once, under the first name asked for."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    modules: dict[str, Any] = dict(model.named_modules(remove_duplicate=False))
    found: dict[str, nn.Parameter] = {}
    for name in names:
        chosen = {name: parameters[name]} if name in parameters else {}
        if name in modules:
            prefix = f"{name}." if name else ""
            chosen = {full: p for full, p in parameters.items() if full.startswith(prefix) and p.ndim >= 2}
        trainable = {full: p for full, p in chosen.items() if p.requires_grad}
        if not trainable:
            close = difflib.get_close_matches(name, [*parameters, *modules], n=3)
            hint = f"; close names: {', '.join(close)}" if close and not chosen else ""
            raise ValueError(f"{name!r} names no trainable parameter and no module with trainable weights{hint}")
        known = {id(p) for p in found.values()}
        for full, parameter in trainable.items():
            if id(parameter) not in known:
                known.add(id(parameter))
                found[full] = parameter
    return found
