import json

import pytest

from assay.methods.gemfilter.longbench import TASKS, Item, classification, f1, read_task, retrieval, rouge_l, score


def test_a_task_is_read_and_scored(tmp_path):
    rows = [
        {"input": "Who sang?", "context": "Long ago Ada sang.", "answers": ["Ada", "Ada Byron"], "all_classes": None},
        {"input": "Where?", "context": "In the old hall.", "answers": ["the old hall"]},
    ]
    (tmp_path / "hotpotqa.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    items = read_task(tmp_path, "hotpotqa")
    assert [item.input for item in items] == ["Who sang?", "Where?"]
    assert score(items[0], "It was Ada Byron.") == pytest.approx(2 * 2 / (4 + 2))
    assert score(items[1], "Old hall!") == 1.0
    assert score(items[1], "nowhere") == 0.0


def test_metrics_are_those_of_the_benchmark():
    assert f1("the cat sat", "A cat") == pytest.approx(2 / 3)
    assert rouge_l("a b c d", "a x c d") == pytest.approx(0.75)
    assert rouge_l("", "a") == 0.0
    classes = ("city", "state", "other city")
    assert classification("it is a city", "city", classes) == 1.0
    assert classification("city or state", "city", classes) == 0.5
    assert classification("an other city", "other city", classes) == 1.0
    assert classification("none", "city", classes) == 0.0
    assert retrieval("Paragraph 3", "Paragraph 3") == 1.0
    assert retrieval("Paragraph 3 or 4", "Paragraph 3") == 0.5
    assert score(Item("passage_count", "", "", ("7",)), "There are 7 of them") == 1.0
    assert score(Item("triviaqa", "", "", ("Paris",)), "\nParis\nand more words") == 1.0


def test_every_task_can_be_scored():
    for name in TASKS:
        item = Item(name, "", "", ("Paragraph 5" if name == "passage_retrieval_en" else "5",), ("5", "6"))
        assert score(item, "5") == 1.0, name


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="tasks of LongBench are"):
        read_task(tmp_path, "sudoku")
    with pytest.raises(ValueError, match="there is no file"):
        read_task(tmp_path, "trec")
    (tmp_path / "trec.jsonl").write_text('{"input": "x"}\n')
    with pytest.raises(ValueError, match="line 1, is not an item"):
        read_task(tmp_path, "trec")
