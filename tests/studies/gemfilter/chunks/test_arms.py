"""The arms that read in chunks hide their facts in a folder of the user's, or say why it is none."""

import pytest

pytest.importorskip("transformers", reason="the study's models need the extra llm")

from assay import lab
from assay.lab.errors import UserError

TRIED = {"preset": "smoke", "seeds": 1}


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A folder of text, with the place that commands are given in beside it."""
    (tmp_path / "notes").mkdir()
    lines = [f"On day {i} nobody came to the empty hall by the sea." for i in range(600)]
    (tmp_path / "notes" / "days.md").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "notes"


def test_facts_are_hidden_in_a_folder_of_yours(notes):
    """Named by its whole path, or from where the command is given; of another text the filter keeps other tokens."""
    tries = {name: {"chunk_haystacks": name} for name in (str(notes), "notes", "manual")}
    found = {name: lab.try_arm("gemfilter", "chunks", **TRIED, set=each) for name, each in tries.items()}
    recall = {name: m.rows("recall", arm="chunks").to_dicts() for name, m in found.items()}
    assert recall[str(notes)] == recall["notes"]
    assert recall["notes"] != recall["manual"]


FOLDERS = ["chunks", "chunks-beyond", "chunk-answers", "chunk-words", "chunks-far", "chunk-controls", "rivals"]


@pytest.mark.parametrize("arm", FOLDERS)
def test_a_folder_with_too_little_text_is_refused_before_any_unit_runs(notes, arm):
    (notes / "days.md").write_text("Short.")
    sentence = rf"^arm '{arm}' cannot run: {notes} holds 6 characters of text; a haystack has at least 20,000$"
    with pytest.raises(UserError, match=sentence):
        lab.plan("gemfilter", preset="smoke", arms=arm, set={"chunk_haystacks": str(notes)})
    with pytest.raises(UserError, match=rf"there is neither a folder nor a file {notes}-elsewhere$"):
        lab.plan("gemfilter", preset="smoke", arms=arm, set={"chunk_haystacks": f"{notes}-elsewhere"})


def test_without_being_named_they_are_left_out_and_the_choice_reads_other_texts(notes):
    (notes / "days.md").write_text("Short.")
    plan = lab.plan("gemfilter", preset="smoke", set={"chunk_haystacks": str(notes)}).plan
    assert "holds 6 characters of text" in plan.skipped["chunks"]
    assert "chunk-choice" in {unit.arm for unit in plan.units}
