"""`assay icl-flip` on a tiny random model and a text set of its own."""

import json

import pytest

pytest.importorskip("transformers", reason="language models need the extra llm")

import polars as pl

from assay.methods import FlipReport
from assay.networks import toy_language_model

FILMS = [f"a {word} film number {i} of many" for i in range(30) for word in ("dull", "fine")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model and with data: films of two labels."""
    folder = tmp_path_factory.mktemp("flip")
    toy = toy_language_model([*FILMS, "sentence: Review: The answer is\n positive. negative. dull fine"])
    for name in ("model", "other"):
        toy.model.save_pretrained(folder / name)
        toy.tokenizer.save_pretrained(folder / name)
    (folder / "data/films").mkdir(parents=True)
    rows = pl.DataFrame({"text": FILMS, "label": [0, 1] * 30})
    for split in ("train", "test"):
        rows.write_parquet(folder / f"data/films/{split}-00000-of-00001.parquet")
    return folder


@pytest.fixture
def flip(assay, place, monkeypatch):
    """Call the command with few seeds and queries."""
    monkeypatch.setenv("ASSAY_DATA", str(place / "data"))

    def call(*more, model="model"):
        few = ["--demonstrations", "4", "--queries", "6", "--seeds", "3", "--fractions", "0,1"]
        return assay("icl-flip", "--model", str(place / model), "--data", "films", *few, *more)

    return call


WORDS = ("--labels", "negative,positive")


def test_a_table_and_a_sentence(flip):
    status, out, err = flip(*WORDS)
    assert status == 0, err
    assert "on films: 4 demonstrations, 6 queries for each of 3 seeds" in out
    for words in ("AUC", "balanced answers", "raw answers", "flipped labels"):
        assert words in out


def test_json_figure_and_saved_reports_of_two_models(flip, place, tmp_path):
    status, out, err = flip(
        *WORDS,
        "--model",
        str(place / "other"),
        "--out",
        str(tmp_path / "flip.svg"),
        "--save",
        str(tmp_path / "kept"),
        "--json",
    )
    assert status == 0, err
    made = json.loads(out)
    assert len(made["rows"]) == 2 * 3 * 2
    assert made["rows"][0]["reading"] == "AUC"
    assert len(made["readings"]) == 2
    assert (tmp_path / "flip.svg").read_text().startswith("<svg")
    kept = FlipReport.load(tmp_path / "kept/model.films.json")
    assert kept.settings["labels"] == ("negative", "positive")
    assert kept.against(FlipReport.load(tmp_path / "kept/other.films.json")).estimate == 0  # the same weights


def test_other_templates_and_draws(flip):
    status, out, err = flip("--labels", "dull,fine", "--template", r"Review: {text}\nThe answer is {label}.", "--fresh")
    assert status == 0, err
    status, out, _ = flip(*WORDS, "--first-seed", "5", "--words", "any", "--json")
    assert status == 0
    assert json.loads(out)["rows"][0]["seeds"] == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "--labels needs a word for each label of films"),
        (("--data", "fims"), "unknown text set 'fims'"),
        (("--labels", "negative,wonderful"), "the label ' wonderful' is not in the model's vocabulary"),
        (("--labels", "negative,dull film"), "the label ' dull film' is 2 tokens"),
        (("--labels", "a,b,c"), "the data have the labels [0, 1], and there are 3 words for them"),
        ((*WORDS, "--fractions", "0,2"), "a fraction must lie in [0, 1]"),
        ((*WORDS, "--fractions", "half"), "--fractions takes shares such as 0,0.5,1"),
        ((*WORDS, "--seeds", "0"), "seeds must be at least 1"),
        ((*WORDS, "--words", "6"), "--words takes a range such as 6-20"),
        ((*WORDS, "--words", "90-99"), "no text of the pool has 90 to 99 words"),
        ((*WORDS, "--demonstrations", "400"), "are to be drawn, and there are only"),
        ((*WORDS, "--template", "{text}"), "a template has {text} once"),
        ((*WORDS, "--out", "flip.bmp"), "the formats are"),
        ((*WORDS, "--several-tokens", "all"), "several_tokens must be one of refuse, sum, mean"),
        ((*WORDS, "--model", "./nowhere"), "there is no such folder"),
    ],
)
def test_one_sentence_for_bad_input(flip, more, words):
    status, out, err = flip(*more)
    assert status == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_a_prompt_longer_than_the_context(assay, place, monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(place / "data"))
    small = toy_language_model([*FILMS, "sentence: The answer is\n positive. negative."], max_position_embeddings=32)
    small.model.save_pretrained(tmp_path)
    small.tokenizer.save_pretrained(tmp_path)
    status, _, err = assay("icl-flip", "--model", str(tmp_path), "--data", "films", *WORDS, "--queries", "6")
    assert status == 2
    assert "longer than the model's context of 32: show fewer demonstrations" in err


def test_an_unknown_data_set(assay, place):
    status, _, err = assay("icl-flip", "--model", str(place / "model"), "--data", "sst3", *WORDS)
    assert status == 2
    assert "did you mean 'sst2'" in err
