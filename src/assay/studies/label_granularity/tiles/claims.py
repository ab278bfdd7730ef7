"""Claims about grids of real tiles: what coarse labels solve (C1c) and lose (C2f, C2g), and fine ones solve (C3i)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part

_TILES = "Theorems 5.1 and 5.2 on grids of real tiles, a convolutional network"


@part.claim("C1c", "on tiles of real pixels coarse labels solve easy samples", source=_TILES)
def coarse_easy(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", arm="tiles", labels="coarse").at_most(0.02)


@part.claim("C2f", "on tiles of real pixels coarse labels leave hard samples wrong", source=_TILES)
def coarse_hard(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="tiles", labels="coarse").at_least(0.4)


@part.claim("C2g", "there fine labels make fewer errors on hard samples than coarse ones", source=_TILES)
def compared(m: Measurements[Params]) -> Judgement:
    coarse, fine = (m.final("hard_error", arm="tiles", labels=who) for who in ("coarse", "fine"))
    return (coarse - fine).named("hard error, coarse − fine").above(0)


@part.claim("C3i", "and fine labels solve hard ones", source=_TILES)
def fine_hard(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="tiles", labels="fine").at_most(0.05)
