"""Tables in README and docs, made from the summaries under results/: ``python -m assay.report.tables README.md docs``.

A page asks for a table with a pair of comments, and everything between them is replaced:

    <!-- claims: results/feature-emergence.laptop.json -->
    <!-- end -->

``headlines`` in place of ``claims`` takes the headline claims in fewer columns, with a line on the others. With
``only a,b`` after the file a table has these claims, or these columns of a benchmark (``_`` for a space).
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

VERDICTS = ("holds", "fails", "undecided", "not run")

_BLOCK = re.compile(r"(<!-- (claims|headlines|bench): (\S+?)(?: only (\S+))? -->\n).*?(<!-- end -->)", re.S)


def refresh(text: str, root: Path) -> str:
    """The page with every table made anew from the files it names, relative to ``root``."""

    def fill(match: re.Match[str]) -> str:
        start, kind, path, only, end = match.groups()
        data = json.loads((root / path).read_text())
        if kind == "headlines":
            return start + headlines_table(data) + end
        return start + (claims_table(data, only) if kind == "claims" else bench_table(data, only)) + end

    return _BLOCK.sub(fill, text)


def claims_table(summary: dict[str, Any], only: str | None = None) -> str:
    wanted = only.split(",") if only else None
    rows = ["| claim | statement | verdict | estimate | interval | criterion | seeds | source |", "|" + " --- |" * 8]
    for claim in summary["claims"]:
        if wanted is None or claim["id"] in wanted:
            interval = "" if claim["low"] is None else f"[{claim['low']:.4g}, {claim['high']:.4g}]"
            estimate = "" if claim["estimate"] is None else f"{claim['estimate']:.4g}"
            paper = f"{claim['source']}" + (f" (prints {claim['paper']})" if "paper" in claim else "")
            cells = [claim["id"], claim["statement"], f"**{claim['verdict']}**", estimate, interval]
            cells += [claim["criterion"] or claim.get("reason", ""), str(claim["seeds"] or ""), paper]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def headlines_table(summary: dict[str, Any]) -> str:
    """What the study says, each with its number and whether it stood on fresh seeds, and how the others came out."""
    rows = ["| claim | | verdict | measured | criterion |", "|" + " --- |" * 5]
    for claim in summary["claims"]:
        if not claim.get("headline"):
            continue
        interval = "" if claim["low"] is None else f" [{claim['low']:.3g}, {claim['high']:.3g}]"
        measured = "" if claim["estimate"] is None else f"{claim['estimate']:.3g}{interval}"
        stood = {True: ", confirmed", False: ", not confirmed"}.get(claim.get("confirmed"), "")
        cells = [claim["id"], claim["statement"], f"**{claim['verdict']}**{stood}", measured]
        cells.append(claim["criterion"] or claim.get("reason", ""))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    others = Counter(claim["verdict"] for claim in summary["claims"] if not claim.get("headline"))
    counts = ", ".join(f"{others[verdict]} {verdict}" for verdict in VERDICTS if others[verdict])
    lost = sum(claim.get("confirmed") is False for claim in summary["claims"])
    fresh = f" {lost} of all did not stand on seeds {summary['confirmed_on']}." if "confirmed_on" in summary else ""
    return "\n".join(rows) + f"\n\n{others.total()} more claims: {counts}.{fresh} {_run(summary)}\n"


def _run(summary: dict[str, Any]) -> str:
    """Which run the numbers are of: preset, data, seeds."""
    on = f" on {' and '.join(summary['data'])}" if summary.get("data") else ""
    return f"(Preset `{summary['preset']}`{on}, {summary['seeds']} seeds, {summary['device']}.)"


def bench_table(result: dict[str, Any], only: str | None = None) -> str:
    columns = only.replace("_", " ").split(",") if only else list(result["rows"][0])
    rows = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    rows += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in result["rows"]]
    return "\n".join(rows) + f"\n\n{result['machine']}, {result['versions']}\n"


def main(paths: list[str]) -> None:
    for path in paths:
        found = sorted(Path(path).rglob("*.md")) if Path(path).is_dir() else [Path(path)]
        for page in found:
            page.write_text(refresh(page.read_text(), Path.cwd()))


if __name__ == "__main__":
    main(sys.argv[1:])
