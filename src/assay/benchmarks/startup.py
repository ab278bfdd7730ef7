"""How soon the command line answers, against a Python that does nothing and one that imports torch."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

REPEATS = 7
QUESTIONS = {
    "python": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "assay --version": ["-m", "assay.cli", "--version"],
    "assay run --help": ["-m", "assay.cli", "run", "--help"],
    "assay list": ["-m", "assay.cli", "list"],
    "import assay.methods": ["-c", "import assay.methods"],
    "from assay import lab": ["-c", "from assay import lab"],
}


def run(device: str, repeats: int = REPEATS) -> dict[str, Any]:
    """Whole processes, which take turns; the first turn warms the disk's cache and does not count."""
    times: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for turn in range(repeats + 1):
        for name, words in QUESTIONS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *words], capture_output=True, check=True)
            if turn:
                times[name].append(time.perf_counter() - started)
    return {"rows": [_row(name, times) for name in QUESTIONS]}


def _row(name: str, times: dict[str, list[float]]) -> dict[str, Any]:
    def ratio(baseline: str) -> float:
        return round(statistics.median(a / b for a, b in zip(times[name], times[baseline], strict=True)), 3)

    return {
        "what": name,
        "ms": round(1000 * statistics.median(times[name])),
        "/ python": ratio("python"),
        "/ import torch": ratio("import torch"),
    }
