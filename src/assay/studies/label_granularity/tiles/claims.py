"""Claims about grids of real tiles: what coarse labels solve (C1c) and lose (C2f, C2g), and fine ones solve (C3i)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part

_TILES = "Theorems 5.1 and 5.2 on grids of tiles from the configured image sets, a convolutional network"


@part.claim(
    "C1c",
    "On grids of real image tiles, a convolutional network trained on superclass labels solves easy samples.",
    source=_TILES,
)
def coarse_easy(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", arm="tiles", labels="coarse").at_most(0.02)


@part.claim(
    "C2f",
    "On grids of real image tiles, a convolutional network trained on superclass labels gets 40 % or more of hard "
    "samples wrong.",
    source=_TILES,
)
def coarse_hard(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="tiles", labels="coarse").at_least(0.4)


@part.claim(
    "C2g",
    "On grids of real image tiles, subclass labels make fewer errors on hard samples than superclass labels.",
    source=_TILES,
)
def compared(m: Measurements[Params]) -> Judgement:
    coarse, fine = (m.final("hard_error", arm="tiles", labels=who) for who in ("coarse", "fine"))
    return (coarse - fine).named("hard error, coarse − fine").above(0)


@part.claim(
    "C3i",
    "On grids of real image tiles, a convolutional network trained on subclass labels solves hard samples.",
    source=_TILES,
)
def fine_hard(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="tiles", labels="fine").at_most(0.05)
