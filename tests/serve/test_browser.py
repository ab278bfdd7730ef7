"""The live lab in a real browser, from a click to a verdict."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request

import pytest

LONG = 60_000  # milliseconds that a worker may take to start on a busy machine

TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("main *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".wide, .spark"))
  .map((each) => each.outerHTML.slice(0, 120))"""

GO = """(view) => {
  delete document.querySelector("main").dataset.shown;
  location.hash = `#/${view}`;
}"""


def answer(address, path):
    with urllib.request.urlopen(f"{address}{path}", timeout=30) as found:
        return json.load(found)


@pytest.fixture(scope="session")
def named(address):
    """The stored runs by name."""
    return {run["name"]: run["id"] for run in answer(address, "api/runs") if run["name"]}


@pytest.fixture
def look(open_page, address):
    """Open a view and wait until it is drawn."""

    def opened(view, **options):
        page = open_page(f"{address}#/{view}", offline=False, **options)
        page.wait_for_selector(".view h1", timeout=LONG)
        page.wait_for_selector("main[data-shown]", timeout=LONG)
        return page

    return opened


def test_a_parameter_is_changed_and_the_study_runs_to_its_verdicts(look):
    page = look("study/swarm")
    page.wait_for_selector(".split", timeout=LONG)
    page.locator("#parameter-level").fill("0.35")
    page.locator("#parameter-level").press("Tab")
    page.wait_for_selector(".field.changed", timeout=LONG)
    page.locator(".changes code", has_text="level = 0.35").wait_for(timeout=LONG)
    page.locator(".split", has_text="3 to compute").wait_for(timeout=LONG)
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_selector(".progress.complete", timeout=LONG)
    page.wait_for_selector(".verdict-card", timeout=LONG)
    shown = page.locator(".verdict-card").all()
    cards = {card.locator(".id").inner_text(): card.locator(".badge").inner_text() for card in shown}
    assert cards == {"C1": "✗ fails", "C2": "✓ holds"}
    assert page.get_by_role("link", name="Watch the neurons").is_visible()


def test_a_named_setting_is_changed_by_itself(look):
    page = look("study/swarm")
    page.wait_for_selector(".split", timeout=LONG)
    page.locator(".arm", has_text="extra").locator("input").check()
    page.get_by_text("setting crowd").click()
    box = page.locator("[id='parameter-crowd.points']")
    assert box.input_value() == "20"
    box.fill("30")
    box.press("Tab")
    page.locator(".changes code", has_text="crowd.points = 30").wait_for(timeout=LONG)
    page.locator(".split", has_text="5 to compute").wait_for(timeout=LONG)  # three of walk, two of extra
    assert page.locator("#parameter-points").input_value() == "6"


def test_a_wrong_value_is_told_and_cannot_be_started(chromium, address):
    page = chromium.new_page()  # a refusal is noted in the console, which is right here
    page.goto(f"{address}#/study/swarm")
    page.wait_for_selector(".split", timeout=LONG)
    page.locator("#parameter-points").fill("1")
    page.locator("#parameter-points").press("Tab")
    page.wait_for_selector(".panel .notice.bad", timeout=LONG)
    assert "points = 1 is not allowed" in page.locator(".panel .notice.bad").inner_text()
    assert page.get_by_role("button", name="Start the run").is_disabled()
    page.get_by_role("button", name="Reset points").click()
    page.wait_for_selector(".split", timeout=LONG)
    assert page.locator("#parameter-points").input_value() == "6"
    page.close()


def test_a_run_is_cancelled_and_another_survives_its_killed_worker(look, address):
    page = look("study/swarm")
    page.wait_for_selector(".split", timeout=LONG)
    page.locator("#parameter-delay").fill("12")
    page.locator("#parameter-delay").press("Tab")
    page.wait_for_selector(".field.changed", timeout=LONG)
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_selector(".metric", timeout=LONG)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector(".progress.cancelled", timeout=LONG)

    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector(".metric", timeout=LONG)
    (running,) = [job for job in answer(address, "api/jobs") if job["state"] == "running"]
    os.kill(running["pid"], signal.SIGKILL)
    page.wait_for_selector(".notice.bad", timeout=LONG)
    assert "was killed" in page.locator(".notice.bad").inner_text()
    assert page.get_by_role("button", name="Resume").is_visible()
    page.goto(f"{address}#/runs")
    page.wait_for_selector(".runs tbody tr")
    assert "interrupted" in page.locator(".runs").inner_text()


def test_two_runs_are_chosen_and_laid_side_by_side(look, named):
    page = look("runs")
    page.get_by_label("Compare low").check()
    page.get_by_label("Compare high").check()
    page.get_by_role("button", name="Compare two runs").click()
    page.wait_for_selector(".differs", timeout=LONG)
    assert page.locator("h1").inner_text() == "1 verdict turned"
    assert page.locator(".differences tbody tr").count() == 1
    row = page.locator(".differs").inner_text()
    assert "level" in row
    assert "0.3" in row
    assert "0.6" in row
    page.get_by_label("all parameters").check()
    assert page.locator(".differences tbody tr").count() == 10
    assert page.locator(".differs").count() == 1
    assert "C1" in page.locator(".versus tbody tr").first.inner_text()


def test_the_explorer_is_scrubbed_and_tells_of_a_neuron(look, named):
    page = look(f"explore/{named['low']}")
    page.wait_for_selector("canvas.disk", timeout=LONG)
    slider = page.get_by_label("Training step")
    ink = "() => document.querySelector('canvas.disk').toDataURL()"
    before = page.evaluate(ink)
    assert page.locator(".step").inner_text() == "step 0"
    slider.focus()
    page.keyboard.press("End")
    assert page.locator(".step").inner_text() == "step 4"
    assert page.evaluate(ink) != before
    assert page.locator(".neuron .value").inner_text() == "100 %"
    # At the end all are at the goal, at the right edge of the disk.
    disk = page.locator("canvas.disk")
    size = disk.bounding_box()["width"]
    disk.hover(position={"x": size - 26, "y": size / 2})
    page.locator(".neuron h2", has_text=re.compile("^Neuron")).wait_for()
    assert page.locator(".neuron .value").inner_text() == "1"
    disk.hover(position={"x": 4, "y": 4})
    page.get_by_label("Number").fill("3")
    page.get_by_label("Number").press("Enter")
    assert page.locator(".neuron h2").inner_text() == "Neuron 3"
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator(".step").inner_text() == "step 0"
    page.get_by_role("button", name="Play").click()
    page.locator(".step", has_text=re.compile("step [1-4]")).wait_for()


def test_a_report_is_written_and_its_figures_are_drawn(look, named):
    page = look(f"run/{named['high']}")
    page.get_by_role("button", name="Open the report").click()
    page.wait_for_url("**/reports/**", timeout=LONG)
    page.wait_for_selector(".chart[data-state=drawn]", timeout=LONG)
    assert page.locator(".chart[data-state=drawn] canvas, .chart[data-state=drawn] svg").count() > 0
    assert page.locator(".chart[data-state=failed]").count() == 0
    page.get_by_role("link", name="Assay", exact=True).click()
    page.wait_for_selector(".verdict-card", timeout=LONG)


def test_a_cell_of_a_map_opens_its_run(look):
    page = look("maps")
    assert page.locator("a.cell").count() == 4
    page.get_by_role("link", name="level = 0.2, points = 4").click()
    page.wait_for_selector(".verdict-card", timeout=LONG)
    assert page.locator(".kicker").first.inner_text().lower() == "cell of a map"


def test_an_index_is_chosen_instead_of_a_text(chromium, address):
    page = chromium.new_page()
    listed = [{"name": "papers", "documents": 3, "tokens": 12345, "layer": 2}]
    told = {"model": "tiny", "missing": None, "indexes": listed}
    page.route("**/api/gemfilter", lambda route: route.fulfill(json=told))
    page.goto(f"{address}#/gemfilter")
    page.wait_for_selector("#index", timeout=LONG)
    assert page.locator("#text").is_visible()
    page.select_option("#index", "papers")
    assert not page.locator("#text, #layer, #rule").filter(visible=True).count()
    assert page.locator("#question").get_attribute("required") is not None
    page.select_option("#index", "")
    assert page.locator("#text").is_visible()
    page.close()


def test_claims_are_filtered(look, named):
    page = look(f"run/{named['low']}")
    assert page.locator(".claim:visible").count() == 3
    page.get_by_role("button", name="1 fail").click()
    assert page.locator(".claim:visible").count() == 1
    page.get_by_role("button", name="1 fail").click()
    page.get_by_label("Filter claims by words").fill("control")
    assert page.locator(".claim:visible").count() == 1


@pytest.mark.parametrize("width", [400, 1300])
def test_nothing_is_wider_than_the_window(look, named, width):
    low, high = named["low"], named["high"]
    views = ["study/swarm", "runs", f"run/{low}", f"compare/{low}/{high}", f"explore/{low}", "maps", "gemfilter"]
    page = look("runs", width=width, theme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    for view in views:
        page.evaluate(GO, view)
        page.wait_for_selector("main[data-shown] .view h1", timeout=LONG)
        assert page.evaluate(TOO_WIDE) == [], view


def test_a_view_can_be_used_from_the_keyboard(look):
    page = look("study/swarm")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.get_by_role("radio", name="smoke").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".preset:has(:checked)", has_text="laptop").wait_for()
    assert page.locator("#parameter-points").input_value() == "12"
