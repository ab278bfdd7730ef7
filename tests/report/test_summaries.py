"""The site from summaries: presets and data side by side, benchmarks, and what cannot be read."""

from __future__ import annotations

import json

import pytest

from assay.lab import Region, UserError
from assay.lab import results as lab_results
from assay.report import site as report
from assay.report import summaries

CLAIM = {
    "study": "coin",
    "id": "C1",
    "headline": True,
    "statement": "With a thousand tosses the share of heads is near the bias.",
    "source": "the law of large numbers",
    "verdict": "holds",
    "estimate": 0.01,
    "low": -0.02,
    "high": 0.03,
    "criterion": "share − 0.6 in [-0.05, 0.05]",
    "seeds": 8,
    "preset": "laptop",
    "set": {},
}
SUMMARY = {
    "study": "coin",
    "preset": "laptop",
    "set": {},
    "params": {"bias": 0.6, "tosses": 1000},
    "data": [],
    "device": "cpu",
    "machine": "a machine",
    "versions": "assay 0",
    "commit": "abc",
    "seeds": 8,
    "started": "2026-01-02T03:04:05+00:00",
}
BENCH = {"benchmark": "speed", "about": "How fast.", "device": "cpu", "machine": "a machine", "versions": "assay 0"}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()

    def save(name, **parts):
        (folder / f"{name}.json").write_text(json.dumps(parts))

    save("coin.laptop", **SUMMARY, claims=[CLAIM, CLAIM | {"id": "C2", "verdict": "not run", "estimate": None}])
    save("coin.laptop.part", **SUMMARY, arms=["tossed"], claims=[CLAIM | {"verdict": "fails"}, CLAIM | {"id": "C2"}])
    other = CLAIM | {"verdict": "undecided", "statement": "It was worded otherwise.", "seeds": 16}
    save("coin.paper.mnist", **SUMMARY | {"preset": "paper", "data": ["mnist"], "seeds": 16}, claims=[other])
    save("bench.speed", **BENCH, rows=[{f"c{i}": i for i in range(12)}, {f"c{i}": -i for i in range(12)}])
    return folder


def test_parts_of_a_preset_are_one_and_a_whole_run_comes_first(results):
    sides, (bench,), _ = summaries.read(results)
    laptop, paper = sides["coin"]
    assert (laptop.label, paper.label) == ("laptop", "paper · mnist")
    assert {id: finding.judgement.verdict for id, finding in laptop.findings.items()} == {"C1": "holds", "C2": "holds"}
    assert laptop.findings["C1"].judgement.region == Region(-0.05, 0.05)
    assert bench.head == ["c0", 0, 0], "more columns than a page has room for stand as rows"


def test_a_whole_run_without_data_does_not_take_the_name_of_a_parts_data(results):
    part = SUMMARY | {"arms": ["read"], "data": ["ag_news"]}
    (results / "coin.laptop.ag_news.read.json").write_text(json.dumps({**part, "claims": [CLAIM | {"id": "C3"}]}))
    sides, _, _ = summaries.read(results)
    assert [side.label for side in sides["coin"]] == ["laptop", "laptop · ag_news", "paper · mnist"]
    assert list(sides["coin"][1].findings) == ["C3"]


def test_a_page_from_summaries_sets_the_runs_side_by_side(results, tmp_path, coin_folder):
    said = []
    outside = str(coin_folder.parent)
    index = report.write([], tmp_path / "out", formats=(), say=said.append, results=results, studies=outside)
    assert said == ["coin: coin.html, from 2 summaries"]
    text = (tmp_path / "out" / "coin.html").read_text()
    assert "<em>It was worded otherwise.</em>" in text
    table = text.split('<table class="data sides">')[1].split("</table>")[0]
    assert '<th scope="col">laptop</th><th scope="col">paper · mnist</th>' in table
    row = table.split("<tr>")[2]
    assert row.startswith('<th scope="row"><a href="#claim-C1">C1</a></th><td class="holds">')
    assert ">? undecided</span>" in row
    assert "[−0.020, 0.030] (stated in other words)" in row
    assert "? undecided" in text
    assert "assay run coin --preset laptop" in text
    assert not (tmp_path / "out" / "assets" / "vega.js").exists()
    front = index.read_text()
    assert front.count('<div class="line">') == 2
    assert "How fast." in front


def test_a_claim_that_a_study_dropped_is_counted_nowhere(results, tmp_path, coin_folder):
    for name in ("coin.laptop", "coin.paper.mnist"):
        document = json.loads((results / f"{name}.json").read_text())
        document["claims"].append(CLAIM | {"id": "C99", "verdict": "fails"})
        (results / f"{name}.json").write_text(json.dumps(document))
    outside = str(coin_folder.parent)
    index = report.write([], tmp_path / "out", formats=(), say=lambda words: None, results=results, studies=outside)
    assert "C99" not in (tmp_path / "out" / "coin.html").read_text()
    assert "1 fails" not in index.read_text()
    assert "1 fail" not in index.read_text()


def test_fresh_seeds_are_told_of_where_somebody_looked(results, tmp_path, coin_folder):
    stood = [CLAIM | {"confirmed": True}, CLAIM | {"id": "N1", "headline": False, "confirmed": False}]
    (results / "coin.laptop.json").write_text(json.dumps(SUMMARY | {"claims": stood}))
    index = report.write([], tmp_path / "out", formats=(), say=print, results=results, studies=str(coin_folder.parent))
    words = "1 of 2 confirmed"
    assert index.read_text().count(words) == 1, "nobody confirmed the paper's"
    page = (tmp_path / "out" / "coin.html").read_text()
    assert words in page
    assert '8 seeds</span><span class="what"> · confirmed on fresh seeds' in page


def test_faults_stand_among_the_benchmarks(results, tmp_path, coin_folder):
    seen = {"killed": {"times": 3, "killed": 2, "complete": 1, "missed": 4}, "disk full": {"times": 0, "missed": 1}}
    about = {"about": "Faults.", "machine": "a machine", "versions": "assay 0", "total": 3, "wrong": []}
    (results / "chaos.json").write_text(json.dumps({**about, "faults": seen}))
    faults = summaries.read(results)[1][-1]
    assert faults.rows == [["killed", 3, "2 killed, 1 complete"], ["disk full", 0, ""]]
    index = report.write([], tmp_path / "out", formats=(), say=print, results=results, studies=str(coin_folder.parent))
    assert "Faults. None of 3 left anything wrong behind." in index.read_text()


def test_a_run_has_the_summaries_of_other_runs_beside_it(results, tmp_path, run_study, coin_folder):
    run = run_study(coin_folder.parent, "coin", tmp_path / "runs")
    report.write([run], tmp_path / "out", formats=(), say=print, results=results)
    text = (tmp_path / "out" / "coin.html").read_text()
    assert "paper · mnist" in text
    assert 'data-of="figure-1"' in text
    assert text.count('<th scope="row">laptop</th>') == 0, "the run itself is no other run"


def test_a_run_on_larger_data_is_called_after_them():
    assert summaries.label("laptop", ["digits"]) == "laptop"
    assert summaries.label("laptop", ["digits", "mnist"]) == "laptop · mnist"


def test_a_summary_of_an_unknown_study_is_left_out_and_said(results, tmp_path, coin_folder):
    (results / "x.laptop.json").write_text(json.dumps(SUMMARY | {"study": "unheard-of", "claims": []}))
    said = []
    outside = str(coin_folder.parent)
    report.write([], tmp_path / "out", formats=(), say=said.append, results=results, studies=outside)
    assert any(sentence.startswith("unheard-of: left out") for sentence in said)


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UserError, match="no summaries"):
        summaries.read(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a\.json cannot be read"):
        summaries.read(tmp_path)
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(UserError, match="no summary of a run"):
        summaries.read(tmp_path)


def test_a_saved_summary_keeps_every_seeds_number(tmp_path, run_study, coin_folder):
    run = run_study(coin_folder.parent, "coin", tmp_path / "runs")
    path = lab_results.save_summary(tmp_path / "results", run.store, run.study, run.manifest, list(run.claims))
    (side,) = summaries.read(path.parent)[0]["coin"]
    assert len(side.findings["C1"].judgement.by_seed) == 8
