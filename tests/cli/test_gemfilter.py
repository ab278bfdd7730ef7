"""The two commands on a small random model with a tokenizer made here; a real model is tested with the method."""

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="GemFilter needs the extra llm")


def assay(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "assay.cli", *map(str, words)], capture_output=True, text=True, cwd=cwd
    )


def test_one_prompt_with_baselines_a_page_and_the_kept_text(folder, tmp_path):
    page = tmp_path / "kept.html"
    done = assay(
        "gemfilter",
        "--model",
        folder,
        "--prompt-file",
        folder / "text.txt",
        "--question",
        "What is sentence number?",
        "--keep",
        40,
        "--layer",
        1,
        "--compare",
        "full,snapkv,h2o,one-run",
        "--new",
        4,
        "--show",
        "--page",
        page,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert [row["method"] for row in made["answers"]] == ["gemfilter", "full", "snapkv", "h2o", "one-run"]
    assert {row["kept_tokens"] for row in made["answers"]} == {40, made["answers"][1]["prompt_tokens"]}
    for row in made["answers"]:
        assert row["new_tokens"] <= 4
        assert row["cache_bytes"] > 0
        assert row["peak_counts"] in ("the whole process", "the whole process since it started")
        assert row["peak_bytes"] == max(row["first_peak"], row["second_peak"]) > 2**20
    assert made["chat"] is False
    assert "…" in made["kept"]
    html = page.read_text()
    assert html.count("<mark>") >= 2
    assert "40 of" in html


def test_the_table_says_what_was_measured(folder):
    done = assay(
        "gemfilter",
        "--model",
        folder,
        "--prompt-file",
        folder / "text.txt",
        "--keep",
        40,
        "--layer",
        1,
        "--new",
        2,
        "--compare",
        "snapkv",
    )
    assert done.returncode == 0, done.stderr
    for words in ("prompt s", "answer s", "ms a token", "cache MiB", "peak GiB", "peak memory: the whole process"):
        assert words in done.stdout, words
    assert "40 of" in done.stdout
    assert " then " in done.stdout


def test_a_long_question_stands_whole_behind_every_chunk(folder):
    question = "What is sentence number " * 40 + "served?"
    usual = ["gemfilter", "--model", folder, "--prompt-file", folder / "text.txt", "--question", question]
    usual += ["--keep", 40, "--layer", 1, "--chunk", 60, "--new", 2, "--show", "--json"]
    made, said = {}, {}
    for tail in (None, 176, 64):
        done = assay(*usual, *([] if tail is None else ["--tail", tail]))
        assert done.returncode == 0, done.stderr
        made[tail], said[tail] = json.loads(done.stdout), done.stderr
    assert made[None]["kept"] == made[176]["kept"] != made[64]["kept"]
    assert "every chunk ends in the last 64 of them only: a longer tail holds all" in said[64]
    assert "every chunk ends in" not in said[None] + said[176]


def test_the_first_command_of_the_guide_works(folder):
    guide = (Path(__file__).parents[2] / "docs/methods/gemfilter.md").read_text()
    (line,) = re.findall(r"^\$ assay (gemfilter --model .*)$", guide, re.M)
    words = shlex.split(line)
    for name, ours in (("smollm2", folder), ("notes.txt", folder / "text.txt")):
        words[words.index(name)] = ours
    done = assay(*words, "--layer", 1)  # measuring the layer takes minutes
    assert done.returncode == 0, done.stderr
    assert "tokens kept" in done.stdout


def test_a_grid_of_needles_with_its_heat_map(folder, tmp_path):
    done = assay(
        "needle",
        "--model",
        folder,
        "--lengths",
        150,
        "--depths",
        2,
        "--methods",
        "full,gemfilter",
        "--layer",
        1,
        "--haystack",
        folder / "text.txt",
        "--out",
        tmp_path / "map.svg",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(row["method"], row["depth"]) for row in rows] == [
        ("full", 0.0),
        ("gemfilter", 0.0),
        ("full", 1.0),
        ("gemfilter", 1.0),
    ]
    assert {row["length"] for row in rows} == {150}
    assert {row["keep"] for row in rows} == {18}
    assert (tmp_path / "map.svg").read_text().startswith("<svg")


def test_a_needle_of_ones_own_in_chunks_with_its_recall(folder):
    words = "This is sentence number 7.|What is sentence number?|number"
    usual = ["needle", "--model", folder, "--lengths", 200, "--depths", 2, "--layer", 1, "--chunk", 40]
    usual += ["--haystack", folder / "text.txt", "--needle", words]
    done = assay(*usual)
    assert done.returncode == 0, done.stderr
    assert "kept" in done.stdout
    assert "share of the needle's tokens" in " ".join(done.stdout.split())
    done = assay(*usual, "--json")
    made = json.loads(done.stdout)
    assert {row["method"] for row in made["rows"]} == {"full", "gemfilter"}
    assert all(0 <= row["recall"] <= 1 for row in made["rows"] if row["method"] == "gemfilter")
    assert made["needle"] == words


def test_layers_are_scanned_and_drawn_with_their_stages(folder, tmp_path):
    done = assay(
        "needle",
        "--model",
        folder,
        "--lengths",
        "150,200",
        "--depths",
        3,
        "--methods",
        "",
        "--keep",
        24,
        "--haystack",
        folder / "text.txt",
        "--layers",
        tmp_path / "layers.svg",
        "--layer",
        1,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["rows"] == []
    assert [row["length"] for row in made["layers"]] == [150, 200]
    for row in made["layers"]:
        assert len(row["stages"]) == 3
        assert set(row["recall"]) == {"logits", "softmax", "window"}
        assert all(0 <= value <= 1 for values in row["recall"].values() for value in values)
    assert "in layers 0 to" in done.stderr
    picture = (tmp_path / "layers.svg").read_text()
    assert "n = 150, k = 24" in picture
    assert "search" in picture


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--layer", "x"], "--layer takes a number or 'auto', not 'x'"),
        (["--layer", 7], "layer must lie between 0 and 2"),
        (["--keep", 0], "keep must be at least 1"),
        (["--keep", "some"], "--keep takes a number of tokens or a share of the prompt, not 'some'"),
        (["--keep", 1.5], "keep must be an integer, or a share of the prompt between 0 and 1, not 1.5"),
        (["--rule", "best"], "rule must be one of"),
        (["--compare", "magic"], "a method must be one of full, snapkv"),
        (["--new", 0], "Invalid value for '--new'"),
        (["--chunk", 0], "chunk must be at least 2"),
        (["--tail", 20], "a tail stands behind every chunk: it goes with chunk only"),
        (["--prompt-file", "empty.txt"], "empty.txt is empty: there is nothing to read"),
        (["--prompt-file", "mark.txt"], "mark.txt is empty: there is nothing to read"),
        (["--prompt-file", "missing.txt"], "cannot read missing.txt"),
        (["--page", "no/such/place.html"], "cannot write no/such/place.html"),
        (["--model", "./text.txt"], "the model './text.txt' is not here: it holds no config.json"),
    ],
)
def test_bad_words_get_one_sentence(folder, words, sentence):
    usual = {"--model": folder, "--prompt-file": folder / "text.txt", "--keep": 20, "--layer": 1}
    usual |= dict(zip(words[::2], words[1::2], strict=True))
    (folder / "empty.txt").write_text(" \n")
    (folder / "mark.txt").write_text("\n", encoding="utf-8-sig")
    done = assay("gemfilter", *(part for pair in usual.items() for part in pair), cwd=folder)
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("assay: ")
    assert sentence in last
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--methods", "magic"], "a method must be one of full, snapkv"),
        (["--lengths", "long"], "--lengths takes numbers"),
        (["--keep", 0], "keep must be at least 1"),
        (["--out", "map.gif"], "the formats are .html, .svg, .png and .pdf"),
        (["--layers", "map.gif"], "the formats are .html, .svg, .png and .pdf"),
        (["--methods", ""], "at least one method"),
        (["--lengths", 20], "leaves no room for a haystack"),
        (["--needle", "gold"], "needle must be one of ingredient, passcode, sandwich"),
        (["--needle", "a|b"], "a needle of your own is written 'sentence|question|answer'"),
        (["--chunk", "much"], "--chunk takes a number of tokens or 'auto', not 'much'"),
        (["--chunk", 1], "chunk must be at least 2"),
        (["--lengths", 40, "--layer", "auto"], "a needle prompt of 40 tokens leaves no room"),
        (["--haystack", "blank.txt"], "blank.txt is empty: there is nothing to read"),
        (["--haystack", "model.safetensors"], "it is not text in UTF-8"),
    ],
)
def test_bad_grids_get_one_sentence(folder, words, sentence):
    usual = {"--model": folder, "--lengths": 150, "--layer": 1}
    usual |= dict(zip(words[::2], words[1::2], strict=True))
    (folder / "blank.txt").write_text("\n \n")
    done = assay("needle", *(part for pair in usual.items() for part in pair), cwd=folder)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["gemfilter", "needle"])
@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--layer", "foo", "--layer takes a number or 'auto', not 'foo'"),
        ("--layer", "²", "--layer takes a number or 'auto', not '²'"),
        ("--layer", -1, "layer must be at least 0"),
        ("--keep", 0, "at least"),
        ("--rule", "foo", "rule must be one of"),
        ("--needle", "foo", "needle must be one of ingredient, passcode, sandwich"),
        ("--lengths", "150,-3", "--lengths takes numbers"),
    ],
)
def test_words_that_mean_nothing_are_refused_before_a_model_is_loaded(folder, command, option, value, sentence):
    if command == "gemfilter" and option in ("--needle", "--lengths"):
        pytest.skip("an option of the other command")
    usual = {"--model": folder}
    usual |= {"--prompt-file": folder / "text.txt"} if command == "gemfilter" else {"--lengths": 150}
    usual[option] = value
    done = assay(command, *(part for pair in usual.items() for part in pair))
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "loading" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_named_twice_runs_once_and_lengths_beyond_the_context_are_told_of(folder):
    done = assay(
        "needle",
        "--model",
        folder,
        "--lengths",
        "600,600",
        "--depths",
        1,
        "--methods",
        "full,full",
        "--haystack",
        folder / "text.txt",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 1
    assert done.stderr.count("600 tokens at once exceed the 512 that the model was trained for") == 1


def test_the_mark_of_an_editor_is_no_part_of_a_text(folder, tmp_path):
    from assay.cli.refusals import text_of

    (tmp_path / "marked.txt").write_text("This is sentence number 7.", encoding="utf-8-sig")
    assert text_of(tmp_path / "marked.txt") == "This is sentence number 7."


def test_an_answer_with_brackets_is_printed_as_it_is():
    from rich.console import Console

    from assay.cli.gemfilter import _answers
    from assay.evaluation import Answer, Profile
    from assay.methods.gemfilter import GemFilter
    from assay.methods.gemfilter.comparing import Answered

    took = Profile("full", 9, 9, 2, 0.1, 0.0, 0.1, 0.01, None, None, 64)
    console = Console(width=200, record=True, file=io.StringIO())
    said = {"full": Answer("so [b]it[/b] is [/INST]", took)}
    console.print(_answers(Answered(GemFilter(layer=1), [], True, said, "nothing")))
    assert "so [b]it[/b] is [/INST]" in console.export_text()


def test_the_study_names_the_layers_that_a_smaller_model_lacks(folder):
    from assay.networks import load_model
    from assay.studies.gemfilter.needles.learners import Trial, needle_trial

    loaded = load_model(str(folder))
    with pytest.raises(ValueError, match=r"text_layer names layer 23, and .* has 3"):
        needle_trial(loaded, [0], 200, (0.5,), Trial(1, "window", 23, (), 2))
