"""Grids of real tiles: the theory's picture with real pixels and a convolutional network."""

from __future__ import annotations

from pydantic import Field, field_validator

from assay import lab
from assay.data.catalog import available
from assay.training import Seeds

from ..params import Testing
from .learners import TileTraining, tile_errors
from .problem import SOURCES, Tiles


class Params(Testing):
    tiles: str = Field("auto", description="tiles: digits, or mnist+fashion_mnist (auto: the latter when it is there)")
    tile_steps: int = Field(400, ge=1, description="training steps on tiles")

    @field_validator("tiles")
    @classmethod
    def _resolve_tiles(cls, name: str) -> str:
        if name not in ("auto", *SOURCES):
            raise ValueError(f"tiles are {', '.join(SOURCES)} or auto")
        there = not available("mnist") and not available("fashion_mnist")
        return name if name != "auto" else "mnist+fashion_mnist" if there else "digits"

    def data(self) -> tuple[str, ...]:
        """The image sets that the tiles are from."""
        common, _, other, _ = SOURCES[self.tiles]
        return tuple({f"data:{name}" for name in (common, other)})


part = lab.Part(
    "tiles",
    params=Params,
    presets={
        "smoke": lab.PartPreset(tiles="digits", tile_steps=4),
        "laptop": lab.PartPreset(fewer={"tiles": 5}),
    },
)


@part.arm("tiles", over={"labels": ["coarse", "fine"]}, needs=Params.data, tolerance=0.1)
def tiles(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str) -> None:
    """Grids of real tiles with a convolutional network: does the theory's picture survive real pixels?"""
    problem = Tiles(params.tiles)
    layers = TileTraining(params.tile_steps).train(problem, seeds, labels)
    per_subclass = 4 * params.test_per_subclass
    found = tile_errors(layers, problem, seeds, labels, per_subclass)
    record(step=params.tile_steps, trials=2 * problem.subclasses * per_subclass, **found)
