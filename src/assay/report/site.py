"""The static site: an index with all verdicts and one page per study, with their scripts and styles once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from assay.lab import Run, UserError, discovery

from . import charts, exhibits, page, summaries
from .folder import Folder
from .formulas import marked
from .numbers import value
from .page import Page
from .rows import tally

ASSETS = ("base.css", "study.css", "theme.js", "fit.js", "charts.js", "downloads.js", "claims.js")


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
) -> Path:
    """Write the site into ``out`` and return the path of its index. ``results`` is a folder of summaries, which stand
    beside the verdicts of the runs, and have pages of their own for studies without a run."""
    folder = Folder(out)
    folder.prepare()
    sides, benches = summaries.read(results) if results is not None else ({}, [])
    runs = {run.manifest.study: run for run in chosen}
    pages: list[Page] = []
    for run in runs.values():
        made = page.of_run(run, folder, formats, sides.get(run.manifest.study, ()))
        for sentence in _remarks(made):
            say(f"{made.study.name}: {sentence}")
        pages.append(made)
    pages += _of_summaries({name: each for name, each in sides.items() if name not in runs}, studies, say)
    pages.sort(key=lambda each: each.study.title)
    for made in pages:
        folder.save(made.file, _render("study.html", page=made))
    index = _index(folder, pages, benches)
    _raise_broken(pages, index)
    return index


def _of_summaries(
    sides: Mapping[str, Sequence[summaries.Side]], studies: str | None, say: Callable[[str], None]
) -> Iterable[Page]:
    for name, each in sides.items():
        try:
            study = discovery.find(name, studies)
        except UserError as error:
            say(f"{name}: left out, because {error}")
            continue
        say(f"{name}: {name}.html, from {len(each)} {'summary' if len(each) == 1 else 'summaries'}")
        yield page.of_summaries(study, each)


def _index(folder: Folder, pages: Sequence[Page], benches: Sequence[summaries.Bench]) -> Path:
    for name in ASSETS:
        folder.save(f"assets/{name}", asset(name))
    if any(made.figures for made in pages):
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
