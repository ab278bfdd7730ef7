"""Where the cells of a map come from: what a summary of a run says of itself, for the runs of all cells together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .manifest import Manifest
from .store import Store


def origin_of(runs: Iterable[Manifest], store: Store) -> Mapping[str, Any]:
    """Device, versions, machine and commit, each once; when the first cell was run, and what its units took. What
    belongs to a unit is asked of it: a run may have units of several machines."""
    found = list(runs)
    if not found:
        return {}
    keys = sorted({unit.key for manifest in found for unit in manifest.units})
    metas = [meta for meta in map(store.meta, keys) if meta is not None]
    told = {"device": [manifest.device for manifest in found], "commit": [manifest.commit for manifest in found]}
    told |= {name: [meta[name] for meta in metas] for name in ("versions", "machine")}
    return {
        **{name: "; ".join(sorted(set(each))) for name, each in told.items()},
        "started": min(manifest.started for manifest in found),
        "unit_seconds": round(math.fsum(meta["seconds"] for meta in metas), 3),
    }
