"""A study's headlines in their order, each beside the figure that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .exhibits import Figure
from .rows import Row

_BESIDE = 840  # pixels: a wider figure stands below its claims


@dataclass(frozen=True)
class Chapter:
    """Headlines that follow one another and are seen in one figure; ``figure`` is None where they are seen in none,
    or in one that an earlier chapter has."""

    rows: Sequence[Row]
    figure: Figure | None

    @property
    def wide(self) -> bool:
        return self.figure is not None and self.figure.width > _BESIDE


def chapters(headlines: Iterable[Row], figures: Sequence[Figure]) -> list[Chapter]:
    """The story: headlines that share a figure and follow one another share a chapter."""
    told: list[tuple[list[Row], Figure | None]] = []
    for row in headlines:
        figure = _figure_of(row, figures)
        if told and told[-1][1] == figure:
            told[-1][0].append(row)
        elif figure is not None and any(figure == earlier for _, earlier in told):
            told.append(([row], None))
        else:
            told.append(([row], figure))
    return [Chapter(rows, figure) for rows, figure in told]


def _figure_of(row: Row, figures: Iterable[Figure]) -> Figure | None:
    """The figure that shows the claim and the fewest others."""
    showing = [figure for figure in figures if row.finding.claim.id in figure.shows and not figure.note]
    return min(showing, key=lambda figure: len(figure.shows), default=None)
