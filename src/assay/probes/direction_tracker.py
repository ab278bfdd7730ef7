"""Where do the rows of a layer point while it trains? Snapshots of its directions, drawn in one plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import NOT_SAVED, Report, altair, chart, plain
from assay.methods._checks import all_finite, check_fields, limits
from assay.methods._layers import Layer

from ._tracking import Tracker
from .directions import DirectionMap, cosines, direction_maps


@dataclass(frozen=True, repr=False)
class DirectionPath(Report):
    """Maps of one layer's directions at recorded steps, all in the same plane; ``turned`` (steps, rows) is the cosine
    of every row with its own direction at the first."""

    layer: str
    steps: tuple[int, ...]
    turned: Tensor = field(metadata=NOT_SAVED)
    maps: tuple[DirectionMap, ...] = field(metadata=NOT_SAVED)

    def headline(self) -> str:
        last = float(self.turned[-1].median())
        return (
            f"layer {self.layer}: at step {self.steps[-1]} the median row has cosine {last:.3f} with its direction at "
            f"step {self.steps[0]}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per recorded step."""
        return [
            {
                "step": step,
                "median_cosine": float(row.median()),
                "least_cosine": float(row.min()),
                "explained": drawn.explained,
            }
            for step, row, drawn in zip(self.steps, self.turned, self.maps, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"table": plain(self.table())}

    def figure(self) -> Any:
        """The plane at every recorded step, one panel each; references are crosses."""
        alt = altair("the figure of directions")
        shown = sorted({round(k * (len(self.steps) - 1) / 5) for k in range(6)})
        rows = [{**row, "step": f"step {self.steps[i]}", "order": i} for i in shown for row in self.maps[i].table()]
        kinds = ["weight", "reference"]
        base = chart(rows).mark_point(filled=True, opacity=0.7)
        drawn = base.encode(
            x=alt.X("x:Q", title=None),
            y=alt.Y("y:Q", title=None),
            color=alt.Color("kind:N", title=None, sort=kinds),
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "cross"]), title=None),
            size=alt.Size("kind:N", scale=alt.Scale(domain=kinds, range=[30, 180]), legend=None),
        ).properties(width=180, height=180)
        order = [f"step {self.steps[i]}" for i in shown]
        return drawn.facet(facet=alt.Facet("step:N", sort=order, title=None), columns=3)


@dataclass(frozen=True)
class DirectionTracker(Tracker["DirectionRecord"]):
    """Watch the rows of ``layer`` every so many steps, beside ``references`` (refs, dim): class means, the directions
    of ``gradient_features``, known features."""

    layer: str
    references: Tensor | None = None
    every: int = field(default=10, metadata=limits(least=1))

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, model: nn.Module) -> DirectionRecord:
        """Start watching; call ``step()`` of the record after every step of the optimiser."""
        return DirectionRecord(self, model)


class DirectionRecord:
    """The rows seen so far."""

    def __init__(self, settings: DirectionTracker, model: nn.Module) -> None:
        self.steps = 0
        self._settings, self._layer = settings, Layer(model, settings.layer)
        self._recorded: list[int] = []
        self._rows: list[Tensor] = []
        self._look()

    def step(self) -> None:
        """End a step of the optimiser."""
        self.steps += 1
        if self.steps % self._settings.every == 0:
            self._look()

    def report(self) -> DirectionPath:
        """The paths of all rows that never have length zero."""
        rows = torch.stack(self._rows)
        alive = (rows.abs().amax(2) > 0).all(0)
        if not bool(alive.any()):
            raise ValueError(f"no row of {self._settings.layer!r} has a direction at every recorded step")
        rows = rows[:, alive]
        turned = torch.stack([(cosines(now, rows[0])).diagonal() for now in rows])
        maps = direction_maps(list(rows), self._settings.references)
        return DirectionPath(self._settings.layer, tuple(self._recorded), turned, tuple(maps))

    def _look(self) -> None:
        rows = self._layer.rows().to("cpu", torch.float32, copy=True)
        all_finite(f"the weights of {self._settings.layer!r} at step {self.steps}", rows)
        self._recorded.append(self.steps)
        self._rows.append(rows)
