"""How long the site of a run takes to build, against computing that run and against judging its claims."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay import lab

STUDIES = ("looped-transformers", "label-granularity")


def run(device: str, studies: tuple[str, ...] = STUDIES) -> dict[str, Any]:
    """Smoke runs in one process: computed, judged, written as a site with every figure."""
    rows = []
    for name in studies:
        print(f"assay: {name}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as place:
            began = time.perf_counter()
            done = lab.run(name, preset="smoke", jobs=1, runs=Path(place) / "runs")
            computed = time.perf_counter()
            claims = len(done.claims)
            judged = time.perf_counter()
            lab.report(done, out=Path(place) / "report")
            written = time.perf_counter()
        rows.append(
            {
                "study": name,
                "claims": claims,
                "figures and tables": len(done.study.figures) + len(done.study.tables),
                "report / run": round((written - judged) / (computed - began), 3),
                "report / judging": round((written - judged) / (judged - computed), 2),
            }
        )
    return {"preset": "smoke", "rows": rows}
