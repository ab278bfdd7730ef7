from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods import FeatureConstants, data_assumptions, gradient_bound, gradient_requirements
from assay.methods.gradient_bounds import Assumption

# Linear data in 100 dimensions: r = 2, margin 1/2, p = 1/2.
EASY = FeatureConstants(
    share=0.5,
    floor=1.0,
    gamma=0.01,
    terms=2,
    largest_output=2.0,
    output_norm=2 * math.sqrt(2),
    largest_knot=0.01,
    mean_norm=10.0,
    second_moment=100.0,
    largest_norm=12.0,
)


def test_each_term_is_its_formula():
    found = gradient_bound(EASY, neurons=20_000, samples=10**6, opt=0.1)
    assert found.cones == pytest.approx(2 * 2 * 10 * math.sqrt(0.02))
    assert found.cones + found.sampling == pytest.approx(40 * math.sqrt(0.02 + 10 / 100))
    assert found.width == pytest.approx(40 * 2 / 10 * 0.1)
    assert found.total == pytest.approx(0.1 + found.cones + found.sampling + found.width)
    assert found.vacuous
    assert "vacuous" in repr(found)
    assert [row["term"] for row in found.table()] == ["OPT", "cones", "sampling", "width"]


def test_a_bound_below_one_says_something():
    narrow = replace(EASY, gamma=1e-8, mean_norm=0.1, second_moment=0.01)
    found = gradient_bound(narrow, neurons=10**9, samples=10**18)
    assert not found.vacuous
    assert "below the loss 1" in found.headline()


@settings(deadline=None)
@given(st.integers(1, 10**9), st.integers(1, 10**9), st.floats(0.001, 0.5))
def test_more_neurons_and_samples_never_loosen_it(neurons, samples, gamma):
    constants = replace(EASY, gamma=gamma)
    found = gradient_bound(constants, neurons=neurons, samples=samples)
    more = gradient_bound(constants, neurons=2 * neurons, samples=2 * samples)
    assert more.width < found.width
    assert more.sampling <= found.sampling + 1e-9
    assert more.cones == found.cones


def test_what_the_theorem_asks_for_scales_as_it_says():
    def ask(error: float = 0.1, **changes: float):
        return gradient_requirements(replace(EASY, **changes), error=error, dim=100)

    plain = ask()
    assert plain.neurons > 1e5
    assert plain.samples > 1e25
    assert ask(error=0.05).neurons / plain.neurons == pytest.approx(16, rel=0.05)
    assert ask(share=0.25).neurons / plain.neurons == pytest.approx(2, rel=0.05)
    # √(r·B_a1) below the fraction, not √r·B_a1
    assert ask(terms=8).threshold == pytest.approx(plain.threshold / 2)
    assert ask(largest_output=8.0).threshold == pytest.approx(plain.threshold / 2)
    assert plain.steps == pytest.approx(1 / (plain.rate * 10 * (0.5 * plain.neurons) ** 0.25))
    assert plain.first_rate <= plain.rate
    assert "no setting for a run" in plain.headline()


def test_assumptions_of_balanced_data_are_met_and_those_of_lopsided_data_named():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 5, generator=generator)
    y = torch.ones(4000)
    y[::2] = -1
    fine = data_assumptions(x, y)
    assert fine.met
    assert "all 6 assumptions are met" in repr(fine)
    lines = {line.name.split(" B_")[0]: line.value for line in fine.lines}
    assert lines["mean squared norm"] == pytest.approx(5, rel=0.05)
    leaning = data_assumptions(x + y.unsqueeze(1), 2 * y.clamp(min=-0.1))
    assert not leaning.met
    assert "largest |y|" in leaning.headline()
    assert "E[yx]" in leaning.headline()


def test_what_is_no_number_meets_no_assumption():
    assert not Assumption("x", math.nan, 0, 1).met
    assert Assumption("x", 3.0).met


def test_reports_are_kept_and_drawn(tmp_path):
    pytest.importorskip("altair")
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    reports = (
        gradient_bound(EASY, neurons=100, samples=100),
        gradient_requirements(EASY, error=0.1, dim=100),
        data_assumptions(x, x[:, 0].sign()),
    )
    for at, report in enumerate(reports):
        kept = json.loads(report.save(tmp_path / f"{at}.json").read_text())
        assert kept["report"] == type(report).__name__
        assert report.figure().to_dict()


@pytest.mark.parametrize("changes", [{"share": 0.0}, {"share": 1.1}, {"gamma": 1.0}, {"floor": math.nan}, {"terms": 0}])
def test_constants_outside_their_range_are_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        replace(EASY, **changes)


def test_bad_input_is_refused_in_one_sentence():
    x = torch.zeros(4, 2)
    with pytest.raises(ValueError, match="labels"):
        data_assumptions(x, torch.ones(3))
    with pytest.raises(ValueError, match="finite"):
        data_assumptions(x * math.nan, torch.ones(4))
    with pytest.raises(ValueError, match="neurons"):
        gradient_bound(EASY, neurons=0, samples=1)
    with pytest.raises(ValueError, match="error"):
        gradient_requirements(EASY, error=0, dim=10)
