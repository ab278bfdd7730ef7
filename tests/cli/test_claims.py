"""Verdicts in the terminal: headlines first, the rest on request, and whether they stood on fresh seeds."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from assay.cli.verdicts import asked_for, print_claims
from assay.lab.findings import Claim, Finding
from assay.lab.stored import Findings
from assay.lab.verdicts import Judgement

OUTSIDE = str(Path(__file__).parents[1] / "lab" / "outside")
WORDS = (
    "A statement of a study that is long enough to fill two lines of a terminal with eighty columns in it, and no more."
)


def finding(id: str, verdict: str = "holds", *, headline: bool = False, confirmed: bool | None = None) -> Finding:
    judged = Judgement(verdict, f"{id} ≥ 0.5", 0.75, 0.7, 0.8, 8, method="student", known={"decided_by": "margin 5.0"})
    claim = Claim(id, f"{id}: {WORDS}", "a source", lambda m: judged, {}, headline=headline)
    return Finding("s", claim, judged, "laptop", {}, confirmed=confirmed)


FOUND = Findings(
    [
        *(finding(f"C{n}", headline=True, confirmed=n != 3) for n in range(1, 8)),
        *(finding(f"C{n}", "fails", confirmed=False) for n in (30, 31)),
        finding("C3a", "undecided"),
        finding("N1"),
    ]
)


def printed(width: int = 80, **options) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_claims(console, FOUND, "a run", **options)
    return console.file.getvalue()


def test_seven_headlines_fit_on_a_screen():
    text = printed()
    assert len(text.splitlines()) <= 24
    assert all(f"C{n}: A statement" in text for n in range(1, 8))
    assert "C30" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_rest_is_one_line_of_counts():
    last = " ".join(printed(120).splitlines()[-1].split())
    counts = "4 more claims: 1 holds, 2 fails, 1 undecided; 2 did not stand on fresh seeds"
    assert last == f"{counts} (--all, --verdict, --id)"


def test_a_headline_says_what_was_measured_and_whether_it_stood():
    text = printed()
    assert "0.75 [0.7, 0.8] (8 seeds); confirmed; C1 ≥ 0.5; margin 5.0" in text
    assert "not confirmed; C3 ≥ 0.5; margin 5.0" in text


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"id": ["C3"]}, ["C3", "C3a"]),
        ({"id": ["C30"]}, ["C30"]),
        ({"id": ["C3a"]}, ["C3a"]),
        ({"verdict": "fails"}, ["C30", "C31"]),
        ({"id": ["C3"], "verdict": "undecided"}, ["C3a"]),
        ({"id": ["X"]}, []),
        ({"id": ["C30", "C3a"]}, ["C30", "C3a"]),
    ],
)
def test_claims_are_asked_for_by_identifier_and_verdict(options, ids):
    assert [each.claim.id for each in asked_for(FOUND, **{"verdict": None, **options})] == ids


def test_an_identifier_that_no_claim_has_is_one_sentence(assay, stored):
    where = ("--runs", str(stored[0]), "--studies", OUTSIDE)
    assert assay("claims", "coin", "--id", "C1", *where)[0] == 0
    status, _, err = assay("claims", "coin", "--id", "C1", "--id", "ZZ", *where)
    assert status == 2
    assert err == "assay: no claim of the study is called 'ZZ' or begins so; --all shows them all\n"


def test_all_claims_are_printed_on_request():
    text = printed(every=True)
    assert all(id in text for id in ("C1", "C30", "C31", "C3a", "N1"))


def test_a_study_without_headlines_prints_all_claims(assay, stored):
    status, out, _ = assay("claims", "coin", "--runs", str(stored[0]), "--studies", OUTSIDE)
    assert status == 0
    assert "share of heads" in out
    assert "thousandth" in out


def test_an_unknown_verdict_is_refused(assay, stored):
    status, _, err = assay("claims", "coin", "--verdict", "maybe", "--runs", str(stored[0]), "--studies", OUTSIDE)
    assert status == 2
    assert "unknown verdict 'maybe' (allowed: holds, fails, undecided, not run)" in err


def test_claims_by_identifier_as_json(assay, stored):
    command = ("claims", "coin", "--id", "N1", "--json", "--runs", str(stored[0]), "--studies", OUTSIDE)
    assert [row["id"] for row in json.loads(assay(*command)[1])] == ["N1"]


def test_confirm_runs_on_fresh_seeds_and_says_what_stands(assay, tmp_path):
    where = ("--preset", "smoke", "--runs", str(tmp_path), "--studies", OUTSIDE)
    status, _, err = assay("confirm", "coin", *where)
    assert status == 2
    assert "no run of 'coin' with preset smoke is stored" in err
    assert assay("run", "coin", *where)[0] == 0
    status, out, _ = assay("confirm", "coin", "--first-seed", "50", *where)
    assert status == 0
    assert "verdicts stand on seeds from 50 on" in out
    rows = json.loads(assay("confirm", "coin", "--first-seed", "50", "--json", *where)[1])
    assert [row["id"] for row in rows] == ["C1", "N1"]
    assert {"verdict", "fresh_verdict", "confirmed"} <= set(rows[0])
    assert "newer run" not in assay("claims", "coin", *where)[2], "a confirmation is part of what the run says"
