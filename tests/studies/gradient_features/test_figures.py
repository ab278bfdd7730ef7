from __future__ import annotations

import math

import pytest

from assay.methods.gradient_bounds import Assumption
from assay.studies.gradient_features.figures import _reports, limit
from assay.studies.gradient_features.study import study


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2.0, math.inf, "at least 2"),
        (-math.inf, 0.125, "at most 0.125"),
        (0.02, 0.5, "0.02 to 0.5"),
        (3.0, 3.0, "3"),
        (math.inf, math.inf, "at least inf"),
    ],
)
def test_limits_in_words(low, high, words):
    assert limit(Assumption("x", 1.0, low=low, high=high)) == words


@pytest.mark.parametrize("preset", ["smoke", "laptop", "paper"])
def test_every_family_of_problems_reports_its_assumptions(preset):
    found = _reports(study.resolve(preset, {}))
    names = " ".join(found)
    for family in ("linear data", "XOR mixture", "orthogonal means", "XOR axes", "parity of", "uniform", "polynomial"):
        assert family in names
    assert all(found.values())
    met = {problem: all(line.met for line in lines) for problem, lines in found.items()}
    assert met["linear data"]
    assert met["polynomial, full"]
    assert not met["polynomial, no quadratic part"]
    assert not any(met[name] for name in found if "XOR" in name)
