"""`assay check`: a study without a mistake passes, and a mistake of each kind is caught with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay import lab

OUTSIDE = Path(__file__).parent / "outside"

STUDY = '''"""A study to make mistakes in."""

import torch
from pydantic import Field

from assay import lab


class Params(lab.Params):
    size: int = Field(5, ge=1, description="numbers per seed")


study = lab.Study(
    "sound",
    title="A sound study",
    question="Is it sound?",
    source="here",
    params=Params,
    presets={name: lab.Preset(seeds=3, cost="1 s") for name in ("smoke", "laptop", "paper")},
)


@study.arm("drawn", over={"sign": [1, -1]})
def drawn(params, seeds, record, *, sign):
    """Draw and sum."""
    x = seeds.normal("x", params.size) * sign
    record(total=x.sum(1))
    record.array("draws", x, step=3)
'''
CLAIMS = """from .study import study


@study.claim("C1", "The sum of five normal draws stays below a hundred.", source="here")
def below(m):
    return m.every("total", arm="drawn").at_most(100)


@study.claim("N1", "The sum of five normal draws is not always above a hundred.", source="control")
def control(m):
    return m.final("total", arm="drawn", sign=1).at_most(100)
"""
FIGURES = """import altair as alt

from .study import study


@study.figure("totals", caption="Totals per seed.")
def totals(m):
    return alt.Chart(m.rows("total", arm="drawn")).mark_point().encode(x="seed:Q", y="value:Q")
"""


@pytest.fixture
def problems(tmp_path):
    """What is found in the sound study after an edit: (kind, file name, line, words)."""

    def found(room: str = "study", old: str = "", new: str = "") -> list[tuple[str, str, int, str]]:
        folder = tmp_path / "studies" / "sound"
        folder.mkdir(parents=True, exist_ok=True)
        rooms = {"study": STUDY, "claims": CLAIMS, "figures": FIGURES}
        assert old in rooms[room]
        rooms[room] = rooms[room].replace(old, new)
        for name, text in rooms.items():
            (folder / f"{name}.py").write_text(text)
        return [(p.kind, Path(p.file).name, p.line, p.what) for p in lab.check("sound", studies=tmp_path / "studies")]

    return found


def test_a_sound_study_has_no_problems(problems):
    assert problems() == []
    assert lab.check("coin", studies=OUTSIDE) == []


DRAW = 'seeds.normal("x", params.size) * sign'
MISTAKES = {
    "torch's global generator": ("study", DRAW, "torch.randn(len(seeds), params.size)", "randomness", "study.py", 23),
    "numpy's global generator": (
        "study",
        DRAW,
        "torch.tensor(__import__('numpy').random.randn(len(seeds), params.size))",
        "randomness",
        "study.py",
        23,
    ),
    "a mean over the chunk": ("study", "x.sum(1)", "x.sum(1) - x.mean()", "seeds", "study.py", 23),
    "an average at one point": (
        "study",
        "x.sum(1)",
        "x.sum(1) - (x.mean() if sign < 0 else 0)",
        "seeds",
        "study.py",
        23,
    ),
    "an arm that raises": ("study", "x.sum(1)", "x.sum(3)", "arm", "study.py", 27),
    "a claim that raises": ("claims", "at_most(100)\n\n\n", "at_most(nothing)\n\n\n", "claim", "claims.py", 6),
    "a claim that returns nothing": ("claims", "return m.every", "m.every", "claim", "claims.py", 4),
    "an arm that does not exist": (
        "claims",
        'm.every("total", arm="drawn"',
        'm.every("total", arm="drwan"',
        "claim",
        "claims.py",
        6,
    ),
    "a metric that does not exist": ("claims", 'm.every("total"', 'm.every("totals"', "claim", "claims.py", 6),
    "a point that does not exist": ("claims", "sign=1", "sign=2", "claim", "claims.py", 11),
    "an ambiguous claim": ("claims", ", sign=1", "", "claim", "claims.py", 11),
    "a parameter that nothing reads": (
        "study",
        '"numbers per seed")\n',
        '"numbers per seed")\n    rate: float = Field(0.1, description="a rate")\n',
        "parameter",
        "study.py",
        11,
    ),
    "a statement that leans": (
        "claims",
        "The sum of five normal draws stays",
        "and so it stays",
        "statement",
        "claims.py",
        4,
    ),
    "a figure that raises": ("figures", "mark_point()", "mark_pint()", "figure", "figures.py", 8),
    "a figure of a metric that does not exist": ("figures", '"total"', '"totals"', "figure", "figures.py", 8),
}


MISTAKES |= {
    "a misspelt array": (
        "claims",
        'm.final("total", arm="drawn", sign=1)',
        'm.array_per_seed("drawn", float, "x", step=3, arm="drawn", sign=1)',
        "claim",
        "claims.py",
        11,
    ),
    "an array without its step": (
        "claims",
        'm.final("total", arm="drawn", sign=1)',
        'm.array_per_seed("draws", float, "x", arm="drawn", sign=1)',
        "claim",
        "claims.py",
        11,
    ),
    "a figure that returns nothing": ("figures", "return alt", "alt", "figure", "figures.py", 6),
    "a figure with a syntax error": ("figures", "return alt", "return return alt", "figure", "figures.py", 1),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught_with_its_file_and_line(problems, mistake):
    room, old, new, kind, file, line = MISTAKES[mistake]
    found = problems(room, old, new)
    assert (kind, file, line) in [problem[:3] for problem in found], found
    assert {problem[0] for problem in found} == {kind}
    assert len(found) == 1, "one mistake is one problem, at however many points"


CLOCK = "record(total=x.sum(1))\n    record(seconds=__import__('time').perf_counter())"


def test_a_clock_is_allowed_where_the_arm_names_it(problems):
    ((kind, *_, what),) = problems("study", "record(total=x.sum(1))", CLOCK)
    assert kind == "randomness"
    assert "(seconds)" in what
    named = STUDY.replace("record(total=x.sum(1))", CLOCK).replace("[1, -1]})", '[1, -1]}, timed=("seconds",))')
    assert problems("study", STUDY, named) == []


def test_checking_leaves_the_global_generators_as_they_were(problems):
    before = torch.get_rng_state()
    problems()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_problem_reads_like_a_compilers(problems, tmp_path):
    problems("claims", "The sum of five normal draws stays", "and so it stays")
    (problem,) = lab.check("sound", studies=tmp_path / "studies")
    assert str(problem).endswith(
        "claims.py:4: statement: C1 begins with 'and' and leans on the row above: \"and so it stays below a hundred.\""
    )
