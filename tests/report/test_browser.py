"""The site in a real browser, from disk and with the network off."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

PAGES = ("index.html", "coin.html", "gallery.html")

DRAWN = """async () => {
  for (const chart of document.querySelectorAll(".chart")) {
    chart.scrollIntoView();
    while (!["drawn", "failed"].includes(chart.dataset.state)) await new Promise((done) => setTimeout(done, 20));
  }
  return [...document.querySelectorAll(".chart")].map((chart) => chart.dataset.state);
}"""

# Whatever reaches beyond the window, but for what lies in a box of its own that can be scrolled.
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("main *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".wide, .formula"))
  .map((each) => each.outerHTML.slice(0, 120))"""


@pytest.fixture
def look(open_page, site):
    """Open a page of the site from disk, the network being off."""
    return lambda name, **options: open_page((site.folder / name).as_uri(), **options)


@pytest.mark.parametrize("width", [400, 800, 1300])
@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_drawn_and_nothing_is_wider_than_the_window(look, name, width):
    page = look(name, width=width)
    assert set(page.evaluate(DRAWN)) <= {"drawn"}
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_parts_of_a_chart_stand_below_one_another_on_a_telephone(look):
    heights = []
    for width in (400, 1300):
        page = look("gallery.html", width=width)
        page.evaluate(DRAWN)
        heights.append(page.locator("#figure-4 svg.marks").bounding_box()["height"])
    assert heights[0] > 1.5 * heights[1]


def test_dark_pages_have_dark_charts_and_a_switch(look):
    page = look("gallery.html", theme="dark")
    page.evaluate(DRAWN)
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(18, 22, 28)"
    points = page.locator("#figure-4 svg.marks .mark-symbol path").first
    assert points.get_attribute("fill") == "#e8ecf1", "what an author drew in black"
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.wait_for_function("document.querySelector('#figure-4 .mark-symbol path').getAttribute('fill') === 'black'")


def test_claims_are_filtered_by_verdict_and_words(look):
    page = look("gallery.html")
    shown = page.locator(".claim:visible")
    told = page.locator(".filter output")
    assert (shown.count(), told.inner_text()) == (6, "6 claims")
    page.get_by_role("button", name="3 hold").click()
    assert told.inner_text() == "3 of 6 claims"
    page.get_by_role("button", name="3 hold").click()
    page.get_by_role("searchbox").fill("theorem 2")
    assert [each.get_attribute("id") for each in shown.all()] == ["claim-C2"]


def test_a_link_opens_its_claim_even_where_the_filter_hid_it(look):
    page = look("gallery.html")
    page.get_by_role("searchbox").fill("nothing has these words")
    assert page.locator(".claim:visible").count() == 0
    page.locator("#figure-1 figcaption a").first.click()
    claim = page.locator("#claim-C1[open]")  # opened when the page hears of the new address
    claim.get_by_text("seen in").wait_for(state="visible", timeout=10_000)
    claim.get_by_role("link", name="Figure 1").click()
    page.wait_for_url("**#figure-1", timeout=10_000)


def test_a_figures_data_and_drawing_can_be_saved(look, tmp_path):
    page = look("coin.html")
    page.evaluate(DRAWN)
    with page.expect_download() as found:
        page.get_by_role("button", name="Data of Figure 1 as CSV").click()
    rows = list(csv.DictReader(Path(found.value.path()).read_text().splitlines()))
    assert found.value.suggested_filename == "share.csv"
    assert len(rows) == 8
    assert {row["setting"] for row in rows} == {"few", "many"}


def test_a_page_can_be_used_from_the_keyboard(look):
    page = look("gallery.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#claim-C3 > summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#claim-C3").get_attribute("open") is not None
