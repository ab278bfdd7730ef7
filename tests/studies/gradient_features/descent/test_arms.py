from __future__ import annotations

from assay import lab


def moved(rate: float) -> lab.Measurements:
    return lab.try_arm("gradient-features", "drift", seeds=3, set={"drift_rates": str(rate)})


def test_at_every_rate_neurons_use_some_of_their_envelope():
    used = moved(1e-5).rows("envelope_used")["value"].to_list()
    assert all(0 < value <= 1 for value in used), "the smallest rate moves weights, too"


def test_a_network_beyond_all_numbers_obeys_no_envelope():
    found = moved(1e60)
    assert not found.rows("drift")["value"].is_finite().any()
    assert found.every("envelope_used").at_most(1).verdict == "fails"
