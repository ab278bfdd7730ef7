import json

import pytest
import torch

from assay.evaluation import evaluate_longbench
from assay.evaluation.longbench import (
    TASKS,
    Item,
    asked,
    classification,
    cut_in_the_middle,
    f1,
    read_prompts,
    read_task,
    retrieval,
    rouge_l,
    score,
)
from assay.evaluation.longbench_runner import averages
from assay.methods.gemfilter import FullAttention, GemFilter, SnapKV


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


STORY = " ".join(f"On day {i} the tram number {i} went to the harbour." for i in range(30))
SAMPLE = {
    "hotpotqa": [
        {"input": "Where did the tram go?", "context": STORY, "answers": ["the harbour", "harbour"]},
        {"input": "Which tram went on day 4?", "context": STORY, "answers": ["tram number 4"]},
    ],
    "trec": [
        {
            "input": "Question: Who is Ada?\nType:",
            "context": "Question: Where is Riga?\nType: city",
            "answers": ["person"],
            "all_classes": ["city", "person"],
        },
    ],
    "passage_count": [{"input": "", "context": "Paragraph 1: a\nParagraph 2: a", "answers": ["1"]}],
}


@pytest.fixture
def folder(tmp_path):
    """A sample of our own in the benchmark's layout."""
    for task, rows in SAMPLE.items():
        (tmp_path / f"{task}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def model(make_model):
    return make_model("Llama", vocab_size=400)


class Knowing(FullAttention):
    """Answers with a given text, and keeps what it was asked."""

    def __init__(self, tokenizer, said):
        object.__setattr__(self, "tokenizer", tokenizer)
        object.__setattr__(self, "said", said)
        object.__setattr__(self, "asked", [])

    def generate(self, model, inputs=None, **kwargs):
        self.asked.append((inputs[0].tolist(), kwargs["max_new_tokens"]))
        return torch.cat([inputs, torch.tensor([self.tokenizer(self.said)["input_ids"]])], dim=1)


def test_methods_are_scored_on_every_task_that_is_there(folder, model, tokenizer):
    good, bad = Knowing(tokenizer, "the harbour\nand more"), Knowing(tokenizer, "a city")
    rows = evaluate_longbench(model, tokenizer, folder, methods={"good": good, "bad": bad}, max_length=400)
    scores = {(row.task, row.method): row.score for row in rows}
    assert list(scores) == [(task, name) for task in ("hotpotqa", "trec", "passage_count") for name in ("good", "bad")]
    # "harbour and more" against "harbour" and against "tram number 4", without the article.
    assert scores["hotpotqa", "good"] == pytest.approx(100 * (2 / 4 + 0) / 2)
    assert scores["trec", "bad"] == 0
    assert averages(rows)["good"] == pytest.approx(sum(scores[t, "good"] for t in SAMPLE) / 3)
    assert good.asked == bad.asked
    assert [new for _, new in good.asked] == [32, 32, 64, 32]
    assert {(row.items, row.cut, row.benchmark_prompts, row.chat) for row in rows if row.task == "hotpotqa"} == {
        (2, 0, False, False)
    }


def test_real_methods_answer_what_they_generate(folder, model, tokenizer):
    methods = {"full": FullAttention(), "snapkv": SnapKV(40, 8), "gemfilter": GemFilter(layer=2, keep=40)}
    rows = evaluate_longbench(model, tokenizer, folder, ["hotpotqa"], methods, max_length=200, limit=1)
    item = read_task(folder, "hotpotqa")[0]
    text = cut_in_the_middle(tokenizer, asked(item, {}), 200)
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    for row in rows:
        made = methods[row.method].generate(model, ids, max_new_tokens=32, do_sample=False)
        assert row.score == pytest.approx(100 * score(item, tokenizer.decode(made[0, ids.shape[1] :])))
        assert row.cut == 1
        assert row.items == 1


def test_long_prompts_lose_their_middle(tokenizer):
    words = [f"w{i}" for i in range(20)]
    text = " ".join(words)
    assert cut_in_the_middle(tokenizer, text, 20) == text
    assert cut_in_the_middle(tokenizer, text, 6).split() == ["w0", "w1", "w2", "w17", "w18", "w19"]
    assert cut_in_the_middle(tokenizer, text, 7).split() == ["w0", "w1", "w2", "w17", "w18", "w19"]


def test_examples_are_continued_and_questions_chatted(folder, model, tokenizer):
    tokenizer.chat_template = "yes"
    knowing = Knowing(tokenizer, "x")
    rows = evaluate_longbench(model, tokenizer, folder, ["trec", "hotpotqa"], {"it": knowing}, max_length=400, limit=1)
    said = [tokenizer.decode(ids) for ids, _ in knowing.asked]
    assert [text.startswith("<user>") for text in said] == [False, True]
    assert [row.chat for row in rows] == [False, True]
    assert said[0].endswith("Type:")


def test_the_benchmarks_own_prompts_are_used_where_they_are(folder, model, tokenizer):
    (folder / "dataset2prompt.json").write_text(json.dumps({"hotpotqa": "Q: {input} C: {context} {input}!"}))
    knowing = Knowing(tokenizer, "x")
    rows = evaluate_longbench(model, tokenizer, folder, ["hotpotqa", "trec"], {"it": knowing}, max_length=900, limit=1)
    assert tokenizer.decode(knowing.asked[0][0]) == f"Q: Where did the tram go? C: {STORY} Where did the tram go?!"
    assert [row.benchmark_prompts for row in rows] == [True, False]
    tricky = Item("hotpotqa", "a {input} b", "why?", ())
    assert asked(tricky, read_prompts(folder)) == "Q: why? C: a {input} b why?!"


def test_every_task_asks_with_its_context():
    for name, task in TASKS.items():
        text = asked(Item(name, "CONTEXT", "INPUT", ()), {})
        assert text.count("CONTEXT") == 1
        assert ("INPUT" in text) is ("{input}" in task.prompt)


def test_runs_that_make_no_sense_are_refused(folder, model, tokenizer, tmp_path_factory):
    methods = {"full": FullAttention()}
    with pytest.raises(ValueError, match="name at least one method"):
        evaluate_longbench(model, tokenizer, folder)
    with pytest.raises(ValueError, match="holds none of LongBench's files"):
        evaluate_longbench(model, tokenizer, tmp_path_factory.mktemp("empty"), methods=methods)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        evaluate_longbench(model, tokenizer, folder, methods=methods, limit=0)
    with pytest.raises(ValueError, match="nothing to cut from"):
        evaluate_longbench(model, tokenizer, folder, ["trec"], methods, max_length=1)
    (folder / "dataset2prompt.json").write_text("[]")
    with pytest.raises(ValueError, match="not a table of prompts"):
        read_prompts(folder)
    (folder / "trec.jsonl").write_text("\n")
    (folder / "dataset2prompt.json").unlink()
    with pytest.raises(ValueError, match="has no item of trec"):
        evaluate_longbench(model, tokenizer, folder, ["trec"], methods)
