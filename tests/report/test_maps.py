"""Phase maps in the site: from stored sweeps and from summaries, with every cell's numbers and the way to its run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay import lab
from assay.lab.phase_map import Cell, PhaseMap
from assay.report import maps
from assay.report import site as report

FIXTURES = Path(__file__).parents[1] / "lab" / "fixtures"
AXES = {"threshold": [1, 2, 3], "signal": [0.5, 1.5, 2.5, 3.5]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A site from an ordinary run and a sweep, and a smaller one inside it."""
    base = tmp_path_factory.mktemp("maps")
    where = dict(runs=base / "runs", studies=FIXTURES, jobs=1)
    run = lab.run("mapped", "smoke", **where)
    lab.sweep("mapped", AXES, "C1", set={"noise": 0.02}, **where)
    lab.sweep("mapped", {"threshold": [1, 2], "signal": [0.5, 1.5]}, "C1", set={"noise": 0.02}, **where)
    report.write([run], base / "site", formats=(), say=lambda sentence: None)
    return base


def text_of(base, name="mapped.html"):
    return (base / "site" / name).read_text(encoding="utf-8")


def test_a_map_stands_on_the_page_of_its_study_and_in_the_index(made):
    text = text_of(made)
    assert "C1 over threshold and signal" in text
    assert "it holds where the signal exceeds the threshold." in text
    assert "On the predicted side: 100% of 12 cells, 100% of the 12 that are decided." in text
    assert "Map 2" not in text, "a sweep that a larger one contains is not shown again"
    assert 'href="mapped.html#map-1"' in text_of(made, "index.html")
    assert "100% of 12 cells" in text_of(made, "index.html")


def test_every_cell_says_how_to_read_its_run(made):
    text = text_of(made)
    assert text.count("<tr data-cell=") == 12
    found = max(lab.maps("mapped", runs=made / "runs"), key=lambda each: len(each.cells))
    for cell in found.cells:
        assert f"<code>assay claims mapped --run {cell.run}</code>" in text
    assert "assay run mapped --preset smoke --arms" not in text


def test_a_site_of_maps_alone_leads_to_their_runs(made, tmp_path):
    swept = lab.maps("mapped", runs=made / "runs")
    report.write([], tmp_path, formats=(), say=lambda sentence: None, studies=str(FIXTURES), swept=swept)
    assert (tmp_path / "mapped.html").read_text().count("<code>assay claims mapped --run") == 12


def test_a_click_shows_the_cell(made, open_page):
    page = open_page((made / "site" / "mapped.html").as_uri(), width=1300)
    page.locator("#maps").scroll_into_view_if_needed()
    page.locator(".map svg.marks").wait_for()
    page.locator(".map svg.marks .mark-rect path").first.click(force=True)
    picked = page.locator(".picked")
    picked.wait_for()
    assert "threshold = 1, signal = 0.5" in picked.inner_text()
    assert "fails" in picked.inner_text()
    assert "assay claims mapped --run" in picked.inner_text()
    for width in (400, 800):
        narrow = open_page((made / "site" / "mapped.html").as_uri(), width=width)
        assert narrow.evaluate("document.documentElement.scrollWidth") <= width


def test_a_saved_map_is_shown_without_its_runs(made, tmp_path):
    found = max(lab.maps("mapped", runs=made / "runs"), key=lambda each: len(each.cells))
    results = tmp_path / "results"
    results.mkdir()
    found.save(results / "mapped.sweep.C1.json")
    said: list[str] = []
    report.write([], tmp_path / "site", formats=(), say=said.append, results=results, studies=str(FIXTURES))
    assert said == ["mapped: mapped.html, from 1 map"]
    text = (tmp_path / "site" / "mapped.html").read_text()
    assert text.count("<tr data-cell=") == len(found.cells)
    command = (
        "assay run mapped --preset smoke --arms measured,threshold --set noise=0.02 --set threshold=1 --set signal=0.5"
    )
    assert f"<code>{command}</code>" in text, "what is not stored can be run"
    assert (tmp_path / "site" / "assets" / "vega.js").is_file()


def test_a_map_with_parameters_as_a_shell_has_them_is_the_same_map(made):
    (found, *_) = lab.maps("mapped", runs=made / "runs")
    assert found.request["set"] == {"noise": 0.02}
    typed = replace(found, request={**found.request, "set": {"noise": "0.02"}})
    assert maps.distinct([found, typed]) == [found]


def test_a_cell_whose_run_is_in_the_site_leads_there(made):
    found = max(lab.maps("mapped", runs=made / "runs"), key=lambda each: len(each.cells))
    study = lab.find_study("mapped", studies=FIXTURES)
    (shown,) = maps.shown(study, [found], maps.Runs({found.cells[3].run: "mapped.html"}))
    assert [place.here for place in shown.places].index("mapped.html") == 3


def test_along_one_parameter_and_without_a_prediction(tmp_path):
    cells = [Cell({"signal": 1.0}, "holds", 0.5, 0.4, 0.6, 5.0, True, 4), Cell({"signal": 2.0}, "not run", reason="no")]
    found = PhaseMap("mapped", "smoke", "C1", "It is so.", "level > 0", {"signal": [1.0, 2.0]}, cells)
    report.write([], tmp_path, formats=(), say=lambda sentence: None, studies=str(FIXTURES), swept=[found])
    text = (tmp_path / "mapped.html").read_text()
    assert "Each point is a value of the parameter; choose one" in text
    assert "Predicted" not in text
    assert "nothing is predicted" in (tmp_path / "index.html").read_text()
    assert json.loads(json.dumps(found.to_dict()))["over"] == ["signal"]
