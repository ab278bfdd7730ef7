"""What an arm may record, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

from assay.lab import Params, Preset, Recorder, Study


@pytest.fixture
def record():
    return Recorder([4, 5, 6], columns={"setting": "parity"})


def test_a_row_per_seed_with_the_setting_beside_it(record):
    record(step=10, loss=torch.tensor([0.1, 0.2, 0.3], requires_grad=True), accuracy=0.5)
    rows = record.frame().rows(named=True)
    assert [(r["seed"], r["step"], r["metric"], r["setting"]) for r in rows] == [
        (seed, 10, metric, "parity") for metric in ("loss", "accuracy") for seed in (4, 5, 6)
    ]
    assert [r["value"] for r in rows] == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.5, 0.5])


def test_extra_columns_are_null_where_they_were_not_recorded(record):
    record(cosine=[1, 2, 3], at={"neuron": "lucky"})
    record(loss=[torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0)])
    frame = record.frame()
    assert frame["neuron"].to_list() == ["lucky"] * 3 + [None] * 3
    assert frame["step"].to_list() == [None] * 6


def test_a_curve_keeps_steps_and_seeds_apart(record):
    record.curve([0, 5], loss=np.array([[1, 2, 3], [4, 5, 6]]))
    assert record.frame().select("seed", "step", "value").rows() == [
        (4, 0, 1),
        (5, 0, 2),
        (6, 0, 3),
        (4, 5, 4),
        (5, 5, 5),
        (6, 5, 6),
    ]


@pytest.mark.parametrize("values", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], []])
def test_a_wrong_shape_is_refused(record, values):
    with pytest.raises(ValueError, match=r"loss has shape .* 3 seeds"):
        record(loss=values)


@pytest.mark.parametrize("shape", [(3, 2), (2,), (1, 3), (2, 4)])
def test_a_curve_of_a_wrong_shape_is_refused(record, shape):
    with pytest.raises(ValueError, match=r"not \(2, 3\)"):
        record.curve([0, 1], loss=np.zeros(shape))


@pytest.mark.parametrize("column", ["arm", "seed", "step", "metric", "value", "setting"])
def test_taken_columns_are_refused(record, column):
    with pytest.raises(ValueError, match=f"'{column}' is already taken"):
        record(loss=1.0, at={column: "mine"})
    with pytest.raises(ValueError, match=f"'{column}' is already taken"):
        record.curve([0], loss=np.zeros((1, 3)), at={column: "mine"})


@pytest.mark.parametrize("column", ["arm", "seed", "step", "metric", "value"])
def test_a_grid_over_a_reserved_column_is_refused(column):
    presets = {name: Preset(seeds=1, cost="1 s") for name in ("smoke", "laptop", "paper")}
    study = Study("s", title="t", question="q", source="s", params=Params, presets=presets)
    for over in ({column: [1, 2]}, [{"k": 1}, {column: 2}]):
        with pytest.raises(ValueError, match=f"'{column}'.* already taken"):
            study.arm("a", over=over)(lambda params, seeds, record: None)
    assert study.arms == {}


def test_recording_nothing_is_refused(record):
    with pytest.raises(ValueError, match="no metric"):
        record(step=1)
    with pytest.raises(ValueError, match="recorded nothing"):
        record.frame()


def test_arrays_have_a_leading_seed_axis(record):
    record.array("weights", torch.arange(6.0, requires_grad=True).reshape(3, 2), step=2)
    record.array("weights", np.zeros((3, 1)))
    assert record.arrays["weights@2"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert record.arrays["weights"].shape == (3, 1)
    with pytest.raises(ValueError, match="recorded twice"):
        record.array("weights", np.zeros((3, 1)))
    for wrong in (np.zeros((2, 3)), 1.0):
        with pytest.raises(ValueError, match="first axis is the 3 seeds"):
            record.array("other", wrong)


def test_notes_are_kept_and_the_latest_metric_is_watched():
    seen = []
    record = Recorder([0, 1], watch=lambda metric, value: seen.append((metric, value)))
    record.note(rate=0.1)
    record.note(width=3)
    record(loss=[1.0, 3.0])
    assert record.notes == {"rate": 0.1, "width": 3}
    assert seen == [("loss", 2.0)]


def test_shares_carry_their_trials_and_booleans_are_shares_of_one(record):
    record(trials=20, error=[0.5, 0.25, 1.0])
    record(trials=[10, 20, 30], recall=[0.1, 0.05, 1.0])
    record(found=np.array([True, False, True]))
    record(loss=[0.3, 0.2, 0.1])
    rows = {
        m: record.frame().filter(pl.col("metric") == m)["trials"].to_list() for m in record.frame()["metric"].unique()
    }
    assert rows == {"error": [20] * 3, "recall": [10, 20, 30], "found": [1] * 3, "loss": [None] * 3}


@pytest.mark.parametrize(
    ("trials", "values"), [(3, [0.5, 1, 0]), (20, [1.5, 0, 0]), (20, [-0.05, 0, 0]), (0, [0, 0, 0])]
)
def test_what_is_no_share_of_so_many_trials_is_refused(record, trials, values):
    with pytest.raises(ValueError, match="is no share of"):
        record(trials=trials, error=values)


def test_a_share_without_a_value_keeps_its_trials(record):
    record(trials=4, error=[0.25, float("nan"), 0.5])
    assert record.frame()["trials"].to_list() == [4, 4, 4]
