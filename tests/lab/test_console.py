"""What a person sees while a run goes on and when it is over."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from assay.lab.claims import Claim, Finding, Judgement
from assay.lab.console import ConsoleProgress, verdict_table


def table(judgement: Judgement) -> str:
    claim = Claim("C1", "it is so", "a source", lambda m: judgement, {})
    console = Console(file=io.StringIO(), width=200)
    console.print(verdict_table([Finding("s", claim, judgement, "smoke", {})], "s"))
    return console.file.getvalue()


def test_an_undecided_verdict_says_why():
    text = table(Judgement("undecided", "share ≥ 1", 1.0, seeds=2, reason="2 seeds, and a verdict needs 3"))
    assert "share ≥ 1 (2 seeds, and a verdict needs 3)" in text
    assert "the arm 'a' did not run" in table(Judgement("not run", "", reason="the arm 'a' did not run"))
    assert "(" not in table(Judgement("undecided", "share ≥ 1", 1.0, 0.5, 1.5, 3))


class Named:
    label = "arm seeds 0–2"


@pytest.mark.parametrize("reused", [0, 6])
def test_the_time_left_follows_from_computed_units_alone(monkeypatch, reused):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console, "s") as progress:
        progress.start(reused + 4)
        for _ in range(reused):
            progress.done(Named(), stored=True, seconds=0.0)
        clock[0] = 10.0
        progress.done(Named(), stored=False, seconds=10.0)
    (left,) = re.findall(r"about (\d+) s left", console.file.getvalue())
    assert left == "30"


def test_on_a_terminal_a_reused_unit_is_done_and_tells_no_speed():
    console = Console(file=io.StringIO(), force_terminal=True)
    with ConsoleProgress(console, "s") as progress:
        progress.start(4)
        for _ in range(2):
            progress.done(Named(), stored=True, seconds=0.0)
        (task,) = progress._bar.tasks
        assert (task.completed, task.speed) == (2, None)
        progress.done(Named(), stored=False, seconds=1.0)
        assert task.completed == 3
