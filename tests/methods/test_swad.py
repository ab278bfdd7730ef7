from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn

from assay.methods import SWAD


def followed(losses, steps=1, **options):
    """A model whose only weight is the number of the step."""
    model = nn.Linear(1, 1, bias=False)
    swad = SWAD(model, **options)
    step = 0
    for loss in losses:
        for _ in range(steps):
            step += 1
            nn.init.constant_(model.weight, float(step))
            swad.update()
        swad.check(loss)
    return swad


def average(swad):
    return float(swad.averaged().weight.detach())


def test_the_valley_of_a_sequence_worked_by_hand():
    # The third loss (segment 2) is not undercut by the two after it: the valley begins there, the threshold is
    # 1.3 · (1 + 1.1 + 1.1)/3 = 1.387. Segment 1 (1.2) joins, segment 0 (2) does not. From segment 6 on the loss is
    # above; after six such losses in a row (segments 6 to 11) the valley has ended, and 1 to 5 are averaged.
    losses = [2.0, 1.2, 1.0, 1.1, 1.1, 1.3, 1.5, 1.6, 1.5, 1.7, 1.8, 1.9, 1.0]
    swad = followed(losses)
    report = swad.report()
    assert report.threshold == pytest.approx(1.3 * 3.2 / 3)
    assert (report.start, report.end, report.done) == (1, 5, True)
    assert len(report.losses) == 12, "after the valley nothing is looked at any more"
    assert average(swad) == pytest.approx((2 + 3 + 4 + 5 + 6) / 5)
    assert [row["segment"] for row in report.table() if row["averaged"]] == [1, 2, 3, 4, 5]


def test_one_loss_in_the_window_keeps_the_valley_open():
    swad = followed([1.0, 1.1, 1.1, 2.0, 2.0, 2.0, 2.0, 2.0, 1.2])
    assert (swad.done, swad.report().start, swad.report().end) == (False, 0, 8)
    assert average(swad) == pytest.approx(5.0)


def test_the_end_of_training_closes_with_the_last_good_segment():
    swad = followed([1.0, 1.1, 1.1, 1.2, 5.0, 5.0])
    assert swad.report().end == 3
    assert average(swad) == pytest.approx(2.5)
    assert swad.report().end == 3, "asking twice changes nothing"


def test_a_short_tolerance():
    swad = followed([1.0, 1.1, 1.2, 9.0, 1.0], converge=3, tolerate=1)
    assert (swad.report().start, swad.report().end, swad.done) == (0, 2, True)
    assert average(swad) == pytest.approx(2.0)


def test_segments_are_averages_of_their_steps():
    swad = followed([2.0, 1.0, 1.1, 1.1], steps=10, tolerate=3)
    # Steps 1 to 10 lie above the threshold 1.3 · 3.2/3; the others are averaged.
    assert average(swad) == pytest.approx(sum(range(11, 41)) / 30)


def test_where_the_loss_never_settles_the_last_segment_stands_alone():
    swad = followed([5.0, 4.0, 3.0, 2.0], steps=4)
    assert (swad.report().start, swad.report().threshold) == (None, None)
    assert average(swad) == pytest.approx((13 + 14 + 15 + 16) / 4)
    assert "not settled" in repr(swad.report())


def test_the_average_of_equal_weights_is_these_weights():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).half()
    swad = SWAD(model, device="cpu")
    for loss in (1.0, 1.0, 1.0, 1.0):
        swad.update()
        swad.check(torch.tensor(loss))
    for one, other in zip(model.parameters(), swad.averaged().parameters(), strict=True):
        assert torch.equal(one, other)
    assert swad.averaged()[1].running_mean.dtype == torch.float16


def test_the_model_is_not_touched():
    model = nn.Linear(2, 2)
    before = copy.deepcopy(model.state_dict())
    swad = SWAD(model)
    swad.update()
    swad.check(1.0)
    swad.averaged().weight.data.zero_()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_checkpoint_goes_on_where_it_was():
    losses = [2.0, 1.2, 1.0, 1.1, 1.1, 1.3, 1.5, 1.2]
    whole = followed(losses)
    first = followed(losses[:4])
    resumed = SWAD(nn.Linear(1, 1, bias=False))
    resumed.load_state_dict(first.state_dict())
    for step, loss in enumerate(losses[4:], 5):
        nn.init.constant_(resumed.model.weight, float(step))
        resumed.update()
        resumed.check(loss)
    assert resumed.report() == whole.report()
    assert average(resumed) == pytest.approx(average(whole))


def test_only_segments_that_may_join_are_kept():
    swad = followed([20.0 - i for i in range(15)])
    assert len(swad._waiting) == 6


def test_the_report(tmp_path):
    report = followed([1.0, 1.1, 1.1, 1.2]).report()
    assert repr(report).startswith("steps 1 to 4 are averaged")
    assert json.loads(report.save(tmp_path / "swad.json").read_text())["end"] == 3
    assert "layer" in report.figure().to_dict()


@pytest.mark.parametrize("options", [{"converge": 0}, {"tolerate": 0}, {"ratio": -0.1}, {"ratio": float("nan")}])
def test_bad_settings_are_refused(options):
    with pytest.raises(ValueError, match="must"):
        SWAD(nn.Linear(1, 1), **options)


def test_bad_calls_are_refused():
    swad = SWAD(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="no step was taken"):
        swad.check(1.0)
    with pytest.raises(RuntimeError, match="no step was taken yet"):
        swad.averaged()
    swad.update()
    for bad in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="the validation loss must"):
            swad.check(bad)
