from __future__ import annotations

import torch

from assay.studies.label_granularity.tiles.learners import TileTraining, tile_errors, tile_outputs
from assay.studies.label_granularity.tiles.problem import Tiles
from assay.training import Seeds

SEEDS = Seeds((0, 1))


def test_tile_networks_learn_and_read_out():
    tiles = Tiles("digits")
    layers = TileTraining(80, width=24, rate=3e-3).train(tiles, SEEDS, "fine")
    found = tile_errors(layers, tiles, SEEDS, "fine", 4)
    assert float(found["easy_error"].max()) < 0.3
    inputs, _ = tiles.sample(SEEDS, "order", 1, tiles.pools("test"))
    torch.testing.assert_close(tile_outputs(layers, inputs), tile_outputs(layers, inputs.flip(2)), rtol=1e-4, atol=1e-4)
