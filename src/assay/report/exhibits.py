"""A study's figures and tables, ready for its page, with their files beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import polars as pl

from assay.lab import Measurements, NotMeasured
from assay.lab.errors import position_of
from assay.lab.registry import Exhibit
from assay.lab.study import Study

from . import charts, theme
from .folder import Folder
from .numbers import column, slug, title

MOST_ROWS = 200  # of a table on the page; its file has them all
_LONG = 40  # characters from which a cell is a sentence and may wrap
_HEAVY = 1_000_000  # characters of a figure's data from which its author is told


@dataclass(frozen=True)
class Shown:
    """What figures and tables share. ``note`` says why there is nothing to see; ``error`` is set by a bug."""

    name: str
    title: str
    caption: str
    note: str = ""
    error: Exception | None = None
    files: dict[str, str] = field(default_factory=dict)  # format -> address
    shows: tuple[str, ...] = ()  # the claims that are seen in it
    number: int = 0

    kind: ClassVar[str] = ""

    @property
    def anchor(self) -> str:
        return f"{self.kind.lower()}-{self.number}"

    @property
    def label(self) -> str:
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class Figure(Shown):
    data: str = ""
    renderer: str = "svg"
    width: float = 0.0

    kind: ClassVar[str] = "Figure"

    @property
    def picture(self) -> str:
        """The file that stands in for the chart where scripts are off."""
        return self.files.get("svg") or self.files.get("png") or ""


@dataclass(frozen=True)
class Column:
    name: str
    numeric: bool
    paper: bool
    long: bool


@dataclass(frozen=True)
class Table(Shown):
    columns: list[Column] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    total: int = 0

    kind: ClassVar[str] = "Table"


def figures(study: Study, measurements: Measurements, folder: Folder, formats: Iterable[str]) -> list[Figure]:
    shelf = enumerate(study.figures.values(), 1)
    return [
        replace(_figure(exhibit, measurements, folder, study, tuple(formats)), shows=exhibit.shows, number=number)
        for number, exhibit in shelf
    ]


def tables(study: Study, measurements: Measurements, folder: Folder) -> list[Table]:
    return [
        replace(_table(exhibit, measurements, folder, study), shows=exhibit.shows, number=number)
        for number, exhibit in enumerate(study.tables.values(), 1)
    ]


def weight(figure: Figure) -> str:
    """A sentence for the author of a figure that makes the page heavy; empty for the others."""
    size = len(charts.unpacked(figure.data)) if figure.data else 0
    return f"figure '{figure.name}' carries {size / 1e6:.1f} MB; aggregate before plotting" if size > _HEAVY else ""


def _figure(exhibit: Exhibit, m: Measurements, folder: Folder, study: Study, formats: tuple[str, ...]) -> Figure:
    try:
        # The description is what a screen reader says of the chart.
        spec = {"description": exhibit.caption, **theme.spec(exhibit.make(m))}
        svg = charts.drawing(spec)
        exports = {kind: charts.export(spec, kind, svg) for kind in formats}
        data = charts.packed(spec)
    except Exception as error:
        return Figure(*_missing(exhibit, error))
    files = {kind: folder.save(_file(study, exhibit, kind), content) for kind, content in exports.items()}
    return Figure(
        exhibit.name,
        title(exhibit.name),
        exhibit.caption,
        files=files,
        data=data,
        renderer=charts.renderer(spec),
        width=charts.width(svg),
    )


def _table(exhibit: Exhibit, m: Measurements, folder: Folder, study: Study) -> Table:
    try:
        frame = _frame(exhibit.make(m))
        head = frame.head(MOST_ROWS)
        cells = {name: column(head[name].to_list(), as_printed=_is_papers(name)) for name in head.columns}
        columns = [_column(name, kind, cells[name]) for name, kind in frame.schema.items()]
        text = frame.write_csv()
    except Exception as error:
        return Table(*_missing(exhibit, error))
    files = {"csv": folder.save(_file(study, exhibit, "csv"), text)}
    return Table(
        exhibit.name,
        title(exhibit.name),
        exhibit.caption,
        files=files,
        columns=columns,
        rows=list(zip(*cells.values(), strict=True)),
        total=len(frame),
    )


def _missing(exhibit: Exhibit, error: Exception) -> tuple[str, str, str, str, Exception | None]:
    """An arm that did not run leaves a note. Anything else is a bug in the figure: it is shown here, so that the
    rest of the page still serves its reader, and raised again when the whole report is written."""
    if isinstance(error, NotMeasured):
        return exhibit.name, title(exhibit.name), exhibit.caption, f"not drawn: {error}", None
    lines = str(error).strip().splitlines() or [""]
    note = f"not drawn, because of an error in the study: {type(error).__name__}: {lines[0]}{position_of(error)}"
    return exhibit.name, title(exhibit.name), exhibit.caption, note, error


def _frame(made: Any) -> pl.DataFrame:
    """The frame with nested columns as text, which is all that CSV and a page can hold of them."""
    if isinstance(made, pl.LazyFrame):
        made = made.collect()
    if not isinstance(made, pl.DataFrame):
        raise TypeError(f"a table returns a Polars frame, and this one returned {type(made).__name__}")
    nested = [name for name, kind in made.schema.items() if kind.is_nested()]
    return made.with_columns(pl.col(name).map_elements(_listed, pl.String) for name in nested)


def _listed(item: Any) -> str:
    return ", ".join(str(part) for part in item) if isinstance(item, pl.Series) else str(item)


def _column(name: str, kind: pl.DataType, cells: list[str]) -> Column:
    return Column(name, kind.is_numeric(), _is_papers(name), any(len(cell) > _LONG for cell in cells))


def _is_papers(name: str) -> bool:
    return name == "paper" or name.startswith(("paper ", "paper_"))


def _file(study: Study, exhibit: Exhibit, kind: str) -> str:
    return f"{slug(study.name)}/{slug(exhibit.name)}.{kind}"
