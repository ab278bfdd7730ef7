"""Benchmarks of the lab itself, at sizes at which they only show that they run."""

from assay import benchmarks
from assay.benchmarks import backends, laptop, startup, store


def test_the_store_reads_back_what_it_wrote():
    small, large = store.run("cpu", store.Plan(units=3, rows=10, million=40, repeats=1))["rows"]
    assert (small["units"], small["rows"], large["units"], large["rows"]) == (3, 30, 1, 40)
    assert min(small["units written per second"], small["write / plain files"], large["rows read per second"]) > 0


def test_start_up_is_a_ratio_to_a_python_that_does_nothing(monkeypatch):
    chosen = ("python", "import torch", "assay --version")
    monkeypatch.setattr(startup, "QUESTIONS", {name: startup.QUESTIONS[name] for name in chosen})
    rows = startup.run("cpu", repeats=1)["rows"]
    assert [row["what"] for row in rows] == list(chosen)
    assert rows[0]["/ python"] == 1


def test_units_that_wait_are_sent_and_counted(monkeypatch):
    monkeypatch.setattr(backends, "PACKAGES", {"loky": "joblib", "absent": "no_such_package"})
    found = backends.run("cpu", backends.Plan(units=4, seconds=0.2, workers=2))
    (row,) = found["rows"]
    assert (row["backend"], row["units"]) == ("loky", 4)
    assert row["overhead / unit"] > -0.5


def test_the_cost_of_a_study_is_that_of_its_run():
    one, every = laptop.run("cpu", "smoke", ["looped-transformers"])["rows"]
    assert (one["study"], every["study"], one["share of all"]) == ("looped-transformers", "all", 1)
    assert one["units"] > 0
    assert {**one, "study": "all"} == every
    assert "laptop" in benchmarks.names()
    assert "laptop" not in benchmarks.chosen(None)
