from __future__ import annotations

import pytest

from assay.studies.label_granularity.tiles.problem import Tiles
from assay.training import Seeds

SEEDS = Seeds((0, 1))


def test_tiles_lie_where_the_layout_says():
    tiles = Tiles("digits", noise=0.0)
    pools = tiles.pools("train")
    assert len(pools) == 2 + 2 * tiles.subclasses
    easy, fine = tiles.sample(SEEDS, "tiles", 2, pools)
    hard, _ = tiles.sample(SEEDS, "tiles", 2, pools, hard=True)
    assert easy.shape == (2, 16, 24, 64)
    assert bool(((easy.abs().sum(-1) > 0).sum(-1) == 12).all())  # six common and six subclass tiles
    assert bool(((hard.abs().sum(-1) > 0).sum(-1) == 12).all())  # six subclass tiles and six faint ones
    rows = {tuple(x.tolist()) for x in pools[2 + int(fine[0])]}
    own = sum(tuple(tile.tolist()) in rows for tile in easy[0, 0])
    assert own == 6
    with pytest.raises(ValueError, match="tiles come from"):
        Tiles("faces")
