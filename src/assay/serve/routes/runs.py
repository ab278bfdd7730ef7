"""Stored runs: all of them, one with its verdicts, two side by side, its neurons over training, its report."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Query

from assay.lab import Snapshots

from .. import documents
from ..laboratory import Laboratory, NotHere
from ..models import Name
from ..reports import Reports


def router(laboratory: Laboratory, reports: Reports) -> APIRouter:
    made = APIRouter(prefix="/api", tags=["runs"])

    @lru_cache(maxsize=4)
    def kept(id: str, status: str) -> list[Snapshots]:
        return laboratory.run(id).snapshots

    def snapshots(id: str) -> list[Snapshots]:
        return kept(id, laboratory.run(id).manifest.status)

    @made.get("/runs")
    def runs(neurons: bool = False) -> list[dict[str, Any]]:
        """All stored runs, newest first; with ``neurons`` those that recorded neurons over training."""
        return [documents.brief(run) for run in laboratory.runs() if not neurons or run.has_snapshots]

    @made.get("/runs/{id}")
    def run(id: str) -> dict[str, Any]:
        """A run with all its verdicts."""
        return documents.whole(laboratory.run(id))

    @made.post("/runs/{id}/name")
    def rename(id: str, asked: Name) -> dict[str, Any]:
        """Give a run a name to find it by; an empty one takes its name away."""
        return documents.brief(laboratory.rename(id, asked.name))

    @made.post("/runs/{id}/report")
    def report(id: str) -> dict[str, str]:
        """Write the run's report, where that was not done yet, and say where it is."""
        return {"address": f"/reports/{id}/{reports.write(laboratory.run(id))}"}

    @made.get("/runs/{id}/neurons")
    def outline(id: str) -> list[dict[str, Any]]:
        """Which arms recorded neurons over training."""
        return [documents.outline_of(each) for each in snapshots(id)]

    @made.get("/runs/{id}/neurons/{number}")
    def neurons(id: str, number: int, seed: int | None = None) -> dict[str, Any]:
        """The neurons of one arm and seed, at every step that was looked at."""
        found = snapshots(id)
        if not 0 <= number < len(found):
            raise NotHere(f"run '{id}' has {len(found)} records of neurons, and none of number {number}")
        chosen = found[number].seeds[0] if seed is None else seed
        if chosen not in found[number].seeds:
            raise NotHere(f"there is no seed {seed} in it")
        return documents.neurons(found[number], chosen)

    @made.get("/compare")
    def compare(a: str = Query(max_length=80), b: str = Query(max_length=80)) -> dict[str, Any]:
        """Two runs side by side."""
        return documents.comparison(laboratory.compare(a, b))

    @made.get("/maps")
    def maps() -> list[dict[str, Any]]:
        """The phase maps of all sweeps that are stored, each with its cells."""
        return [documents.phase_map(number, each) for number, each in enumerate(laboratory.maps())]

    return made
