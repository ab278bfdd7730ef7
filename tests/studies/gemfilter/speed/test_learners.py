"""What is timed is what the methods do, and what is held is counted."""

import pytest
import torch

pytest.importorskip("transformers", reason="the random models are of a class of transformers")

from assay.studies.gemfilter.speed import theory
from assay.studies.gemfilter.speed.learners import Held, speed_rows


@pytest.fixture(scope="module")
def rows():
    return speed_rows(0, 128, 384, 48, 3, 1, "cpu")


def values(rows, metric):
    return {next(iter(row.columns.values()), ""): row.metrics[metric] for row in rows if metric in row.metrics}


def test_every_method_is_timed_and_compared(rows):
    for metric in ("prefill_seconds", "token_seconds"):
        assert set(values(rows, metric)) == {"full", "snapkv", "gemfilter"}
        assert min(values(rows, metric).values()) > 0
    assert set(values(rows, "prefill_ratio")) == {"full", "snapkv", "itself"}
    share = values(rows, "expected_share")[""]
    for other in ("full", "snapkv"):
        assert values(rows, "over_cost_model")[other] * share == pytest.approx(values(rows, "prefill_ratio")[other])
        assert values(rows, "first_token_ratio")[other] > 0


def test_the_peak_falls_by_the_cache_of_all_layers_but_at_most_one(rows):
    peaks = values(rows, "peak_bytes")
    assert peaks["gemfilter"] < peaks["snapkv"] < peaks["full"]
    layer = theory.layer_cache_bytes(theory.shape(128), 384, 4)
    assert values(rows, "layers_saved")[""] == (peaks["full"] - peaks["gemfilter"]) / layer
    assert theory.LAYERS - 1 <= values(rows, "layers_saved")[""] <= theory.LAYERS


def test_what_is_held_is_counted_by_hand():
    with Held() as held:
        first = torch.zeros(100)
        second = first + 1  # both alive: 800 bytes
        view = first[:10]  # no bytes of its own
        del first
        third = second * 2  # the view keeps the first alive: 1,200 bytes
        second.add_(1)  # in place
        del view, second
        fourth = third.exp()  # third and fourth: 800 bytes
    assert held.peak == 1200
    assert held.held == third.nbytes + fourth.nbytes


def test_tensors_from_before_are_not_counted():
    weights = torch.zeros(1000)
    with Held() as held:
        weights.mul_(2)
        weights[:10].add_(1)
    assert held.peak == 0
