"""Runs that go on: seeds that diverge, chunks that do not fit into memory, workers that die."""

from __future__ import annotations

import os

import polars as pl
import pytest
import torch

from assay.lab import results
from assay.lab.divergence import diverged
from assay.lab.execute import out_of_memory


def newest(store):
    return store.manifest(store.manifest_ids()[-1])


def findings(bench, manifest):
    found = results.findings(bench.store("unstable"), bench.study("unstable"), manifest)
    return {finding.claim.id: finding.judgement for finding in found}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_seed_that_diverges_is_named_and_stops_no_other(bench, jobs):
    result = bench.run("unstable", jobs=jobs, arms="curve")
    kept = newest(bench.store("unstable"))
    assert (kept.status, kept.failures) == ("complete", [])
    (found,) = kept.diverged
    assert found.words == "curve rate=10.0 diverged in seed 1: loss is not finite from step 2 on"
    assert found.words in bench.progress.said
    judged = findings(bench, result.manifest)
    assert judged["C1"].verdict == "holds"
    assert judged["C2"].verdict == "fails"
    assert "1 of 6 seeds have no finite value" in judged["C2"].reason

    again = bench.run("unstable", jobs=jobs, arms="curve")
    assert (again.computed, again.manifest.diverged) == (0, kept.diverged)
    # A run of other seeds from the same units does not have the one that diverged.
    assert bench.run("unstable", arms="curve", seeds=1).manifest.diverged == []


def frame(**columns):
    return pl.DataFrame({"arm": "a", "seed": 0, **columns}, schema_overrides={"value": pl.Float64})


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("metric", "values", "step"),
    [
        ("loss", [1.0, NAN, NAN], 1),
        ("norm", [1.0, 2.0, INF], 2),
        ("norm", [1.0, NAN, 2.0], None),  # it came back
        ("loss", [NAN, 1.0, 2.0], None),  # nothing before the first step
        ("time_reached", [NAN, NAN, NAN], None),  # it was never there
        ("test_loss", [NAN, NAN, NAN], 0),
        ("lossless", [NAN, NAN, NAN], None),
    ],
)
def test_what_counts_as_diverged(metric, values, step):
    found = diverged(frame(step=[0, 1, 2], metric=metric, value=values))
    assert found == ([] if step is None else [{"seed": 0, "metric": metric, "step": step}])


def test_a_final_loss_without_steps_and_the_metric_that_showed_it_first():
    alone = diverged(frame(step=pl.Series([None], dtype=pl.Int64), metric="loss", value=[NAN]))
    assert alone == [{"seed": 0, "metric": "loss", "step": None}]
    both = pl.concat(
        [
            frame(step=[0, 1, 2], metric="loss", value=[1.0, 1.0, NAN]),
            frame(step=[0, 1, 2], metric="norm", value=[1.0, NAN, NAN]),
        ]
    )
    assert diverged(both) == [{"seed": 0, "metric": "norm", "step": 1}]


@pytest.mark.parametrize("jobs", [1, 2])
def test_seeds_that_do_not_fit_are_computed_in_halves(bench, make_bench, tmp_path, jobs):
    whole = make_bench(tmp_path / "whole")
    expected = whole.frame("unstable", whole.run("unstable", arms="hungry", overrides={"bad": "2"}).manifest)
    result = bench.run("unstable", jobs=jobs, arms="hungry", overrides={"fits": "2"})
    kept = newest(bench.store("unstable"))
    assert (kept.status, kept.failures) == ("complete", [])
    assert [unit.seeds for unit in kept.units if unit.point["size"] == "large"] == [[0, 1], [2], [3, 4], [5]]
    assert sum("ran out of memory" in sentence for sentence in bench.progress.said) == 3
    assert bench.frame("unstable", result.manifest).equals(expected)
    loaded = bench.load("unstable", result.manifest)
    assert loaded.array("weights", arm="hungry", size="large").shape == (6, 3)
    again = bench.run("unstable", jobs=jobs, arms="hungry", overrides={"fits": "2"})
    assert (again.computed, again.manifest.units) == (0, kept.units)


def test_one_seed_that_does_not_fit_fails_alone(bench):
    result = bench.run("unstable", arms="hungry", overrides={"fits": "0"})
    assert sorted(failure.unit.takes for failure in result.failures) == [(seed,) for seed in range(6)]
    assert (result.computed, result.manifest.status) == (1, "failed")


def test_one_seed_that_does_not_fit_beside_others_is_tried_again_alone(bench):
    alone = {"arms": "crowded", "seeds": 2, "overrides": {"marker": str(os.getpid())}}
    result = bench.run("unstable", jobs=2, **alone)
    assert (result.failures, result.computed, result.manifest.status) == ([], 6, "complete")
    said = [sentence for sentence in bench.progress.said if "tried again alone" in sentence]
    assert len(said) == 2
    never = bench.run("unstable", jobs=2, arms="crowded", seeds=2, overrides={"marker": "0"})
    assert (len(never.failures), never.manifest.status) == (2, "failed")


def test_memory_that_ran_out_is_known_by_its_errors():
    assert out_of_memory(torch.OutOfMemoryError("x"))
    assert out_of_memory(MemoryError())
    assert out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"))
    assert out_of_memory(RuntimeError("CUDNN_STATUS_ALLOC_FAILED"))
    assert out_of_memory(RuntimeError("CUDA error: out of memory"))  # torch.AcceleratorError, a RuntimeError
    assert not out_of_memory(RuntimeError("shapes"))


def test_a_worker_that_is_killed_costs_its_unit_a_second_attempt(bench, tmp_path):
    marker = tmp_path / "once"
    marker.touch()
    result = bench.run("unstable", jobs=2, arms="deadly", overrides={"marker": str(marker)})
    assert (result.manifest.status, result.computed) == ("complete", 5)
    assert any("a worker died" in sentence for sentence in bench.progress.said)


def test_a_unit_that_kills_every_worker_fails_alone(bench):
    result = bench.run("unstable", jobs=2, arms="deadly", overrides={"marker": "always"})
    (failure,) = result.failures
    assert (failure.unit.point, result.computed) == ({"k": 2}, 4)
    assert failure.error.startswith("the process that computed it was killed")
