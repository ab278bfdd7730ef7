"""Studies are found in the package and in a folder of the user's."""

from __future__ import annotations

import pytest

from assay.lab import UserError, discovery


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
