import pytest

from assay.studies.imbalanced_contrastive.pruning.theory import pruning_horizon


def test_a_horizon_is_the_steps_that_a_growth_takes_by_hand():
    steps, size = 0, 1.0
    while size < 2:
        steps, size = steps + 1, size * 1.01
    assert steps - 1 < pruning_horizon(2, 0.01) <= steps
    assert pruning_horizon(1, 0.01) == 0


def test_the_printed_horizon_is_linearised_and_larger():
    assert pruning_horizon(10, 1e-3) < (10 - 1) / 1e-3
    assert pruning_horizon(1.001, 1e-6) == pytest.approx(0.001 / 1e-6, rel=1e-3)


@pytest.mark.parametrize(("gap", "rate"), [(0.9, 0.1), (2, 0.0)])
def test_a_horizon_needs_a_gap_and_growth(gap, rate):
    with pytest.raises(ValueError, match="horizon"):
        pruning_horizon(gap, rate)
