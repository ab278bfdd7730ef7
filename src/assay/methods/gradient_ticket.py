"""Which neurons of a layer already stand on the directions that the gradient points to? They form a ticket: a small
network that trains about as fast as the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from assay._reports import NOT_SAVED, PALETTE, Report, altair
from assay.probes.cones import check_width, cosines_or_zero
from assay.probes.gradient_features import GradientFeatures, gradient_features

from ._checks import all_finite, whole
from ._data import as_tensor
from ._layers import Layer
from ._models import copied


@dataclass(frozen=True)
class TicketGroup:
    """The kept units along one direction and one sign of it."""

    direction: int
    sign: int
    candidates: int  # units in the cone
    kept: int
    cosine: float  # mean |cos| of the kept ones, NaN without any
    switches: tuple[float, float]  # range of their |bias|/‖weight‖


@dataclass(frozen=True, repr=False)
class GradientTicket(Report):
    """``mask`` (units,) says which units of ``layer`` to keep; ``filled`` of them lie in no cone and only make up the
    number."""

    layer: str
    size: int
    filled: int
    groups: tuple[TicketGroup, ...]
    mask: Tensor
    cosines: Tensor = field(metadata=NOT_SAVED)  # (units, directions) of the weights, signed
    switches: Tensor = field(metadata=NOT_SAVED)  # (units,)
    features: GradientFeatures | None = field(default=None, metadata=NOT_SAVED)

    def headline(self) -> str:
        places = sum(group.kept > 0 for group in self.groups)
        where = f"on {places} of {len(self.groups)} signed directions"
        return f"layer {self.layer}: {self.size} of {len(self.mask)} units {where}" + (
            f"; {self.filled} of them lie in no cone" if self.filled else ""
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per direction and sign that has units in its cone."""
        return [
            {
                "direction": group.direction,
                "sign": group.sign,
                "candidates": group.candidates,
                "kept": group.kept,
                "cosine": group.cosine,
                "nearest_switch": group.switches[0],
                "farthest_switch": group.switches[1],
            }
            for group in self.groups
            if group.candidates
        ]

    def figure(self) -> Any:
        """Every unit by the switch |bias|/‖weight‖ and the largest |cos| of its weight; the ticket stands out."""
        alt = altair()
        strongest = self.cosines.abs().max(1)
        usual = float(self.switches[self.switches.isfinite()].quantile(0.9))  # some lie far beyond the data
        rows = [
            {"cosine": cosine, "switch": switch, "direction": str(own), "kept": "ticket" if kept else "left out"}
            for cosine, own, switch, kept in zip(
                strongest.values.tolist(),
                strongest.indices.tolist(),
                self.switches.tolist(),
                self.mask.tolist(),
                strict=True,
            )
            if switch < float("inf")
        ]
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_point(filled=True)
            .encode(
                x=alt.X("switch:Q", title="switch |bias| / ‖weight‖", scale=alt.Scale(domain=[0, usual], clamp=True)),
                y=alt.Y("cosine:Q", title="|cos| with its nearest direction", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("direction:N", scale=alt.Scale(range=list(PALETTE)), title="direction"),
                opacity=alt.Opacity(
                    "kept:N", scale=alt.Scale(domain=["ticket", "left out"], range=[1, 0.2]), title=None
                ),
                size=alt.Size("kept:N", scale=alt.Scale(domain=["ticket", "left out"], range=[90, 30]), title=None),
            )
            .properties(width=420, height=260, title=f"The ticket among the units of layer {self.layer}")
        )

    def masked(self, model: nn.Module) -> nn.Module:
        """A copy of the model in which the units outside are zero, and stay so while it trains."""
        return masked(model, self.layer, self.mask)

    def pruned(self, model: nn.Module, following: str) -> nn.Module:
        """A copy of the model without the units outside: ``following`` names the layer that reads them, with nothing
        but activations, dropout, pooling and flattening between."""
        return without_units(model, self.layer, following, self.mask)


def gradient_ticket(
    model: nn.Module,
    layer: str,
    data: Any = None,
    targets: Any = None,
    *,
    size: int,
    directions: Tensor | None = None,
    gamma: float = 0.15,
    **probe: Any,
) -> GradientTicket:
    """Keep ``size`` units of a layer whose weights lie in the cones of shared gradient directions.

    Call it after the first steps of training. Directions are found with ``gradient_features`` (``probe`` holds its
    options), or given as (directions, dim). Each direction and sign gets an equal quota, taken from its nearest units
    so that their switches |bias|/‖weight‖ are spread; what a direction cannot fill the others do.
    """
    check_width(gamma)
    chosen = Layer(model, layer)
    weights = chosen.rows().cpu().float()
    all_finite(f"the weights of {layer!r}", weights)
    size = whole("size", size, 1, len(weights))
    features = None
    if directions is None:
        if data is None:
            raise ValueError("a ticket needs directions, or data to find them in")
        features = gradient_features(model, layer, data, targets, **probe)
        directions = features.directions
        if not len(directions):
            raise ValueError(f"a ticket needs directions, and none is named: {features.headline()}")
    elif probe:
        raise ValueError(f"where directions are given nothing is probed, and {', '.join(probe)} would change nothing")
    directions = as_tensor(directions)
    if not isinstance(directions, Tensor):
        raise ValueError(f"directions are (directions, {weights.shape[1]}), not {type(directions).__name__}")
    if directions.ndim != 2 or directions.shape[1] != weights.shape[1] or not len(directions):
        raise ValueError(f"directions are (directions, {weights.shape[1]}), not {tuple(directions.shape)}")
    cosines = cosines_or_zero(weights, directions.detach().cpu().float())
    switches = chosen.thresholds().cpu()
    own = cosines.abs().argmax(1)
    near = cosines.gather(1, own.unsqueeze(1)).squeeze(1)
    inside = near.abs() > 1 - gamma
    if features is not None:
        inside &= features.gradients.abs().amax(1) > 0  # a unit that no sample reaches is near nothing
    places = [
        (own == direction) & (near.sign() == sign) & inside for direction in range(len(directions)) for sign in (1, -1)
    ]
    quotas = _quotas([int(place.sum()) for place in places], size)
    mask = torch.zeros(len(weights), dtype=torch.bool)
    groups = []
    for number, (place, quota) in enumerate(zip(places, quotas, strict=True)):
        kept = _spread(place.nonzero().squeeze(1), near.abs(), switches, quota)
        mask[kept] = True
        groups.append(
            TicketGroup(
                direction=number // 2,
                sign=-1 if number % 2 else 1,
                candidates=int(place.sum()),
                kept=len(kept),
                cosine=float(near[kept].abs().mean()) if len(kept) else float("nan"),
                switches=(float(switches[kept].min()), float(switches[kept].max())) if len(kept) else (0.0, 0.0),
            )
        )
    missing = size - int(mask.sum())
    rest = torch.where(mask, -1.0, near.abs()).argsort(descending=True, stable=True)[:missing]
    mask[rest] = True
    return GradientTicket(layer, size, missing, tuple(groups), mask, cosines, switches, features)


def _quotas(candidates: list[int], size: int) -> list[int]:
    """As equal as the candidates allow, at most ``size`` in all; the fullest places get what is left over."""
    quotas = [0] * len(candidates)
    order = sorted(range(len(candidates)), key=lambda place: -candidates[place])
    while sum(quotas) < min(size, sum(candidates)):
        for place in order:
            if quotas[place] < candidates[place] and sum(quotas) < size:
                quotas[place] += 1
    return quotas


def _spread(place: Tensor, nearness: Tensor, switches: Tensor, quota: int) -> Tensor:
    """``quota`` of the units at a place: of twice as many that are nearest, evenly by the rank of their switches."""
    if not quota:
        return place[:0]
    nearest = place[nearness[place].argsort(descending=True, stable=True)[: 2 * quota]]
    ranked = nearest[switches[nearest].argsort(stable=True)]
    # At the middles of equal parts, since the outermost switches lie beyond the data.
    return ranked[((torch.arange(quota) + 0.5) * len(ranked) / quota).long()]


def kept_units(layer: Layer, mask: Any) -> Tensor:
    """A mask (units,) on the CPU; what is none, or keeps no unit, is refused."""
    found, units = torch.as_tensor(mask).cpu(), len(layer.rows())
    if found.dtype != torch.bool or found.shape != (units,) or not bool(found.any()):
        given = f"{str(found.dtype).removeprefix('torch.')} entries of shape {tuple(found.shape)}"
        given = "none that is True" if found.dtype == torch.bool and found.shape == (units,) else given
        raise ValueError(
            f"a mask of {layer.name!r} has {units} entries, True for the units to keep, and keeps one, not {given}"
        )
    return found


def masked(model: nn.Module, layer: str, mask: Tensor) -> nn.Module:
    """A copy of the model whose layer has only the units of ``mask`` (units,), also while it trains."""
    twin = copied(model)
    chosen = Layer(twin, layer)
    mask = kept_units(chosen, mask).to(chosen.device)
    kept = mask if chosen.transposed else mask.reshape(-1, *[1] * (chosen.weight.ndim - 1))
    prune.custom_from_mask(chosen.module, "weight", kept.expand_as(chosen.weight))  # type: ignore[no-untyped-call]
    if chosen.biases() is not None:
        prune.custom_from_mask(chosen.module, "bias", mask)  # type: ignore[no-untyped-call]
    return twin


def without_units(model: nn.Module, layer: str, following: str, mask: Tensor) -> nn.Module:
    """A copy of the model in which the units outside ``mask`` are gone, from the layer and from what reads it."""
    twin = copied(model)
    first, second = Layer(twin, layer), Layer(twin, following)
    units = len(first.rows())
    read = second.weight.shape[0 if second.transposed else 1]
    if getattr(first.module, "groups", 1) != 1 or getattr(second.module, "groups", 1) != 1:
        raise ValueError("units of grouped convolutions cannot be taken out one by one: use masked")
    if read % units:
        raise ValueError(f"{following!r} reads {read} values, which {units} units of {layer!r} cannot give")
    mask = kept_units(first, mask).to(first.device)
    columns = mask.repeat_interleave(read // units)  # flattening keeps the places of a channel together
    _cut(first, mask, outputs=True)
    _cut(second, columns, outputs=False)
    return twin


def _cut(layer: Layer, kept: Tensor, *, outputs: bool) -> None:
    axis = int(layer.transposed) if outputs else int(not layer.transposed)
    module: Any = layer.module
    index = kept.nonzero().squeeze(1)
    module.weight = nn.Parameter(module.weight.detach().index_select(axis, index), module.weight.requires_grad)
    if outputs and module.bias is not None:
        module.bias = nn.Parameter(module.bias.detach()[index], module.bias.requires_grad)
    names = ("out_features", "out_channels", "nf") if outputs else ("in_features", "in_channels", "nx")
    for name in names:
        if hasattr(module, name):
            setattr(module, name, len(index))
