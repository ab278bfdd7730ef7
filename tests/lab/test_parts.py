"""Studies that are cut into parts: one folder per experiment, with parameters beside its arms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import Field, field_validator

from assay import lab
from assay.lab import discovery
from assay.lab.code_version import arm_codes
from assay.lab.errors import UserError
from assay.lab.planning import make_plan
from assay.lab.store import Store
from assay.lab.units import Request

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "parted", tmp_path / "studies" / "parted")
    return tmp_path / "studies"


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / "parted" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def found(folder: Path) -> lab.Study:
    return discovery.find("parted", str(folder))


def test_a_study_has_the_arms_claims_and_exhibits_of_its_parts(folder):
    study = found(folder)
    assert list(study.arms) == ["walk", "coin"]
    assert [claim.id for claim in study.ordered_claims()] == ["C1a", "C1b", "C2", "N1"]
    assert list(study.tables) == ["distances"]
    assert study.figures == {}


def test_a_family_of_claims_differs_in_its_words(folder):
    claims = found(folder).claims
    assert claims["C1a"].statement == "A coin of bias 0.2 rarely falls on its head."
    assert claims["C1b"].source == "the fixture, bias 0.8"


def test_members_of_a_family_may_have_domains_of_their_own(folder):
    change(folder, "coins/claims.py", '"rarely"}', '"rarely", "setting": "long", "when": {"few": lambda p: False}}')
    claims = found(folder).claims
    assert (claims["C1a"].setting, list(claims["C1a"].when)) == ("long", ["few"])
    assert (claims["C1b"].setting, list(claims["C1b"].when)) == (None, [])


def test_a_study_with_parts_runs_and_judges_all_of_them(folder, tmp_path):
    run = lab.run("parted", preset="smoke", seeds=8, studies=str(folder), runs=tmp_path / "runs", jobs=1)
    verdicts = {finding.claim.id: finding.judgement.verdict for finding in run.claims}
    assert verdicts == {"C1a": "holds", "C1b": "holds", "C2": "holds", "N1": "holds"}
    assert len(run.table("distances")) == 8


def test_presets_and_settings_of_parts_are_put_together_and_the_studys_own_go_first(folder):
    study = found(folder)
    smoke, laptop = (study.resolve(name, {}) for name in ("smoke", "laptop"))
    assert (smoke.steps, smoke.tosses, laptop.steps, laptop.tosses) == (4, 50, 20, 300)
    assert dict(study.preset("laptop").fewer) == {"walk": 5, "coin": 4}
    long = study.resolve("smoke", {}, "long")
    assert (long.steps, long.tosses) == (40, 400)


def test_an_arm_reads_the_parameters_of_its_part_and_no_others(folder, tmp_path):
    study = found(folder)
    assert study.arms["walk"].read == ("scale", "steps")
    plan = make_plan(study, Request(preset="smoke", overrides={"tosses": 60}), Store(tmp_path, "parted"))
    usual = make_plan(study, Request(preset="smoke"), Store(tmp_path, "parted"))
    keys = [{unit.key for unit in each.units if unit.arm == "walk"} for each in (plan, usual)]
    assert keys[0] == keys[1]
    change(folder, "coins/arms.py", "params.tosses)", "params.steps)")
    with pytest.raises(AttributeError, match="reads the parameter 'steps'"):
        lab.try_arm("parted", "coin", studies=str(folder), preset="smoke")


def test_chunk_states_how_many_seeds_train_together(folder, tmp_path):
    units = make_plan(found(folder), Request(preset="smoke", seeds=5), Store(tmp_path, "parted")).units
    assert [unit.seeds for unit in units if unit.arm == "walk"] == [(0, 1), (2, 3), (4,)]


def test_a_chunk_below_one_or_beside_a_working_set_is_refused():
    part = lab.Part("p", params=lab.Params)
    for options in ({"chunk": 0}, {"chunk": 2, "working_set": lambda p: 8.0}):
        with pytest.raises(ValueError, match="chunk= is a number of seeds from 1 on"):
            part.arm("a", **options)(lambda params, seeds, record: None)


def test_bad_values_are_refused_by_part_and_study(folder):
    study = found(folder)
    with pytest.raises(UserError, match="even number of steps"):
        study.resolve("smoke", {"steps": 5})
    with pytest.raises(UserError, match="not longer than a row of tosses"):
        study.resolve("smoke", {"steps": 90})


def test_the_code_of_an_arm_follows_its_part(folder):
    before = arm_codes(found(folder))
    change(folder, "walks/arms.py", ".sum(1).abs()", ".sum(1).abs() * 1.0")
    change(folder, "walks/arms.py", "steps % 2:", "steps % 2 == 1:")
    after = arm_codes(found(folder))
    assert before["coin"].version == after["coin"].version
    assert before["walk"].version != after["walk"].version
    assert not any("study.py" in name for name in after["walk"].files)


def test_claims_and_presets_of_a_part_rerun_nothing(folder):
    before = arm_codes(found(folder))
    change(folder, "walks/claims.py", "above(0)", "above(0.1)")
    change(folder, "walks/arms.py", "lab.PartPreset(steps=4)", "lab.PartPreset(steps=6)")
    change(folder, "study.py", "self.steps > self.tosses", "self.steps >= self.tosses")
    assert {name: code.version for name, code in arm_codes(found(folder)).items()} == {
        name: code.version for name, code in before.items()
    }


def test_an_edited_claim_of_a_part_is_seen_by_a_process_that_lives_on(folder):
    assert found(folder).claims["C2"].statement == "A walk does not stay where it is."
    change(folder, "walks/claims.py", "A walk does not stay where it is.", "A walk moves.")
    assert found(folder).claims["C2"].statement == "A walk moves."


def test_figures_that_cannot_be_loaded_are_loaded_whole_once_mended(folder):
    (folder / "parted/coins/figures.py").write_text("raise RuntimeError('not yet')\n")
    study = found(folder)
    for _ in range(2):
        with pytest.raises(UserError, match="not yet"):
            _ = study.tables
    (folder / "parted/coins/figures.py").write_text("")
    assert list(study.tables) == ["distances"]


def test_a_study_that_was_loaded_anew_meanwhile_still_has_its_figures(folder):
    older = found(folder)
    change(folder, "walks/claims.py", "above(0)", "above(0.1)")
    assert found(folder) is not older
    assert list(older.tables) == ["distances"]


def test_two_parts_with_one_name_for_an_arm_or_claim_are_refused(folder):
    change(folder, "coins/claims.py", '"C1b"', '"C2"')
    with pytest.raises(UserError, match="already has the claim C2"):
        found(folder)
    change(folder, "coins/claims.py", '"C2"', '"C1b"')
    change(folder, "coins/arms.py", 'part.arm("coin"', 'part.arm("walk"')
    with pytest.raises(UserError, match="already has the arm walk"):
        found(folder)


def test_a_study_whose_parameters_leave_out_a_part_is_refused(folder):
    change(folder, "study.py", "class Params(walks.Params, coins.Params)", "class Params(walks.Params)")
    with pytest.raises(UserError, match="do not derive from those of its part coins"):
        found(folder)


def test_a_part_knows_the_three_presets_only():
    with pytest.raises(ValueError, match="a preset large"):
        lab.Part("p", params=lab.Params, presets={"large": lab.PartPreset()})


def test_two_parts_with_one_name_for_a_validator_are_refused():
    class Left(lab.Params):
        a: int = Field(1)

        @field_validator("a")
        @classmethod
        def _check(cls, a: int) -> int:
            return a

    class Right(lab.Params):
        b: int = Field(1)

        @field_validator("b")
        @classmethod
        def _check(cls, b: int) -> int:
            return b

    class Both(Left, Right):
        pass

    parts = (lab.Part("left", params=Left), lab.Part("right", params=Right))
    presets = {name: lab.Preset(seeds=1, cost="1 s") for name in ("smoke", "laptop", "paper")}
    with pytest.raises(ValueError, match="validator _check, of which one would be lost"):
        lab.Study("s", title="t", question="q", source="s", params=Both, presets=presets, parts=parts)
