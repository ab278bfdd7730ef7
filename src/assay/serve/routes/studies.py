"""Studies, and what a run of one would cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from .. import documents, forms
from ..laboratory import Laboratory
from ..models import Asked


def router(laboratory: Laboratory) -> APIRouter:
    made = APIRouter(prefix="/api", tags=["studies"])

    @made.get("/studies")
    def studies() -> list[dict[str, Any]]:
        """All studies in outline."""
        return [asdict(outline) for outline in laboratory.outlines()]

    @made.get("/studies/{name}")
    def study(name: str) -> dict[str, Any]:
        """A study as a form: parameters with ranges and the values of each preset, arms, claims."""
        return forms.form(laboratory.study(name))

    @made.post("/plan")
    def plan(asked: Asked) -> dict[str, Any]:
        """What a run would compute and what it would reuse, and why; nothing is started."""
        return documents.forecast(laboratory.plan(asked))

    return made
