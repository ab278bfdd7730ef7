"""The site: whole, escaped, and independent of any network."""

from __future__ import annotations

import dataclasses
import json
import lzma
import math
import re
import shutil
from html.parser import HTMLParser

import altair as alt
import polars as pl
import pytest

from assay.lab import UserError
from assay.report import charts, downloads, overview
from assay.report import page as pages
from assay.report import site as report

PAGES = ("index.html", "coin.html", "gallery.html")
SIGNATURES = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


class Parts(HTMLParser):
    """What a page loads, links to and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        if tag == "a":
            self.links.append(values["href"])
        elif tag != "math":
            self.loads += [values[name] for name in ("src", "href", "data") if name in values]


def specs(text: str) -> list[dict]:
    found = re.findall(r'<script type="application/zlib">(.*?)</script>', text, re.S)
    return [json.loads(charts.unpacked(each)) for each in found]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_nothing_from_elsewhere(site, page):
    parts = Parts(site.text(page))
    assert all("//" not in address for address in parts.loads)
    assert not {"iframe", "object", "base", "style"} & set(parts.tags)
    for sheet in (site.folder / "assets").glob("*.css"):
        assert not re.search(r"@import|url\(", sheet.read_text())


@pytest.mark.parametrize("page", PAGES)
def test_every_link_resolves(site, page):
    parts = Parts(site.text(page))
    assert len(set(parts.ids)) == len(parts.ids)
    for address in [*parts.links, *parts.loads]:
        name, _, anchor = address.partition("#")
        assert (site.folder / (name or page)).is_file(), address
        if anchor:
            assert anchor in Parts(site.text(name or page)).ids, address


def test_every_claim_is_on_its_page_and_every_page_on_the_index(site):
    for page, claims in {"coin.html": ["C1", "N1"], "gallery.html": ["C1", "C2", "C3", "C4", "C5", "N1"]}.items():
        ids, links = Parts(site.text(page)).ids, Parts(site.text("index.html")).links
        for claim in claims:
            assert f"claim-{claim}" in ids
        assert page in links


def test_verdicts_are_words_and_not_only_colours(site):
    text = site.text("gallery.html")
    for verdict in ("2 hold", "2 fail", "1 not run"):
        assert f"</span> {verdict}</span>" in text
    assert "3 of 3 seeds have no finite value" in text
    assert "the arm &#39;extra&#39; did not run" in text
    claims = text.split('id="verdicts"')[1]
    assert claims.count('<svg class="interval"') == 4
    dots = [row.split("</g>")[0].count("<circle") for row in claims.split('class="seeds"')[1:]]
    assert dots == [3] * 4, "a dot per seed and interval"


def test_markup_in_a_study_stays_text(site):
    for page in ("gallery.html", "index.html"):
        text = site.text(page)
        assert "<b>bold</b>" not in text
        assert "One of &lt;b&gt;everything&lt;/b&gt;" in text
    assert "&lt;b&gt;bold&lt;/b&gt; claim &amp; more" in site.text("gallery.html")


def test_corrections_and_the_papers_values_are_marked(site):
    text = site.text("gallery.html")
    assert "<dt>the source prints</dt><dd>0.98</dd>" in text
    assert "<dt>the source prints</dt><dd>positive in ten of ten</dd>" in text
    section = text.split('id="corrections"')[1].split("</section>")[0]
    assert "for all n, without &lt;any&gt; condition" in section
    assert "claim-C2" in section
    assert "claim-C1" not in section
    assert 'id="corrections"' not in site.text("coin.html")


def test_headlines_stand_beside_the_figures_that_show_them(site):
    story = site.text("gallery.html").split('id="headlines"')[1].split("</section>")[0]
    beside, below = story.split('<div class="chapter ')[1:]
    assert beside.startswith("beside")
    assert 'href="#claim-C1"' in beside
    assert 'id="figure-1"' in beside
    assert below.startswith("below"), "a wide figure stands under its claims"
    assert 'id="figure-4"' in below
    assert site.text("gallery.html").count('id="figure-1"') == 1


def test_measurements_can_be_taken_along(site):
    exact = pl.read_parquet(site.folder / "gallery" / "measurements.parquet")
    text = pl.read_csv(lzma.decompress((site.folder / "gallery" / "measurements.csv.xz").read_bytes()))
    assert exact.shape == text.shape
    assert text["value"].to_list()[0] == pytest.approx(exact["value"].to_list()[0], rel=1e-4)


def test_numbers_are_rounded_to_seven_digits_whatever_their_size():
    values = [
        0.0,
        -1 / 3,
        1e300 / 3,
        1e-300 / 7,
        12345678.9,
        math.inf,
        -math.inf,
        math.nan,
        1.7976931348623157e308,
        5e-324,
    ]
    found = downloads.rounded(pl.Series("value", values)).to_list()
    assert found[:5] == pytest.approx(values[:5], rel=6e-8)
    assert found[1:5] != values[1:5]
    assert found[5:7] == values[5:7]
    assert math.isnan(found[7])
    assert found[8] == values[8], "what would round to infinity stays"
    whole = pl.Series("value", [1, 2])
    assert downloads.rounded(whole) is whole


def test_smoke_runs_say_so_and_are_not_counted(site):
    assert "never to be quoted" in site.text("coin.html")
    assert "never to be quoted" not in site.text("gallery.html")
    assert "2 studies, 1 of them a smoke run that is not counted here" in site.text("index.html")


def test_figures_are_exported_and_a_missing_arm_leaves_a_note(site):
    for name in ("values", "holes", "large", "side-by-side"):
        for kind, start in SIGNATURES.items():
            assert (site.folder / "gallery" / f"{name}.{kind}").read_bytes().startswith(start)
    assert not list((site.folder / "gallery").glob("absent.*"))
    assert "not drawn: the arm &#39;extra&#39; did not run" in site.text("gallery.html")
    assert any("absent not drawn" in sentence for sentence in site.said)


def test_charts_carry_their_data_and_the_site_one_script(site):
    text = site.text("gallery.html")
    assert len(text) < 300_000
    assert "vegaEmbed=" in (site.folder / "assets" / "vega.js").read_text()
    assert text.count("assets/vega.js") == 1
    assert "assets/vega.js" not in site.text("index.html")
    charts = {spec["description"]: spec for spec in specs(text)}
    values, holes = charts["Values <of> each setting."], charts["A curve of which nothing is finite."]
    large = charts["More rows than Altair takes by default."]
    (columns,) = (data["columns"] for data in large["datasets"].values())
    assert columns["x"] == list(range(6000))
    assert columns["y"][:2] == [0, 0.142857]
    (columns,) = (data["columns"] for data in holes["datasets"].values())
    assert set(columns["value"]) == {None}
    assert holes["config"]["axis"]["gridColor"] == "red"
    assert values["config"]["axis"]["gridColor"] != "red"
    assert text.count('data-renderer="canvas"') == 1


def test_tables_mark_the_sources_column_and_have_a_file(site):
    text = site.text("gallery.html")
    assert '<th scope="col" class="number theirs ">paper</th>' in text
    assert re.findall(r'<td class="number theirs ">(.*?)</td>', text) == ["0.5", "", "0.98", "1"]
    assert "The first 200 of 500 rows" in text
    assert len((site.folder / "gallery" / "long.csv").read_text().splitlines()) == 501
    assert '"1, 2"' in (site.folder / "gallery" / "methods.csv").read_text()
    assert not (site.folder / "gallery" / "nothing.csv").exists()


def test_the_run_is_told_in_full(site):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", site.text("gallery.html").split('id="arms"')[1]))
    assert "setting small, usual k 2, 1" in text
    assert "optional; add it with --arms +extra" in text
    assert "skipped: it needs a GPU" in text
    assert "drawn setting = small, k = 2 learning_rate 0.2" in text
    assert "level 0.4 override where &lt;i&gt;it&lt;/i&gt; settles" in text
    assert "size 4 preset how many" in text
    assert "small size = 2 override" in text
    assert "assay run gallery --preset laptop --set level=0.4 --set small.size=2" in text
    assert "Python 3" in text
    assert "preset laptop with level=0.4, small.size=2 · 3 seeds · cpu" in site.text("index.html")


def test_nobodys_altair_settings_change(site):
    assert alt.theme.active == "default"
    assert alt.data_transformers.active == "default"
    assert alt.data_transformers.options == {}


@pytest.mark.parametrize(
    ("text", "formats"),
    [("svg,png", ("svg", "png")), ("pdf", ("pdf",)), (" PNG, png ", ("png",)), ("none", ())],
)
def test_formats(text, formats):
    assert report.parse_formats(text) == formats


@pytest.mark.parametrize("text", ["jpg", "svg,none", "", "svg png"])
def test_formats_refused(text):
    with pytest.raises(UserError, match="allowed: svg, png, pdf, or none alone"):
        report.parse_formats(text)


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="cannot write the report to"):
        report.write([], tmp_path / "taken", formats=(), say=print)


def test_a_bug_in_a_figure_is_named_and_spares_the_rest(tmp_path, run_study, coin_folder):
    studies = tmp_path / "studies"
    shutil.copytree(coin_folder, studies / "coin", ignore=shutil.ignore_patterns("__pycache__"))
    broken = '\n\n@study.figure("bent", caption="x")\ndef bent(m):\n    raise KeyError("<no such column>")\n'
    with (studies / "coin" / "figures.py").open("a") as file:
        file.write(broken)
    chosen = [run_study(studies, "coin", tmp_path / "runs", preset="smoke")]
    with pytest.raises(report.BrokenExhibit, match="'bent' of coin") as caught:
        report.write(chosen, tmp_path / "out", formats=(), say=print)
    assert isinstance(caught.value.__cause__, KeyError)
    text = (tmp_path / "out" / "coin.html").read_text()
    assert "because of an error in the study: KeyError: &#39;&lt;no such column&gt;&#39;" in text
    assert "claim-C1" in text
    assert (tmp_path / "out" / "index.html").is_file()


def test_a_run_with_units_missing_says_so(tmp_path, run_study, coin_folder):
    run = run_study(coin_folder.parent, "coin", tmp_path / "runs", preset="smoke")
    run.store.discard(run.manifest.units[0].key)
    report.write([run], tmp_path / "out", formats=(), say=print)
    text = (tmp_path / "out" / "coin.html").read_text()
    assert "1 of 2 units of this run are not stored" in text


def test_a_run_that_diverged_is_named_on_its_page_and_in_the_index(tmp_path, run_study, coin_folder):
    unstable = coin_folder.parents[1] / "fixtures"
    run = run_study(unstable, "unstable", tmp_path / "runs", preset="smoke", arms="curve")
    report.write([run], tmp_path / "site", formats=(), say=lambda sentence: None)
    words = "curve rate=10.0 diverged in seed 1: loss is not finite from step 2 on; what it measured then counts as"
    for page in ("unstable.html", "index.html"):
        assert words in (tmp_path / "site" / page).read_text(encoding="utf-8")


def test_the_command_that_makes_a_run_again_has_what_was_given(tmp_path, run_study, coin_folder):
    def command(**request):
        run = run_study(coin_folder.parent, "coin", tmp_path / "runs", preset="smoke", **request)
        return overview.command(run.study, run.manifest)

    start = "assay run coin --preset smoke"
    assert command() == start
    assert command(seeds=4) == f"{start} --seeds 4"  # also where it is the preset's own number
    assert command(seeds=5, arms="+tossed") == f"{start} --seeds 5 --arms +tossed"
    assert command(point={"setting": "few"}, first_seed=7) == f"{start} --point setting=few --first-seed 7"


def test_changed_parameters_are_noticed_and_resolved_ones_are_not(tmp_path, run_study, coin_folder):
    studies = tmp_path / "studies"
    shutil.copytree(coin_folder, studies / "coin", ignore=shutil.ignore_patterns("__pycache__"))
    path = studies / "coin" / "study.py"
    field = '    images: str = Field("auto", description="resolved by the machine")\n'
    validator = (
        '\n    @pydantic.field_validator("images")\n    @classmethod\n    def found(cls, value):\n'
        '        return os.environ["COIN_IMAGES"] if value == "auto" else value\n'
    )
    text = path.read_text().replace("\n\n\nstudy = ", f"\n{field}{validator}\n\nstudy = ")
    path.write_text(text.replace("from pydantic", "import os\n\nimport pydantic\nfrom pydantic", 1))

    def edited(run, **update):
        return dataclasses.replace(run, manifest=run.manifest.model_copy(update=update))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COIN_IMAGES", "mnist")
        run = run_study(studies, "coin", tmp_path / "runs", preset="smoke")
        assert run.manifest.params["images"] == "mnist"
        patch.setenv("COIN_IMAGES", "digits")
        assert pages._notices(run) == []
        assert run.results.params.images == "mnist"
        for changed in ({"tosses": 401}, {"depth": 3}):
            (notice,) = pages._notices(edited(run, params={**run.manifest.params, **changed}))
            assert "parameters have changed" in notice
        renamed = edited(run, set={"depth": "3"}, params={**run.manifest.params, "depth": 3})
        (notice,) = pages._notices(renamed)
        assert "parameters have changed" in notice
        report.write([renamed], tmp_path / "out", formats=(), say=print)
    assert "no longer a parameter of the study" in (tmp_path / "out" / "coin.html").read_text()
