"""The static site: an index with all verdicts and one page per study, with their scripts and styles once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from assay.lab import Run, UserError, discovery
from assay.lab.phase_map import PhaseMap

from . import charts, exhibits, maps, page, summaries
from .folder import Folder
from .formulas import marked
from .numbers import slug, value
from .page import Page
from .rows import tally

ASSETS = ("base.css", "study.css", "theme.js", "fit.js", "charts.js", "downloads.js", "claims.js", "maps.js")


class BrokenExhibit(Exception):
    """A figure or table raised an error that is not the reader's to mend. The report is written all the same."""


def parse_formats(text: str) -> tuple[str, ...]:
    """``"svg,png"`` to the formats that figures are exported in; ``"none"`` to none of them."""
    words = list(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    allowed = f"allowed: {', '.join(charts.FORMATS)}, or none alone"
    if not words:
        raise UserError(f"no format was named ({allowed})")
    if words == ["none"]:
        return ()
    for word in words:
        if word not in charts.FORMATS:
            raise UserError(f"figures cannot be exported as '{word}' ({allowed})")
    return tuple(words)


def write(
    chosen: Iterable[Run],
    out: Path,
    *,
    formats: tuple[str, ...],
    say: Callable[[str], None],
    results: Path | None = None,
    studies: str | None = None,
    swept: Iterable[PhaseMap] = (),
) -> Path:
    """Write the site into ``out`` and return the path of its index. ``results`` is a folder of summaries, which stand
    beside the verdicts of the runs, and have pages of their own for studies without a run; so have maps. ``swept`` are
    maps beside those that lie in the store of a run."""
    folder = Folder(out)
    folder.prepare()
    sides, benches, saved = summaries.read(results) if results is not None else ({}, [], [])
    runs = {run.manifest.study: run for run in chosen}
    swept = list(swept)
    found = [each for run in runs.values() for each in stored_maps(run)]
    charted = _by_study([*found, *swept, *saved])
    addresses = {run.id: f"{slug(name)}.html" for name, run in runs.items()}
    cells = maps.Runs(addresses, _stored_cells(runs, swept))
    pages: list[Page] = []
    for run in runs.values():
        name = run.manifest.study
        made = page.of_run(run, folder, formats, sides.get(name, ()))
        made = replace(made, maps=maps.shown(made.study, charted.pop(name, []), cells))
        for sentence in _remarks(made):
            say(f"{made.study.name}: {sentence}")
        pages.append(made)
    alone = {name: sides.get(name, []) for name in (*sides, *charted) if name not in runs}
    pages += _of_summaries(alone, charted, cells, studies, say)
    pages.sort(key=lambda each: each.study.title)
    for made in pages:
        folder.save(made.file, _render("study.html", page=made))
    index = _index(folder, pages, benches)
    _raise_broken(pages, index)
    return index


def stored_maps(run: Run) -> list[PhaseMap]:
    """The maps of sweeps of the same study, in the same store."""
    return [PhaseMap.from_dict(document) for document in run.store.read_maps()]


def _stored_cells(runs: Mapping[str, Run], swept: Iterable[PhaseMap]) -> frozenset[str]:
    """The cells whose runs can be opened: those in the stores of runs, and of maps that were read from other stores."""
    here = {id for run in runs.values() for id in run.store.manifest_ids(cells=True)}
    return frozenset(here | {cell.run for each in swept if each.study not in runs for cell in each.cells if cell.run})


def _by_study(found: Iterable[PhaseMap]) -> dict[str, list[PhaseMap]]:
    grouped: dict[str, list[PhaseMap]] = {}
    for each in found:
        grouped.setdefault(each.study, []).append(each)
    return grouped


def _of_summaries(
    sides: Mapping[str, Sequence[summaries.Side]],
    charted: Mapping[str, Sequence[PhaseMap]],
    cells: maps.Runs,
    studies: str | None,
    say: Callable[[str], None],
) -> Iterable[Page]:
    for name, each in sides.items():
        try:
            study = discovery.find(name, studies)
        except UserError as error:
            say(f"{name}: left out, because {error}")
            continue
        drawn = charted.get(name, [])
        made = page.of_summaries(study, each) if each else page.of_maps(study, drawn)
        made = replace(made, maps=maps.shown(study, drawn, cells))
        counted = [f"{len(each)} {'summary' if len(each) == 1 else 'summaries'}"] if each else []
        counted += [f"{len(made.maps)} {'map' if len(made.maps) == 1 else 'maps'}"] if made.maps else []
        say(f"{name}: {name}.html, from {' and '.join(counted)}")
        yield made


def _index(folder: Folder, pages: Sequence[Page], benches: Sequence[summaries.Bench]) -> Path:
    for name in ASSETS:
        folder.save(f"assets/{name}", asset(name))
    if any(made.charts for made in pages):
        folder.save("assets/vega.js", charts.bundle())
    corrections = any(made.corrections for made in pages if not made.smoke)
    folder.save("index.html", _render("index.html", pages=pages, corrections=corrections, benches=benches))
    return folder.root / "index.html"


def _raise_broken(pages: Iterable[Page], index: Path) -> None:
    """The reader has the rest of the report by now; the author of the study must still hear of the bug."""
    broken = [(made.study.name, shown) for made in pages for shown in made.broken]
    if broken:
        names = ", ".join(f"'{shown.name}' of {study}" for study, shown in broken)
        message = f"these figures or tables raised an error: {names}; the rest of the report is in {index}"
        raise BrokenExhibit(message) from broken[0][1].error


def _remarks(made: Page) -> Iterable[str]:
    drawn = sum(not figure.note for figure in made.figures)
    yield f"{made.file}, {drawn} of {len(made.figures)} figures drawn"
    yield from (f"{shown.name} {shown.note}" for shown in (*made.figures, *made.tables) if shown.note)
    yield from filter(None, map(exhibits.weight, made.figures))


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("assay.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(tally=tally, marked=marked, shown_value=value, most_rows=exhibits.MOST_ROWS)
    return environment


def asset(name: str) -> str:
    """A style sheet or script of our own."""
    return resources.files("assay.report").joinpath("assets", name).read_text(encoding="utf-8")
