"""What a person sees while a run goes on and when it is over."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from assay.cli.progress import ConsoleProgress
from assay.cli.verdicts import print_findings
from assay.lab.events import Advanced, Measured, Started, UnitDone
from assay.lab.findings import Claim, Finding
from assay.lab.verdicts import Judgement


def shown(judgement: Judgement, width: int = 200) -> str:
    claim = Claim("C1", "it is so", "a source", lambda m: judgement, {})
    console = Console(file=io.StringIO(), width=width)
    print_findings(console, [Finding("s", claim, judgement, "smoke", {})], "s")
    return console.file.getvalue()


@pytest.mark.parametrize("width", [200, 60])
def test_an_undecided_verdict_says_why(width):
    text = shown(Judgement("undecided", "share ≥ 1", 1.0, seeds=2, reason="2 seeds, and a verdict needs 3"), width)
    assert "share ≥ 1" in text
    assert "2 seeds, and a verdict needs 3" in " ".join(text.replace("│", " ").split())
    assert "the arm 'a' did not run" in shown(Judgement("not run", "", reason="the arm 'a' did not run"), width)
    assert "needs" not in shown(Judgement("undecided", "share ≥ 1", 1.0, 0.5, 1.5, 3), width)


@pytest.mark.parametrize("width", [40, 80, 109, 110, 200])
def test_nothing_of_a_verdict_is_cut_off(width):
    words = " ".join(f"word{n}" for n in range(40))
    claim = Claim("C1", words, "a source", lambda m: None, {})
    judged = Judgement("holds", "a long criterion with many words of which none may be lost ≥ 0.25", 0.5, 0.4, 0.6, 8)
    console = Console(file=io.StringIO(), width=width)
    print_findings(console, [Finding("s", claim, judged, "smoke", {})], "s")
    text = console.file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    flat = " ".join(re.sub("[│┃]", " ", text).split())
    for word in (*words.split(), *judged.criterion.split(), "holds", "0.5", "[0.4,", "0.6]", "8"):
        assert word in flat


class Named:
    label = "arm seeds 0–2"


def done(reused: bool, seconds: float = 0.0) -> UnitDone:
    return UnitDone(Named(), reused=reused, seconds=seconds)


@pytest.mark.parametrize("reused", [0, 6])
def test_the_time_left_follows_from_computed_units_alone(monkeypatch, reused):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console, "s") as progress:
        progress(Started("s", reused + 4, reused))
        for _ in range(reused):
            progress(done(True))
        clock[0] = 10.0
        progress(done(False, 10.0))
    (left,) = re.findall(r"about (\d+) s left", console.file.getvalue())
    assert left == "30"


def test_on_a_terminal_a_reused_unit_is_done_and_tells_no_speed():
    console = Console(file=io.StringIO(), force_terminal=True)
    with ConsoleProgress(console, "s") as progress:
        progress(Started("s", 4, 2))
        for _ in range(2):
            progress(done(True))
        (task,) = progress._bar.tasks
        assert (task.completed, task.speed) == (2, None)
        progress(done(False, 1.0))
        assert task.completed == 3


def test_a_unit_at_work_moves_the_bar():
    console = Console(file=io.StringIO(), force_terminal=True)
    with ConsoleProgress(console, "s") as progress:
        progress(Started("s", 4, 0))
        progress(Measured("arm seeds 0–2", "loss", 0.25))
        progress(Advanced("arm seeds 0–2", 30, 40))
        (task,) = progress._bar.tasks
        assert task.completed == 0.75
        progress(done(False, 1.0))
        assert task.completed == 1
