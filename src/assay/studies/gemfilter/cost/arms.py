"""What a long prompt costs by the corrected table: operations and bytes for the models of the source."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field, PositiveInt

from assay import lab
from assay.training import Seeds

from . import theory


class Params(lab.Params):
    cost_lengths: tuple[PositiveInt, ...] = Field(
        (4096, 16_384, 65_536, 122_880, 2**20), min_length=1, description="n of the cost model"
    )


part = lab.Part(
    "cost",
    params=Params,
    presets={"laptop": lab.PartPreset(fewer={"cost": 4}), "paper": lab.PartPreset(fewer={"cost": 5})},
)


@part.arm("cost", over={"model": list(theory.MODELS), "length": lambda p: p.cost_lengths}, uses=(), dtype="float64")
def cost(params: Params, seeds: Seeds, record: lab.Recorder, *, model: str, length: int) -> None:
    """The corrected table of costs for the models of the source."""
    shape, layer = theory.MODELS[model]
    made = theory.costs(model, length)
    speed_up = made["full"].prefill_flops / made["gemfilter"].prefill_flops
    record(speed_up=speed_up, share_of_ceiling=speed_up / theory.ceiling(shape.layers, layer))
    for method, one in made.items():
        record(at={"method": method}, **asdict(one))
