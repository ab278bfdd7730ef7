"""The figure of sampled gradients, with and without the optional arm."""

import pytest

from assay import lab


@pytest.mark.parametrize("six", [False, True])
def test_parities_of_six_are_drawn_where_they_ran(six, tmp_path):
    arms = ["sampled-parity"] + ["sampled-parity-six"] * six
    asked = {"sampled_dims": (9, 11), "ladder_neurons": 8, "head_samples": 200, "test_samples": 100}
    asked |= {"six_dims": (11,)} if six else {}
    run = lab.run("gradient-features", preset="smoke", arms=arms, set=asked, jobs=1, runs=tmp_path)
    drawn = str(run.figure("parity-samples").to_dict()["datasets"])
    assert "4 of 11" in drawn
    assert ("6 of 11" in drawn) is six
