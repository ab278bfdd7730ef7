"""Pictures of reports: Altair belongs to the extra ``lab`` and is imported when a picture is asked for."""

from __future__ import annotations

from typing import Any

from assay._extras import extra


def altair(what: str) -> Any:
    """The library, or one sentence that says which extra ``what`` needs."""
    with extra("lab", what):
        import altair as found
    return found


def chart(rows: list[dict[str, Any]], what: str) -> Any:
    """A chart over rows, with as many as there are."""
    found = altair(what)
    return found.Chart(found.Data(values=rows))
