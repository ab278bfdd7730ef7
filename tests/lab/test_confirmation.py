"""Verdicts on fresh seeds: which stand, which do not, and what a finding says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import lab
from assay.lab.errors import UserError
from assay.lab.findings import finding_of

OUTSIDE = str(Path(__file__).parent / "outside")
STUDY = '''
from pydantic import Field
from assay import lab

class Params(lab.Params):
    size: int = Field(50, ge=1, description="draws")

study = lab.Study("luck", title="Luck", question="Does luck last?", source="a fixture", params=Params,
                  presets={name: lab.Preset(seeds=4, cost="1 s") for name in ("smoke", "laptop", "paper")})

@study.arm("drawn")
def drawn(params, seeds, record):
    """A number that is high in the seeds below 1000 alone."""
    lucky = [1.0 if seed < 1000 else -1.0 for seed in seeds]
    record(true=1 + 0.01 * seeds.normal("a", 1)[:, 0], lucky=[v + 0.01 * s for s, v in enumerate(lucky)])

@study.claim("C1", "The true number is above zero.", source="the fixture", headline=True)
def true(m):
    return m.final("true", arm="drawn").above(0)

@study.claim("C2", "The lucky number is above zero.", source="the fixture")
def lucky(m):
    return m.final("lucky", arm="drawn").above(0)

@study.claim("C3", "The true number is one to the last digit.", source="the fixture")
def undecided(m):
    return m.final("true", arm="drawn").above(1)
'''


@pytest.fixture
def luck(tmp_path) -> dict[str, str]:
    folder = tmp_path / "studies" / "luck"
    folder.mkdir(parents=True)
    (folder / "study.py").write_text(STUDY)
    return {"runs": str(tmp_path / "runs"), "studies": str(tmp_path / "studies")}


def test_what_stands_on_fresh_seeds_and_what_does_not(luck):
    lab.run("luck", preset="laptop", jobs=1, **luck)
    found = lab.confirm("luck", jobs=1, **luck)
    assert {each.first.claim.id: each.stands for each in found.claims}["C1"] is True
    assert [each.first.claim.id for each in found.lost] == ["C2"]
    assert found.summary == "luck: 1 of 2 verdicts stand on seeds from 1000 on, 1 of 1 headlines among them"
    assert "C2    holds → fails: The lucky number is above zero." in repr(found)


def test_a_finding_says_whether_it_was_confirmed(luck):
    lab.run("luck", preset="laptop", jobs=1, **luck)
    before = lab.claims("luck", **luck)
    assert [finding.confirmed for finding in before] == [None, None, None]
    assert "confirmed" not in before["C1"].row()
    lab.confirm("luck", jobs=1, **luck)
    after = lab.claims("luck", **luck)
    assert [after[id].confirmed for id in ("C1", "C2", "C3")] == [True, False, None]
    assert (after["C1"].row()["confirmed"], after["C2"].row()["confirmed"]) == (True, False)
    again = after["C2"].row()["fresh"]
    assert (again["verdict"], again["seeds"]) == ("fails", 4)
    assert again["high"] < 0, "what came out on the fresh seeds is told, not only that it was another verdict"
    assert finding_of(after["C2"].row()).fresh.verdict == "fails"
    assert after["C1"].judgement.seeds == 4, "the fresh seeds are not pooled with the first"
    assert lab.open_run("luck", **luck).fresh_seeds == "1000–1003"


@pytest.fixture
def pictures(luck, monkeypatch) -> dict[str, str]:
    """The study of luck on an image set that depends on the machine."""
    path = Path(luck["studies"]) / "luck" / "study.py"
    reading = path.read_text().replace('@study.arm("drawn")', '@study.arm("drawn", needs=lambda p: f"data:{p.images}")')
    field = """    images: str = "auto"

    @field_validator("images")
    @classmethod
    def _resolve(cls, name):
        return os.environ["LUCKY_IMAGES"] if name == "auto" else name

study = """
    reading = reading.replace("from pydantic import Field", "import os\nfrom pydantic import Field, field_validator")
    path.write_text(reading.replace("study = ", field, 1))
    monkeypatch.setattr("assay.lab.planning.missing_requirement", lambda needs, device: None)
    monkeypatch.setattr("assay.lab.planning.fingerprints", lambda needs, files: {})
    monkeypatch.setenv("LUCKY_IMAGES", "digits")
    return luck


def test_fresh_seeds_on_other_data_confirm_nothing(pictures, monkeypatch):
    lab.run("luck", preset="laptop", jobs=1, **pictures)
    monkeypatch.setenv("LUCKY_IMAGES", "mnist")
    with pytest.raises(UserError, match=r"read digits, and here it would read mnist; see \$ASSAY_DATA"):
        lab.confirm("luck", jobs=1, **pictures)
    lab.run("luck", preset="laptop", first_seed=1000, jobs=1, **pictures)
    assert lab.claims("luck", **pictures)["C1"].confirmed is None
    monkeypatch.setenv("LUCKY_IMAGES", "digits")
    assert lab.confirm("luck", jobs=1, **pictures).claims[0].stands is True
    assert lab.claims("luck", **pictures)["C1"].confirmed is True


def test_a_confirmation_by_other_code_is_none(luck):
    lab.run("luck", preset="laptop", jobs=1, **luck)
    lab.confirm("luck", jobs=1, **luck)
    path = Path(luck["studies"]) / "luck" / "study.py"
    path.write_text(path.read_text().replace("1 + 0.01 * seeds", "1.5 + 0.01 * seeds"))
    lab.run("luck", preset="laptop", jobs=1, **luck)
    assert [finding.confirmed for finding in lab.claims("luck", **luck)] == [None, None, None]


def test_seeds_that_the_run_has_are_not_fresh(luck):
    lab.run("luck", preset="laptop", jobs=1, **luck)
    with pytest.raises(UserError, match="--first-seed 2 is not fresh"):
        lab.confirm("luck", first_seed=2, jobs=1, **luck)


def test_without_a_run_there_is_nothing_to_confirm(luck):
    with pytest.raises(UserError, match="no run of 'luck' with preset laptop is stored"):
        lab.confirm("luck", jobs=1, **luck)


def test_looks_while_seeds_are_added_are_counted(luck):
    first = lab.run("luck", preset="laptop", jobs=1, **luck)
    more = lab.run("luck", preset="laptop", seeds=8, jobs=1, **luck)
    most = lab.run("luck", preset="laptop", seeds=12, jobs=1, **luck)
    assert [run.looks for run in (first, more, most)] == [1, 2, 3]
    narrow, wide = (run.results.final("true", arm="drawn").above(0) for run in (first, most))
    assert most.claims["C1"].judgement.high - most.claims["C1"].judgement.low > wide.high - wide.low
    assert first.claims["C1"].judgement.high == narrow.high
