"""Tables in README and docs, made from the summaries under results/: ``python -m assay.report.tables README.md docs``.

A page asks for a table with a pair of comments, and everything between them is replaced:

    <!-- claims: results/feature-emergence.laptop.json -->
    <!-- end -->

With ``only a,b`` after the file a table has these claims, or these columns of a benchmark (``_`` for a space).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"(<!-- (claims|bench): (\S+?)(?: only (\S+))? -->\n).*?(<!-- end -->)", re.S)


def refresh(text: str, root: Path) -> str:
    """The page with every table made anew from the files it names, relative to ``root``."""

    def fill(match: re.Match[str]) -> str:
        start, kind, path, only, end = match.groups()
        data = json.loads((root / path).read_text())
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
