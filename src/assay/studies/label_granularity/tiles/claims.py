"""Claims about grids of real tiles: what coarse labels solve (C1c) and lose (C2f, C2g), and fine ones solve (C3i)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

_TILES = "Theorems 5.1 and 5.2 on grids of tiles from the image sets in the criterion, a convolutional network"


def _error(m: Measurements[Params], samples: str, labels: str) -> Values:
    found = m.final(f"{samples}_error", arm="tiles", labels=labels)
    return found.named(f"{samples} error with {labels} labels, tiles of {m.params.tiles}")


@part.claim(
    "C1c",
    "On grids of real image tiles, a convolutional network trained on superclass labels gets at most 2 % of easy "
    "samples wrong.",
    source=_TILES,
)
def coarse_easy(m: Measurements[Params]) -> Judgement:
    return _error(m, "easy", "coarse").at_most(0.02)


@part.claim(
    "C2f",
    "On grids of real image tiles, a convolutional network trained on superclass labels gets 40 % or more of hard "
    "samples wrong.",
    source=_TILES,
)
def coarse_hard(m: Measurements[Params]) -> Judgement:
    return _error(m, "hard", "coarse").at_least(0.4)


@part.claim(
    "C2g",
    "On grids of real image tiles, subclass labels make fewer errors on hard samples than superclass labels.",
    source=_TILES,
)
def compared(m: Measurements[Params]) -> Judgement:
    coarse, fine = (_error(m, "hard", labels) for labels in ("coarse", "fine"))
    return (coarse - fine).named(f"hard error, coarse − fine, tiles of {m.params.tiles}").above(0)


@part.claim(
    "C3i",
    "On grids of real image tiles, a convolutional network trained on subclass labels gets at least 95 % of hard "
    "samples right.",
    source=_TILES,
)
def fine_hard(m: Measurements[Params]) -> Judgement:
    return _error(m, "hard", "fine").at_most(0.05)
