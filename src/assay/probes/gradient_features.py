"""Which directions does the first gradient of a layer point to? The gradient-feature probe, for any PyTorch model.

At zero output the gradient of a ReLU unit is its outgoing weight times G = E[residual · input · 1{unit is active}]: a
direction that the data choose. Units whose G share a direction show a feature that gradient descent is about to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import NOT_SAVED, Report, altair
from assay.methods._checks import number, whole
from assay.methods._data import Labelled
from assay.methods._layers import Layer

from .cones import Cone, check_width, cone_cover
from .layer_gradients import layer_gradients


@dataclass(frozen=True)
class Refused:
    """A cone whose direction did not come out the same on both halves of the data, and therefore gets no name."""

    mass: float
    stability: float


@dataclass(frozen=True, repr=False)
class GradientFeatures(Report):
    """Directions (named, dim) of unit norm, the densest cone first. A direction is named when the gradients of its
    units on two halves of the data agree: their cosine, ``stability``, is at least ``least_stability``."""

    layer: str
    samples: int
    units: int
    silent: int  # units without any gradient
    floor: float  # units with a shorter gradient than this were left out of the cones
    gamma: float
    least_stability: float
    directions: Tensor
    mass: Tensor  # (named,) share of all units in the cone
    width: Tensor  # (named,) 1 − the smallest |cos| of a unit in it
    stability: Tensor  # (named,)
    positive_bias: Tensor | None  # (named,) share of the cone's units whose bias is above zero
    refused: tuple[Refused, ...]
    warnings: tuple[str, ...]
    shape: tuple[int, ...]  # of a row: (dim,), or (channels, height, width)
    own: Tensor = field(metadata=NOT_SAVED)  # (units,) the direction of each unit, −1 without one
    cosines: Tensor = field(metadata=NOT_SAVED)  # (units,) |cos| of its gradient with it, NaN without one
    gradients: Tensor = field(metadata=NOT_SAVED)  # (units, dim), divided by each unit's outgoing scale

    def headline(self) -> str:
        named = f"{len(self.directions)} directions are" if len(self.directions) != 1 else "1 direction is"
        lines = [f"layer {self.layer}: {named} shared by {self.mass.sum():.0%} of {self.units} units"]
        lines[0] += f" ({self.samples} samples, cones of width {self.gamma:g})"
        if self.refused:
            best = max(each.stability for each in self.refused)
            count = f"{len(self.refused)} more cones are" if len(self.refused) > 1 else "1 more cone is"
            lines.append(
                f"{count} not named: two halves of the data do not agree on the direction (cosine {best:.2f} at best, "
                f"{self.least_stability:g} is asked for); more samples may decide"
            )
        return "\n".join([*lines, *(f"warning: {each}" for each in self.warnings)])

    def table(self) -> list[dict[str, Any]]:
        """A row per named direction."""
        columns: dict[str, Tensor] = {"mass": self.mass, "width": self.width, "stability": self.stability}
        if self.positive_bias is not None:
            columns["positive_bias"] = self.positive_bias
        return [
            {"direction": i, "units": int((self.own == i).sum())}
            | {name: float(values[i]) for name, values in columns.items()}
            for i in range(len(self.directions))
        ]

    def figure(self, shape: tuple[int, int] | None = None) -> Any:
        """Mass and stability of the directions; with the ``shape`` (height, width) of the inputs, or for a
        convolution, each direction as a picture below (the mean over channels)."""
        alt = altair()
        rows = self.table() + [
            {"direction": f"refused {i}", "mass": each.mass, "stability": each.stability}
            for i, each in enumerate(self.refused, 1)
        ]
        if not rows:
            raise ValueError("no cone was found, so there is nothing to draw: see the report's headline")
        order = [str(row["direction"]) for row in rows]
        bars = (
            alt.Chart(alt.Data(values=[row | {"direction": str(row["direction"])} for row in rows]))
            .mark_bar()
            .encode(
                x=alt.X("direction:N", sort=order, title="direction", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("mass:Q", title="share of units in its cone"),
                color=alt.Color("stability:Q", scale=alt.Scale(domain=[0, 1], scheme="viridis"), title="stability"),
                tooltip=["direction:N", "mass:Q", "stability:Q"],
            )
            .properties(
                width=max(240, 40 * len(rows)), height=180, title=f"Shared gradient directions of layer {self.layer}"
            )
        )
        grid = shape or (self.shape[1:] if len(self.shape) == 3 else None)
        return (
            bars
            if grid is None or not len(self.directions)
            else (bars & self._pictures(alt, grid)).resolve_scale(color="independent")
        )

    def _pictures(self, alt: Any, grid: tuple[int, ...]) -> Any:
        if self.directions.shape[1] % (grid[0] * grid[1]):
            raise ValueError(f"a row of {self.directions.shape[1]} entries is no picture of shape {tuple(grid)}")
        pictures = self.directions.reshape(len(self.directions), -1, *grid).mean(1)
        most = float(pictures.abs().max())
        pixels = [
            {"direction": i, "row": y, "column": x, "value": float(pictures[i, y, x])}
            for i in range(len(pictures))
            for y in range(grid[0])
            for x in range(grid[1])
        ]
        side = 88
        return (
            alt.Chart(alt.Data(values=pixels))
            .mark_rect()
            .encode(
                x=alt.X("column:O", axis=None),
                y=alt.Y("row:O", axis=None),
                color=alt.Color("value:Q", scale=alt.Scale(domain=[-most, most], scheme="blueorange"), title="entry"),
            )
            .properties(width=side, height=side * grid[0] / grid[1])
            .facet(facet=alt.Facet("direction:O", title=None), columns=6)
            .resolve_scale(x="independent", y="independent")
        )


def gradient_features(
    model: nn.Module,
    layer: str,
    data: Any,
    targets: Any = None,
    *,
    center: bool = True,
    output: int | None = None,
    gamma: float = 0.1,
    least_mass: float = 0.02,
    most: int = 16,
    drop: float = 0.1,
    stability: float = 0.7,
    parts: int = 8,
    samples: int | None = None,
    batch_size: int = 256,
    seed: int = 0,
) -> GradientFeatures:
    """The directions that the weight gradients of a layer's units share, found in one pass over the data.

    The pass sends back −⟨residual, output⟩: the residual that the labels leave at zero output (``center``), or the one
    at the model's present output. ``output`` keeps one of several outputs, so that units are sorted by one class and
    not by mixtures. Gradients shorter than their ``drop`` quantile are left out; cones of width ``gamma`` with at least
    ``least_mass`` of the units are kept, ``most`` of them. The cosine between two halves of the data, which must reach
    ``stability``, is estimated from all pairs of ``parts`` that ``seed`` draws.

    ``data`` are inputs with ``targets``, a pair of both, a mapping with ``labels``, or a data loader of either kind.
    """
    check_width(gamma)
    number("least_mass", least_mass, above=0, most=1)
    number("drop", drop, least=0, below=1)
    number("stability", stability, least=-1, most=1)
    whole("most", most, 1)
    whole("batch_size", batch_size, 1)
    whole("parts", parts, 2)
    if samples is not None:
        whole("samples", samples, 2)
    chosen = Layer(model, layer)
    labelled = Labelled(data, targets, size=batch_size, device=chosen.device, limit=samples)
    found = layer_gradients(chosen, labelled, center=center, output=output, parts=parts, seed=whole("seed", seed))
    warnings = found.residuals.warnings()
    gradients = found.parts.sum(0)
    kept, floor, silent = _long_enough(gradients, drop, layer)
    least = max(2, round(least_mass * len(gradients)))  # what a single unit has, it does not share
    cones = cone_cover(gradients[kept], gamma=gamma, most=most, least=least)
    agreed = [found.stability(kept[cone.members]) for cone in cones]
    named = [(cone, cosine) for cone, cosine in zip(cones, agreed, strict=True) if cosine >= stability]
    refused = [(cone, cosine) for cone, cosine in zip(cones, agreed, strict=True) if not cosine >= stability]
    own, cosines = _assigned([cone for cone, _ in named], kept, len(gradients))
    none = gradients.new_zeros(0, gradients.shape[1])
    return GradientFeatures(
        layer=chosen.name,
        samples=found.residuals.samples,
        units=len(gradients),
        silent=silent,
        floor=floor,
        gamma=gamma,
        least_stability=stability,
        directions=torch.stack([cone.direction for cone, _ in named]) if named else none,
        mass=torch.tensor([len(cone.members) / len(gradients) for cone, _ in named]),
        width=torch.tensor([1 - float(cone.cosines.min()) for cone, _ in named]),
        stability=torch.tensor([cosine for _, cosine in named]),
        positive_bias=_positive(chosen.biases(), own, len(named)),
        refused=tuple(Refused(len(cone.members) / len(gradients), cosine) for cone, cosine in refused),
        warnings=warnings,
        shape=chosen.shape,
        own=own,
        cosines=cosines,
        gradients=gradients,
    )


def _long_enough(gradients: Tensor, drop: float, layer: str) -> tuple[Tensor, float, int]:
    """The units whose gradient reaches the ``drop`` quantile, that length, and how many units have none."""
    norms = torch.linalg.vector_norm(gradients, dim=1)
    alive = norms > 0
    if not bool(alive.any()):
        raise ValueError(
            f"no unit of {layer!r} has a gradient: all are inactive on these data, or the output ignores them"
        )
    floor = float(norms[alive].quantile(drop)) if drop else 0.0
    return (alive & (norms >= floor)).nonzero().squeeze(1), floor, int((~alive).sum())


def _assigned(cones: Sequence[Cone], kept: Tensor, units: int) -> tuple[Tensor, Tensor]:
    """Of every unit the number of its cone, or −1, and its cosine with that direction, or NaN."""
    own, cosines = torch.full((units,), -1), torch.full((units,), torch.nan)
    for i, cone in enumerate(cones):
        own[kept[cone.members]], cosines[kept[cone.members]] = i, cone.cosines.to(cosines)
    return own, cosines


def _positive(biases: Tensor | None, own: Tensor, cones: int) -> Tensor | None:
    """The share of every cone's units whose bias is above zero."""
    if biases is None:
        return None
    return torch.tensor([float((biases.cpu()[own == i] > 0).float().mean()) for i in range(cones)])
