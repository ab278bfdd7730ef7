"""Tables in README and docs, made from the summaries under results/: ``python -m assay.report.tables README.md docs``.

A page asks for a table with a pair of comments, and everything between them is replaced:

    <!-- claims: results/feature-emergence.laptop.json -->
    <!-- end -->

``headlines`` in place of ``claims`` takes the headline claims in fewer columns, with a line on the others; ``beside``
names two files and says which claims came out differently in the second, which may be several pieces of one preset
(``results/X.paper*.json``); ``scoreboard`` names several and gives a row to each. With ``only a,b`` after the file a
table has these claims, or these columns of a benchmark (``_`` for a space).
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

STATED = ("statement", "criterion")  # what makes two judgements judgements of one claim
VERDICTS = ("holds", "fails", "undecided", "not run")

_BLOCK = re.compile(
    r"(<!-- (claims|headlines|bench|beside|scoreboard): (\S+?)(?: (results\S+))?(?: only (\S+))? -->\n)"
    r".*?(<!-- end -->)",
    re.S,
)


def refresh(text: str, root: Path) -> str:
    """The page with every table made anew from the files it names, relative to ``root``."""

    def fill(match: re.Match[str]) -> str:
        start, kind, path, other, only, end = match.groups()
        if kind == "scoreboard":
            found = [json.loads(each.read_text()) for each in sorted(root.glob(path))]
            return start + scoreboard(found) + end
        data = json.loads((root / path).read_text())
        if kind == "headlines":
            return start + headlines_table(data) + end
        if kind == "beside":
            pieces = [json.loads(each.read_text()) for each in sorted(root.glob(other))]
            if not pieces:
                raise FileNotFoundError(f"no summary is called {other}")
            return start + beside_words(data, whole(pieces)) + end
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
        measured = "" if claim["estimate"] is None else f"{claim['estimate']:.3g}{_around(claim)}"
        stood = {True: ", confirmed", False: ", not confirmed"}.get(claim.get("confirmed"), "")
        cells = [claim["id"], claim["statement"], f"**{claim['verdict']}**{stood}", measured]
        cells.append("; ".join(filter(None, (claim["criterion"] or claim.get("reason", ""), claim.get("note")))))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    others = [claim for claim in summary["claims"] if not claim.get("headline")]
    lost = [claim["id"] for claim in summary["claims"] if claim.get("confirmed") is False]
    which = f" ({', '.join(lost)})" if lost else ""
    again = f" {len(lost)} of all{which} did not stand on seeds {summary.get('confirmed_on')}."
    fresh = again if "confirmed_on" in summary else ""
    return "\n".join(rows) + f"\n\n{len(others)} more claims: {_counts(others)}.{fresh} {_run(summary)}\n"


def _around(claim: dict[str, Any]) -> str:
    """The interval, or how many seeds met the criterion where all of them gave one number."""
    if claim.get("method") == "equal":
        return f" ({claim['decided_by']})"
    return "" if claim["low"] is None else f" [{claim['low']:.3g}, {claim['high']:.3g}]"


def whole(pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One summary out of the pieces of a preset, its claims as ``rows_of`` chooses them; seeds are those of its claims,
    from the fewest to the most."""
    if len(pieces) == 1:
        return pieces[0]
    claims = list(rows_of(pieces).values())
    counts = sorted({claim.get("seeds", 0) for claim in claims} - {0}) or [max(piece["seeds"] for piece in pieces)]
    return {
        "preset": pieces[0]["preset"],
        "data": sorted({name for piece in pieces for name in piece.get("data", ())}),
        "seeds": " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))),
        "device": ", ".join(sorted({name for piece in pieces for name in piece["device"].split(", ")})),
        "claims": claims,
    }


def rows_of(pieces: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each claim of the pieces of a preset, by its identifier: of the whole run where there is one. Parts fill in what
    that did not judge, and take the place of what it judged by another statement or criterion; among parts the newest
    that judged a claim is taken."""
    rows: dict[str, dict[str, Any]] = {}
    judged_in: dict[str, Mapping[str, Any]] = {}
    for piece in sorted(pieces, key=lambda piece: ("arms" in piece, piece.get("started", ""))):
        for claim in piece["claims"]:
            id, known = claim["id"], rows.get(claim["id"])
            if known is None or (
                claim["verdict"] != "not run"
                and (known["verdict"] == "not run" or _is_newer(piece, claim, judged_in[id], known))
            ):
                rows[id], judged_in[id] = claim, piece
    return rows


def _is_newer(
    piece: Mapping[str, Any], claim: Mapping[str, Any], before: Mapping[str, Any], known: Mapping[str, Any]
) -> bool:
    """Whether this piece was judged after that one, and is not a part beside a whole run that judged the same."""
    same = all(known[key] == claim[key] for key in STATED)
    return piece.get("started", "") > before.get("started", "") and ("arms" in before or not same)


def beside_words(first: dict[str, Any], second: dict[str, Any]) -> str:
    """How many verdicts two runs agree on among the claims that both looked at, and which they do not. A claim that
    was stated in other words when one of them was judged is compared with nothing."""
    again = {claim["id"]: claim for claim in second["claims"]}
    judged = [
        (claim, again[claim["id"]])
        for claim in first["claims"]
        if claim["id"] in again and "not run" not in (claim["verdict"], again[claim["id"]]["verdict"])
    ]
    both = [(a, b) for a, b in judged if a["statement"] == b["statement"]]
    moved = [(a, b) for a, b in both if a["verdict"] != b["verdict"]]
    others = "; ".join(f"{a['id']} {a['verdict']} → {b['verdict']}{_number(b)}" for a, b in moved)
    agree = f"{len(both) - len(moved)} of {len(both)} verdicts are the same{'. The others: ' if moved else ''}{others}."
    if reworded := len(judged) - len(both):
        agree += f" {reworded} more {'claim was' if reworded == 1 else 'claims were'} stated in other words then."
    if first["preset"] != second["preset"]:
        return f"At `{second['preset']}` in place of `{first['preset']}` {agree} {_run(second)}\n"
    return f"On {_data(second)} in place of {_data(first)} {agree} {_run(second)}\n"


def _number(claim: dict[str, Any]) -> str:
    return "" if claim["estimate"] is None else f" ({claim['estimate']:.3g})"


def _data(summary: dict[str, Any]) -> str:
    return " and ".join(summary["data"])


def _run(summary: dict[str, Any]) -> str:
    """Which run the numbers are of: preset, data, seeds."""
    on = f" on {_data(summary)}" if summary.get("data") else ""
    return f"(Preset `{summary['preset']}`{on}, {summary['seeds']} seeds, {summary['device']}.)"


def scoreboard(summaries: list[dict[str, Any]]) -> str:
    """A row per study: how its headlines and all its claims came out, and how many verdicts stood on fresh seeds."""
    rows = ["| study | headlines | claims | stood on fresh seeds |", "|" + " --- |" * 4]
    for summary in summaries:
        claims = summary["claims"]
        again = [claim["confirmed"] for claim in claims if claim.get("confirmed") is not None]
        cells = [
            summary["study"],
            _counts(claim for claim in claims if claim.get("headline")),
            f"{len(claims)}: {_counts(claims)}",
            f"{sum(again)} of {len(again)}" if again else "",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def _counts(claims: Iterable[dict[str, Any]]) -> str:
    found = Counter(claim["verdict"] for claim in claims)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])


def bench_table(result: dict[str, Any], only: str | None = None) -> str:
    columns = only.replace("_", " ").split(",") if only else list(result["rows"][0])
    rows = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    cells = [["–" if row[column] is None else str(row[column]) for column in columns] for row in result["rows"]]
    rows += ["| " + " | ".join(each) + " |" for each in cells]
    return "\n".join(rows) + f"\n\n{result['machine']}, {result['versions']}\n"


def main(paths: list[str]) -> None:
    for path in paths:
        found = sorted(Path(path).rglob("*.md")) if Path(path).is_dir() else [Path(path)]
        for page in found:
            page.write_text(refresh(page.read_text(), Path.cwd()))


if __name__ == "__main__":
    main(sys.argv[1:])
