"""The good network outputs the label, with weights as small as stated."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.feature_emergence.construction import theory


@settings(max_examples=200)
@given(st.data())
def test_good_network_outputs_the_label(data):
    k = data.draw(st.integers(1, 12))
    positive = tuple(sorted(data.draw(st.sets(st.integers(0, k)))))
    mu = data.draw(st.floats(0, k))
    net = theory.good_network(k, positive, mu, 5.0)
    counts = torch.arange(k + 1, dtype=torch.float64)
    labels = torch.tensor([1.0 if c in positive else -1.0 for c in range(k + 1)], dtype=torch.float64)
    assert torch.allclose(net((counts - mu) / 5.0), labels, atol=1e-9)
    assert len(net.a) == 3 * (k + 1)
    assert float(net.a.abs().max()) <= 32 * k + 1e-9
    assert 1 / (32 * k) - 1e-12 <= float(net.b.abs().min())
    assert float(net.b.abs().max()) <= 0.5 + 1e-12
    inside = net.w_scale * (counts - mu).unsqueeze(1) / 5.0 + net.b
    assert float(inside.abs().max()) <= 1 + 1e-12


def test_general_good_network_has_doubled_margins():
    net = theory.good_network(3, (1, 3), 1.5, 4.0, general=True)
    counts = torch.arange(4, dtype=torch.float64)
    labels = torch.tensor([-1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    assert (labels * net((counts - 1.5) / 4.0) >= 1.0).all()
    # The source prints |a*| ≤ 64k. That is right for hats centred on the counts; the shifted hats, which a mean on a
    # half-integer needs, are twice as high and reach 128k.
    assert float(net.a.abs().max()) == 128 * 3
    assert float(theory.good_network(3, (1, 3), 1.75, 4.0, general=True).a.abs().max()) == 64 * 3
    assert float(net.b.abs().min()) >= 1 / (64 * 3)
    assert float(net.b.abs().max()) <= 0.25 + 1e-12
    assert theory.general_condition(3, 1e-3, 100, 0.5, 20, 4.0)
    assert not theory.general_condition(3, 5.0, 100, 0.5, 20, 4.0)


def test_good_network_refuses_counts_beyond_k():
    with pytest.raises(ValueError, match="not within"):
        theory.good_network(3, (5,), 1.0, 1.0)


@pytest.mark.parametrize(("general", "bound"), [(False, 32), (True, 128)])
def test_the_largest_output_weight_is_that_of_any_mean(general, bound):
    for k in (1, 3, 5):
        means = torch.linspace(0, k, 41).tolist()
        largest = max(float(theory.good_network(k, (), mu, 1.0, general=general).a.abs().max()) for mu in means)
        assert theory.largest_output(k, general=general) == largest == bound * k
