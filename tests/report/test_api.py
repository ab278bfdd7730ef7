"""The API reference: up to date, the same everywhere, and its examples run."""

import doctest
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from assay.report import api

ROOT = Path(__file__).parent.parent.parent
KEPT = [(room, example) for room in api.ROOMS for example in api.examples(room)]


def test_the_committed_pages_are_up_to_date():
    made = api.pages(ROOT / "docs/methods")
    kept = {path.name: path.read_text() for path in (ROOT / "docs/api").glob("*.md")}
    assert kept.keys() == made.keys()
    stale = [name for name in made if made[name] != kept[name]]
    assert stale == [], "make docs brings them up to date"


@pytest.mark.parametrize(("room", "example"), KEPT, ids=[f"{room}-{example.names[0]}" for room, example in KEPT])
def test_examples_run(room, example, monkeypatch):
    if example.needs and find_spec(example.needs) is None:
        pytest.skip(f"{example.needs} is not installed")
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    torch.manual_seed(0)
    test = doctest.DocTestParser().get_doctest(example.text, {}, example.names[0], f"{room}.txt", 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("room", api.ROOMS)
def test_examples_are_of_names_that_exist(room):
    names = {name for each in api.examples(room) for name in each.names}
    offered = set(importlib.import_module(f"assay.{room}").__all__)
    assert names <= offered
    # The lab's own examples stand in its docstrings or come with time; every other name has one.
    assert room == "lab" or names == offered


def test_a_page_shows_no_machine():
    text = "".join(api.pages().values())
    assert not re.search(r" at 0x|PosixPath|/tmp|/home|<function|<class", text)
    with pytest.raises(ValueError, match="address of memory"):
        api._page("x", type("room", (), {"__all__": ["f"], "f": staticmethod(lambda x=[object()]: x)}), {})


def test_what_a_function_returns_is_on_its_page():
    page = api.pages()["probes.md"]
    assert "### FeatureRow" in page, "a row of what specialisation returns"
    assert page.index("## What they return") < page.index("### FeatureRow")
