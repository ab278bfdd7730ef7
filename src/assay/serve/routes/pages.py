"""The one page of the application, its files, and the files of reports. No address is made into a path."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ..laboratory import NotHere
from ..reports import KINDS, Reports

_FROM_REPORT = ("base.css", "study.css", "theme.js")
_SHELL = "app.html"
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5f9e"/>'
    '<path d="M9 23 16 8l7 15M12 18h8" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>'
)


@dataclass(frozen=True)
class Asset:
    content: bytes
    kind: str

    @property
    def tag(self) -> str:
        return f'"{hashlib.blake2b(self.content, digest_size=8).hexdigest()}"'


def assets() -> dict[str, Asset]:
    """Every file that the page may ask for, by name: the application's own, and the look of the reports."""
    own = resources.files("assay.serve").joinpath("assets")
    theirs = resources.files("assay.report").joinpath("assets")
    files = [*own.iterdir(), *(theirs.joinpath(name) for name in _FROM_REPORT)]
    found = {file.name: Asset(file.read_bytes(), _kind(file.name)) for file in files if file.is_file()}
    return {**found, "icon.svg": Asset(_ICON.encode(), "image/svg+xml")}


def _kind(name: str) -> str:
    return KINDS.get(f".{name.rpartition('.')[2]}", "application/octet-stream")


def router(reports: Reports) -> APIRouter:
    made = APIRouter(include_in_schema=False)
    known = assets()
    shell = known.pop(_SHELL)

    @made.get("/")
    def page() -> Response:
        return Response(shell.content, media_type="text/html")

    @made.get("/favicon.ico")
    def icon() -> Response:
        return RedirectResponse("/assets/icon.svg")

    @made.get("/assets/{name}")
    def asset(name: str, request: Request) -> Response:
        found = known.get(name)
        if found is None:
            raise NotHere("there is no such file")
        headers = {"etag": found.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        return Response(found.content, media_type=found.kind, headers=headers)

    @made.get("/reports/{run}/{name:path}")
    def report(run: str, name: str) -> Response:
        if name == "index.html":
            return RedirectResponse(f"/#/run/{run}")  # the report of one run has the lab for its index
        found = reports.file(run, name)
        if found is None:
            raise NotHere("there is no such file; open the report from its run")
        return FileResponse(found[0], media_type=found[1], headers={"cache-control": "no-cache"})

    return made
