"""The static site: an index with all verdicts and one page per study."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from assay.lab import Run, UserError

from . import charts, exhibits
from .folder import Folder
from .page import Page, assemble, tally


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
) -> Path:
    """Write the site into ``out`` and return the path of its index."""
    folder = Folder(out)
    folder.prepare()
    pages: list[Page] = []
    for run in {run.manifest.study: run for run in chosen}.values():
        page = assemble(run, folder, formats)
        folder.save(page.file, _render("study.html", page=page, bundle=_bundle(page), script=_asset("charts.js")))
        for sentence in _remarks(page):
            say(f"{page.study.name}: {sentence}")
        pages.append(page)
    folder.save("index.html", _render("index.html", pages=pages))
    index = out / "index.html"
    _raise_broken(pages, index)
    return index


def _raise_broken(pages: Iterable[Page], index: Path) -> None:
    """The reader has the rest of the report by now; the author of the study must still hear of the bug."""
    broken = [(page.study.name, shown) for page in pages for shown in page.broken]
    if broken:
        names = ", ".join(f"'{shown.name}' of {study}" for study, shown in broken)
        message = f"these figures or tables raised an error: {names}; the rest of the report is in {index}"
        raise BrokenExhibit(message) from broken[0][1].error


def _remarks(page: Page) -> Iterable[str]:
    drawn = sum(not figure.note for figure in page.figures)
    yield f"{page.file}, {drawn} of {len(page.figures)} figures drawn"
    yield from (f"{shown.name} {shown.note}" for shown in (*page.figures, *page.tables) if shown.note)
    yield from filter(None, map(exhibits.weight, page.figures))


def _bundle(page: Page) -> Markup:
    """The charts' script, once per page and only where a chart needs it."""
    return charts.bundle() if any(figure.data for figure in page.figures) else Markup("")


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
    environment.globals.update(style=_asset("style.css"), tally=tally, most_rows=exhibits.MOST_ROWS)
    return environment


def _asset(name: str) -> Markup:
    """A style sheet or script of our own, which goes into the page as it is."""
    return Markup(resources.files("assay.report").joinpath("templates", name).read_text(encoding="utf-8"))
