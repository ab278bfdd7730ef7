"""Tables of pages from the summaries they name."""

import json

from assay.report.tables import refresh, rows_of

RESULT = {"rows": [{"tokens": 8, "speed up": 2.5, "GiB": 1.0}], "machine": "a machine", "versions": "assay 0"}


CLAIM = {
    "id": "C1a",
    "statement": "Heads and tails are equally likely.",
    "verdict": "holds",
    "estimate": 0.5,
    "low": 0.48,
    "high": 0.52,
    "criterion": "share of heads in [0.45, 0.55]",
}
SUMMARY = {"study": "coin", "preset": "laptop", "data": ["digits"], "device": "cpu", "seeds": 8, "confirmed_on": "1–8"}


def test_headlines_say_what_stood_and_which_run_they_are_of(tmp_path):
    lost = CLAIM | {"id": "C1b", "verdict": "fails", "confirmed": False}
    claims = [CLAIM | {"headline": True, "confirmed": True}, lost, lost | {"id": "C1c", "verdict": "undecided"}]
    (tmp_path / "coin.json").write_text(json.dumps(SUMMARY | {"claims": claims}))
    made = refresh("<!-- headlines: coin.json -->\n<!-- end -->\n", tmp_path)
    row = "| C1a | Heads and tails are equally likely. | **holds**, confirmed | 0.5 [0.48, 0.52] |"
    assert row in made
    assert "| C1b |" not in made
    assert "2 more claims: 1 fails, 1 undecided. 2 of all (C1b, C1c) did not stand on seeds 1–8." in made
    assert "(Preset `laptop` on digits, 8 seeds, cpu.)" in made


def test_headlines_say_how_many_seeds_agreed_and_when_an_interval_excludes_the_target(tmp_path):
    equal = {"method": "equal", "low": None, "high": None, "decided_by": "8 of 8 seeds, at least 0.69 of all"}
    noted = CLAIM | {"id": "C1b", "headline": True, "note": "the interval excludes 0.5"}
    claims = [CLAIM | equal | {"headline": True}, noted]
    (tmp_path / "coin.json").write_text(json.dumps(SUMMARY | {"claims": claims}))
    made = refresh("<!-- headlines: coin.json -->\n<!-- end -->\n", tmp_path)
    assert "| 0.5 (8 of 8 seeds, at least 0.69 of all) |" in made
    assert "| share of heads in [0.45, 0.55]; the interval excludes 0.5 |" in made


def test_a_run_on_other_data_stands_beside_with_what_moved(tmp_path):
    (tmp_path / "results").mkdir()
    undecided = CLAIM | {"id": "C1b", "verdict": "undecided"}
    absent = CLAIM | {"id": "C1c", "verdict": "not run", "estimate": None}
    first = SUMMARY | {"claims": [CLAIM, CLAIM | {"id": "C1b"}, CLAIM | {"id": "C1c"}]}
    second = SUMMARY | {"data": ["mnist"], "claims": [CLAIM, undecided, absent]}
    for name, summary in (("a", first), ("b", second)):
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(summary))
    made = refresh("<!-- beside: results/a.json results/b.json -->\n<!-- end -->\n", tmp_path)
    words = "On mnist in place of digits 1 of 2 verdicts are the same. The others: C1b holds → undecided (0.5)."
    assert f"{words} (Preset `laptop` on mnist, 8 seeds, cpu.)" in made
    assert "C1c" not in made
    assert refresh(made, tmp_path) == made


def test_pieces_of_another_preset_stand_beside_as_one_run(tmp_path):
    (tmp_path / "results").mkdir()
    piece = SUMMARY | {"preset": "paper", "arms": ["a"]}
    missing = CLAIM | {"id": "C1b", "verdict": "not run", "estimate": None}
    failed, old = CLAIM | {"id": "C1b", "verdict": "fails"}, CLAIM | {"id": "C1c", "statement": "In other words."}
    first = SUMMARY | {"claims": [CLAIM, CLAIM | {"id": "C1b"}, CLAIM | {"id": "C1c"}]}
    (tmp_path / "results" / "a.laptop.json").write_text(json.dumps(first))
    (tmp_path / "results" / "a.paper.x.json").write_text(json.dumps(piece | {"claims": [CLAIM, missing]}))
    failed, old = failed | {"seeds": 100, "estimate": None}, old | {"seeds": 3}
    other = piece | {"device": "cuda", "seeds": 100, "claims": [failed, old]}
    (tmp_path / "results" / "a.paper.y.json").write_text(json.dumps(other))
    made = refresh("<!-- beside: results/a.laptop.json results/a.paper*.json -->\n<!-- end -->\n", tmp_path)
    words = "At `paper` in place of `laptop` 1 of 2 verdicts are the same. The others: C1b holds → fails."
    assert f"{words} 1 more claim was stated in other words then." in made
    assert "(Preset `paper` on digits, 3 to 100 seeds, cpu, cuda.)" in made


def test_a_claim_that_was_stated_anew_is_taken_from_the_newest_piece():
    old, new = {"started": "2026-01-01", "arms": ["a"]}, {"started": "2026-02-02", "arms": ["b"]}
    restated = CLAIM | {"statement": "In other words.", "verdict": "fails"}
    whole = {"started": "2026-01-15", "claims": [CLAIM, CLAIM | {"id": "C1b", "verdict": "not run"}]}
    same = CLAIM | {"verdict": "fails"}
    assert rows_of([new | {"claims": [restated]}, whole])["C1a"] is restated
    assert rows_of([old | {"claims": [restated]}, whole])["C1a"] is CLAIM, "an older statement takes no place"
    assert rows_of([new | {"claims": [same]}, whole])["C1a"] is CLAIM, "of equal statements the whole run's is taken"
    other_quantity = CLAIM | {"criterion": "share of tails in [0.45, 0.55]"}
    assert rows_of([new | {"claims": [other_quantity]}, whole])["C1a"] is other_quantity
    filled = CLAIM | {"id": "C1b"}
    assert rows_of([whole, old | {"claims": [filled]}])["C1b"] is filled
    older = old | {"claims": [CLAIM]}
    assert rows_of([new | {"claims": [same]}, older])["C1a"] is same, "of two parts the newest is taken"
    assert rows_of([new | {"claims": [CLAIM | {"verdict": "not run"}]}, older])["C1a"] is CLAIM


def test_a_scoreboard_has_a_row_per_study(tmp_path):
    claims = [CLAIM | {"headline": True, "confirmed": True}, CLAIM | {"verdict": "fails", "confirmed": False}, CLAIM]
    for name in ("b", "a"):
        (tmp_path / f"{name}.laptop.json").write_text(json.dumps(SUMMARY | {"study": name, "claims": claims}))
    made = refresh("<!-- scoreboard: *.laptop.json -->\n<!-- end -->\n", tmp_path)
    rows = [line for line in made.splitlines() if line.startswith(("| a", "| b"))]
    assert rows == [f"| {name} | 1 holds | 3: 2 holds, 1 fails | 1 of 2 |" for name in ("a", "b")]


def test_a_benchmark_has_all_columns_or_those_named(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps(RESULT))
    page = "<!-- bench: bench.json -->\nold\n<!-- end -->\n<!-- bench: bench.json only GiB,speed_up -->\n<!-- end -->\n"
    made = refresh(page, tmp_path)
    assert "| tokens | speed up | GiB |" in made
    assert "| GiB | speed up |\n| --- | --- |\n| 1.0 | 2.5 |" in made
    assert "old" not in made
    assert refresh(made, tmp_path) == made
