"""Tables of pages from the summaries they name."""

import json

from assay.report.tables import refresh

RESULT = {"rows": [{"tokens": 8, "speed up": 2.5, "GiB": 1.0}], "machine": "a machine", "versions": "assay 0"}


def test_a_benchmark_has_all_columns_or_those_named(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps(RESULT))
    page = "<!-- bench: bench.json -->\nold\n<!-- end -->\n<!-- bench: bench.json only GiB,speed_up -->\n<!-- end -->\n"
    made = refresh(page, tmp_path)
    assert "| tokens | speed up | GiB |" in made
    assert "| GiB | speed up |\n| --- | --- |\n| 1.0 | 2.5 |" in made
    assert "old" not in made
    assert refresh(made, tmp_path) == made
