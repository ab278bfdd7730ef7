"""Do the units of a layer keep the features of their first step? Watched while a model trains.

After the reference step (the first by default) every unit has a feature of its own, the direction nearest to its
weight. From then on: the cosine with it, how far the weight has drifted, and how many activations have changed sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import NOT_SAVED, PALETTE, Report, altair, plain
from assay.methods._checks import all_finite, check_fields, limits
from assay.methods._data import as_tensor, checked, moved, split_batch
from assay.methods._layers import Layer
from assay.methods._models import evaluating, output_of
from assay.methods._precision import uncached_casts

from ._tracking import Tracker
from .cones import cosines_or_zero


@dataclass(frozen=True, repr=False)
class Alignment(Report):
    """Per recorded step and unit: ``cosines`` |cos| with the unit's own feature, ``drift`` ‖w − w_ref‖/‖w_ref‖, and
    ``flips`` the share of the probe inputs on which its activation has changed sides. Before the reference step the
    latter two are NaN; a unit of weight zero there has no feature, and NaN throughout."""

    layer: str
    reference: int
    steps: tuple[int, ...]
    own: Tensor  # (units,) the direction of each unit
    cosines: Tensor = field(metadata=NOT_SAVED)  # (steps, units)
    drift: Tensor = field(metadata=NOT_SAVED)  # (steps, units)
    flips: Tensor | None = field(metadata=NOT_SAVED)  # (steps, units)

    def headline(self) -> str:
        after = self.steps.index(self.reference)
        first, last = (float(self.cosines[i].nanmedian()) for i in (after, -1))
        drift = float(self.drift[-1].nanmedian())
        return (
            f"layer {self.layer}: the median |cos| of a unit with its own feature was {first:.3f} at step "
            f"{self.reference} and is {last:.3f} at step {self.steps[-1]}, after a median drift of {drift:.3g}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per recorded step, over the units."""
        rows = []
        for i, step in enumerate(self.steps):
            row = {
                "step": step,
                "median_cosine": float(self.cosines[i].nanmedian()),
                "share_above_0.9": float((self.cosines[i] > 0.9).double().mean()),
                "median_drift": float(self.drift[i].nanmedian()),
                "largest_drift": float(torch.nan_to_num(self.drift[i], -1.0).max()) if step >= self.reference else None,
            }
            rows.append(row if self.flips is None else row | {"flips": float(self.flips[i].nanmean())})
        return rows

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"table": plain(self.table())}

    def figure(self) -> Any:
        """Cosine, drift and flips over steps."""
        alt = altair()
        names = {"median_cosine": "median |cos|", "median_drift": "median drift", "flips": "flipped activations"}
        rows = [
            {"step": row["step"], "what": said, "value": row[name]}
            for row in self.table()
            for name, said in names.items()
            if name in row and row[name] == row[name]
        ]
        said = list(names.values())
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_line(point=True)
            .encode(
                x=alt.X("step:Q", title="step"),
                y=alt.Y("value:Q", title=None),
                color=alt.Color("what:N", scale=alt.Scale(domain=said, range=list(PALETTE[:3])), title=None),
            )
            .properties(
                width=420, height=240, title=f"Units of layer {self.layer} and their features of step {self.reference}"
            )
        )


@dataclass(frozen=True)
class AlignmentTracker(Tracker["AlignmentRecord"]):
    """What to watch. ``directions`` (directions, dim) are candidate features, such as ``gradient_features`` finds;
    ``inputs``, a tensor, an array or a mapping for the model, are probe inputs for the flips."""

    layer: str
    directions: Tensor
    inputs: Any = None
    every: int = field(default=1, metadata=limits(least=1))
    reference: int = field(default=1, metadata=limits(least=0))

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "directions", as_tensor(self.directions))
        if not isinstance(self.directions, Tensor) or self.directions.ndim != 2 or not len(self.directions):
            raise ValueError("directions must be a tensor (directions, dim) with at least one row")
        all_finite("directions", self.directions)

    def begin(self, model: nn.Module) -> AlignmentRecord:
        """Start watching; call ``step()`` of the record after every step of the optimiser."""
        return AlignmentRecord(self, model)


class AlignmentRecord:
    """What was seen so far: cosines of all units with all directions per step, and the reference itself."""

    def __init__(self, settings: AlignmentTracker, model: nn.Module) -> None:
        self.steps = 0
        self._settings = settings
        self._layer = Layer(model, settings.layer)
        dim = self._layer.rows().shape[1]
        if settings.directions.shape[1] != dim:
            raise ValueError(
                f"rows of {settings.layer!r} have {dim} entries, directions {settings.directions.shape[1]}"
            )
        self._inputs = None if settings.inputs is None else checked(split_batch(settings.inputs)[0])
        self._recorded: list[int] = []
        self._cosines: list[Tensor] = []
        self._drift: list[Tensor] = []
        self._flips: list[Tensor] = []
        self._own, self._start, self._gates = torch.zeros(0), torch.zeros(0), torch.zeros(0)
        self._look()

    def step(self) -> None:
        """End a step of the optimiser."""
        self.steps += 1
        if self.steps == self._settings.reference or self.steps % self._settings.every == 0:
            self._look()

    def report(self) -> Alignment:
        """What happened to the units; at least the reference step must be over."""
        reference = self._settings.reference
        if self.steps < reference:
            raise RuntimeError(f"only {self.steps} steps are recorded, and step {reference} is the reference: train on")
        cosines = torch.stack([found.gather(1, self._own.unsqueeze(1)).squeeze(1).abs() for found in self._cosines])
        silent = torch.linalg.vector_norm(self._start, dim=1) == 0
        return Alignment(
            layer=self._settings.layer,
            reference=reference,
            steps=tuple(self._recorded),
            own=self._own,
            cosines=cosines.masked_fill(silent, torch.nan),
            drift=torch.stack(self._drift),
            flips=None if self._inputs is None else torch.stack(self._flips),
        )

    def _look(self) -> None:
        rows = self._layer.rows().to("cpu", torch.float32, copy=True)
        all_finite(f"the weights of {self._settings.layer!r} at step {self.steps}", rows)
        directions = self._settings.directions.detach().cpu().float()
        self._recorded.append(self.steps)
        self._cosines.append(cosines_or_zero(rows, directions))
        gates = None if self._inputs is None else self._active()
        if self.steps == self._settings.reference:
            self._own, self._start = self._cosines[-1].abs().argmax(1), rows
            self._gates = self._gates if gates is None else gates
        unknown = self.steps < self._settings.reference
        norms = torch.linalg.vector_norm(rows if unknown else self._start, dim=1)
        moved = torch.full_like(norms, torch.nan) if unknown else torch.linalg.vector_norm(rows - self._start, dim=1)
        self._drift.append(moved / norms.where(norms > 0, torch.nan))
        if gates is not None:
            flips = torch.full_like(norms, torch.nan) if unknown else (gates != self._gates).float().mean(0)
            self._flips.append(flips)

    def _active(self) -> Tensor:
        """On which probe inputs (and places) each unit is above zero: (places, units), boolean."""
        seen: list[Tensor] = []
        layer = self._layer

        def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
            seen.append((layer.units_last(output) > 0).reshape(-1, len(layer.rows())).cpu())

        hook = layer.module.register_forward_hook(keep)
        try:
            with torch.no_grad(), evaluating(layer.model), uncached_casts():
                output_of(layer.model, moved(self._inputs, layer.device))
        finally:
            hook.remove()
        if not seen:
            raise ValueError(f"the probe inputs do not reach the layer {layer.name!r}")
        return torch.cat(seen)
