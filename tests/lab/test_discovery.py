"""Studies are found in the package and in a folder of the user's."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from assay.lab import UserError, discovery, places


def test_one_folder_is_all_it_takes(outside_folder):
    study = discovery.studies(str(outside_folder))["coin"]
    assert (list(study.arms), list(study.claims)) == (["tossed"], ["C1", "N1"])
    assert (list(study.figures), list(study.tables)) == (["share"], ["share"])
    assert study.folder == (outside_folder / "coin").resolve()


def test_studies_of_the_package_stay_beside_those_of_the_folder(outside_folder):
    assert set(discovery.studies()) | {"coin"} == set(discovery.studies(str(outside_folder)))


def test_an_unknown_study_gets_the_nearest_name(outside_folder):
    with pytest.raises(UserError, match=r"unknown study 'coins' .*did you mean 'coin'"):
        discovery.find("coins", str(outside_folder))


def test_two_folders_may_hold_a_study_of_the_same_name(coin_copy, outside_folder):
    code = (outside_folder / "coin" / "study.py").read_text().replace("A biased coin", "Another coin")
    other = coin_copy(study=code)
    assert discovery.find("coin", str(outside_folder)).title == "A biased coin"
    assert discovery.find("coin", str(other)).title == "Another coin"


def test_a_folder_without_studies_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no study"):
        discovery.studies(str(tmp_path))


def test_two_studies_of_one_name_in_a_folder_are_refused(coin_copy):
    folder = coin_copy()
    (folder / "coin").rename(folder / "first")
    (folder / "second").mkdir()
    (folder / "second" / "study.py").write_text((folder / "first" / "study.py").read_text())
    with pytest.raises(UserError, match="two studies are called 'coin'"):
        discovery.studies(str(folder))


def test_a_folder_whose_study_py_defines_no_study_is_refused(coin_copy):
    with pytest.raises(UserError, match=r"does not define a lab\.Study called 'study'"):
        discovery.studies(str(coin_copy(study="x = 1\n", claims="", figures="")))


BROKEN = "raise RuntimeError('half\\na study')\n"


def with_a_broken_one(folder, code=BROKEN):
    (folder / "bad").mkdir()
    (folder / "bad" / "study.py").write_text(code)
    return str(folder)


@pytest.mark.parametrize("name", ["coin", "looped-transformers"])
@pytest.mark.parametrize("code", [BROKEN, "def (:\n", "import no_such_module_here\n", "x = 1\n"])
def test_a_study_that_cannot_be_loaded_stands_in_no_other_ones_way(coin_copy, name, code):
    folder = with_a_broken_one(coin_copy(), code)
    assert discovery.find(name, folder).name == name


def test_a_study_that_cannot_be_loaded_is_named_with_the_place(coin_copy):
    folder = with_a_broken_one(coin_copy())
    for look in (lambda: discovery.studies(folder), lambda: discovery.find("bad", folder)):
        with pytest.raises(UserError, match=r"the study 'bad' cannot be loaded: half a study \(.*study\.py, line 1\)"):
            look()
    with pytest.raises(UserError, match=r"unknown study 'nosuch' .*coin.*; and the study 'bad' cannot be loaded"):
        discovery.find("nosuch", folder)


def test_only_the_named_study_is_loaded(coin_copy):
    folder = coin_copy()
    code = "import pathlib\npathlib.Path(__file__).with_name('loaded').touch()\n"
    with_a_broken_one(folder, code)
    discovery.find("coin", str(folder))
    assert not (folder / "bad" / "loaded").exists()


def test_a_study_is_found_under_its_name_whatever_its_folder_is_called(coin_copy, outside_folder):
    for code in (None, (outside_folder / "coin" / "study.py").read_text().replace('"coin"', '"co" + "in"')):
        folder = coin_copy() if code is None else coin_copy(study=code)
        (folder / "coin").rename(folder / "money")
        assert discovery.find("coin", with_a_broken_one(folder)).name == "coin"


def test_a_second_study_of_the_name_that_is_asked_for_is_refused(coin_copy):
    folder = coin_copy()
    (folder / "second").mkdir()
    (folder / "second" / "study.py").write_text((folder / "coin" / "study.py").read_text())
    with pytest.raises(UserError, match="two studies are called 'coin'"):
        discovery.find("coin", str(folder))


def test_a_second_attempt_says_the_same_and_a_mended_study_loads(coin_copy, outside_folder):
    claims = (outside_folder / "coin" / "claims.py").read_text()
    folder = coin_copy(claims=claims + "\nraise RuntimeError('at the end')\n")
    for _ in range(2):  # its first claims were registered, and must not be in the way
        with pytest.raises(UserError, match=r"the study 'coin' cannot be loaded: at the end"):
            discovery.find("coin", str(folder))
    (folder / "coin" / "claims.py").write_text(claims + "# mended\n")
    assert list(discovery.find("coin", str(folder)).claims) == ["C1", "N1"]


@pytest.fixture
def installed(tmp_path, monkeypatch, outside_folder):
    """A package with a study, offered under an entry point of any value."""
    package = f"mylab_{tmp_path.name}".replace("-", "_")
    (tmp_path / package / "walk").mkdir(parents=True)
    for folder in (package, f"{package}/walk"):
        (tmp_path / folder / "__init__.py").touch()
    for room in ("study", "claims", "figures"):
        text = (outside_folder / "coin" / f"{room}.py").read_text().replace('"coin"', '"walk"')
        (tmp_path / package / "walk" / f"{room}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def offer(value: str) -> None:
        point = EntryPoint("walk", value.replace("mylab", package), places.ENTRY_POINT)
        monkeypatch.setattr(places, "entry_points", lambda group: [point])

    return offer


@pytest.mark.parametrize("value", ["mylab.walk", "mylab.walk.study:study", "mylab.walk.study", "mylab.walk:study"])
def test_an_entry_point_names_the_package_or_the_study_in_it(installed, value):
    installed(value)
    assert list(discovery.find("walk").claims) == ["C1", "N1"]
    assert discovery.studies()["walk"].folder.name == "walk"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package.walk", "No module named 'no_such_package'"),
        ("mylab.nosuch.study:study", "No module named '.*nosuch'"),
        ("mylab.walk.claims:study", "No module named '.*claims.study'"),
    ],
)
def test_a_broken_entry_point_gets_one_sentence_and_blocks_no_other_study(installed, value, reason):
    installed(value)
    with pytest.raises(UserError, match=rf"the entry point 'walk = .*' cannot be loaded: {reason}") as caught:
        discovery.studies()
    assert "\n" not in str(caught.value)
    assert "discovery.py" not in str(caught.value)
    assert "frozen" not in str(caught.value)
    assert discovery.find("looped-transformers").name == "looped-transformers"
