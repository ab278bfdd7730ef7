"""Unknown, known but not here, on this machine: told apart for every kind."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import catalog
from assay.data.catalog import CATALOG, available, first_available, names, obtainable, unknown

KINDS = {"images": "image set", "text": "text set", "domains": "set of domains"}
ABSENT = sorted(set(CATALOG) - {"digits"})


def bring(shelf, name, kind):
    """A small set of the kind, under the name."""
    if kind == "images":
        shelf.images(name, shelf.arrays((2, 2), 2), [0, 1])
    elif kind == "text":
        shelf.table(name, {"text": ["a", "b"], "label": [0, 1]})
    else:
        shelf.files(f"{name}/domain/class", shelf.arrays((2, 2), 1))


def test_every_entry_says_what_it_is():
    for name, entry in CATALOG.items():
        assert (entry.name, entry.kind in KINDS, entry.classes > 1, bool(entry.description)) == (name, True, True, True)
        assert "\n" not in entry.description
    assert {entry.kind for entry in CATALOG.values()} == set(KINDS)
    assert set(names()) >= set(CATALOG)


@pytest.mark.parametrize("name", ABSENT)
def test_known_and_not_here(name, shelf, monkeypatch):
    monkeypatch.setattr(catalog, "find_spec", lambda module: None if module == "datasets" else object())
    kind = CATALOG[name].kind
    assert unknown(name) is None
    says = f"the {KINDS[kind]} '{name}' is not on this machine: there is no folder {shelf.folder / name}"
    assert available(name) == says
    assert obtainable(name).startswith(f"{says}, and ")
    assert ("assay-lab[data]" in obtainable(name)) == (CATALOG[name].hub is not None)
    monkeypatch.delenv("ASSAY_DATA")
    assert available(name).endswith("ASSAY_DATA names no data folder")


@pytest.mark.parametrize("name", ABSENT)
def test_what_the_hub_serves_is_obtainable_and_the_hub_is_not_asked(name, hub):
    assert (obtainable(name) is None) == (CATALOG[name].hub is not None)
    assert available(name) is not None
    assert hub.asked == []


@pytest.mark.parametrize("name", ABSENT)
def test_known_and_here(name, shelf):
    bring(shelf, name, CATALOG[name].kind)
    assert (unknown(name), available(name), obtainable(name)) == (None, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_ones_own_is_known_by_its_name(kind, shelf):
    assert unknown("my set 2.0") is not None
    bring(shelf, "my set 2.0", kind)
    assert catalog.find("my set 2.0").kind == kind
    assert "my set 2.0" in names(kind)
    assert (available("my set 2.0", kind), obtainable("my set 2.0")) == (None, None)
    for other in set(KINDS) - {kind}:
        assert "my set 2.0" not in names(other)
        assert f"'my set 2.0' is no {KINDS[other]} but" in available("my set 2.0", other)


@pytest.mark.parametrize("content", [{}, {"train-0.parquet": b""}, {"a.txt": b"a"}])
def test_a_folder_with_nothing_that_can_be_read_is_known_and_not_available(content, shelf):
    (shelf.folder / "mine").mkdir()
    for file, written in content.items():
        (shelf.folder / "mine" / file).write_bytes(written)
    assert unknown("mine") is None
    assert available("mine").startswith("the data set 'mine' is not on this machine: ")
    assert available("mine").endswith("with one of the columns image, img, sentence, text")
    assert obtainable("mine").endswith(", and the hub is not asked for it")


def test_a_set_without_a_test_split_is_not_available(shelf):
    shelf.images("mine", shelf.arrays((3, 3)), [0] * 6, splits=("train",))
    assert available("mine").endswith(f"{shelf.folder / 'mine'} holds no test-*.parquet")


@pytest.mark.parametrize(
    ("slip", "nearest"),
    [("mnst", "mnist"), ("Fashion-MNIST", "fashion_mnist"), ("PACS", "pacs"), ("agnews", "ag_news")],
)
def test_the_nearest_names_are_told(slip, nearest, shelf):
    assert unknown(slip).startswith(f"unknown data set '{slip}' (allowed: digits, mnist, ")
    assert unknown(slip).endswith(f"or a folder of $ASSAY_DATA); did you mean '{nearest}'?")


def test_folders_of_ones_own_are_among_the_nearest(shelf):
    bring(shelf, "flowers", "images")
    assert "did you mean 'flowers'" in unknown("flower", "images")
    assert "flowers" not in unknown("flower", "text")


@given(st.text())
def test_any_text_gets_an_answer(name):
    answers = unknown(name), available(name), obtainable(name)
    assert all(answer is None or "\n" not in answer for answer in answers)
    assert (answers[0] is None) == (catalog.find(name) is not None)
    if answers[0]:
        assert answers == (answers[0],) * 3


def test_names_that_leave_the_data_folder_are_unknown(shelf):
    bring(shelf, "data/mine", "images")
    bring(shelf, ".hidden", "images")
    for name in ("../data", "data/mine", "..", ".", "", ".hidden", str(shelf.folder / "data")):
        assert unknown(name) is not None, name


def test_a_data_folder_that_is_not_there_has_no_sets(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "nowhere"))
    assert names() == list(CATALOG)
    assert str(tmp_path / "nowhere" / "mnist") in available("mnist")
    assert available("digits") is None


def test_the_first_that_is_here_is_chosen(shelf):
    assert first_available("mnist", "digits") == "digits"
    assert first_available("cifar10", "mnist") == "mnist", "none is here"
    bring(shelf, "fashion_mnist", "images")
    assert first_available("mnist", "fashion_mnist", "digits") == "fashion_mnist"
    bring(shelf, "mnist", "images")
    assert first_available("mnist", "fashion_mnist", "digits") == "mnist"


def test_contents_are_all_files_of_a_set(shelf):
    assert catalog.contents("mnist") == catalog.contents("nothing") == catalog.contents("digits") == {}
    bring(shelf, "mnist", "images")
    bring(shelf, "PACS", "domains")
    assert list(catalog.contents("mnist")) == [
        f"{s}-0000{i}-of-00002.parquet" for s in ("test", "train") for i in (0, 1)
    ]
    assert list(catalog.contents("pacs")) == ["domain/class/0.png"]


def test_asking_imports_nothing_heavy():
    script = "import sys; from assay.data.catalog import available; available('mnist'); "
    script += "print([m for m in ('torch', 'numpy', 'polars', 'PIL') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
