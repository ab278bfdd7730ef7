"""What the claims on the two-dimensional task let pass."""

from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements
from assay.studies.nuclear_norm.plane.arms import FIXED, FREE, GAMMAS, Params
from assay.studies.nuclear_norm.plane.claims import part

COLUMNS = ("arm", "gamma", "method", "domain", "seed", "step", "metric", "value")


def judged(claim: str, rows: list[tuple]) -> Judgement:
    return part.claims[claim].judge(Measurements(pl.DataFrame(rows, schema=COLUMNS, orient="row"), Params()))


def accuracies(inside: float, excess: float, slope: float = 0.5, *, turned: bool = False) -> list[tuple]:
    """Errors outside that are ``excess`` more than the factor times those inside, or than its inverse."""
    rows = []
    for arm, methods in (("plane", FIXED), ("plane-free-head", FREE)):
        for gamma in GAMMAS:
            factor = (0.5 + gamma) / (0.5 - gamma)
            outside = (inside + excess) * (1 / factor if turned else factor)
            for method in methods:
                rows += [(arm, gamma, method, None, seed, None, "slope", slope) for seed in range(4)]
                for domain, error in (("inside", inside), ("outside", outside)):
                    rows += [(arm, gamma, method, domain, seed, None, "accuracy", 1 - error) for seed in range(4)]
    return rows


def test_errors_are_compared_within_the_standard_errors_that_they_have():
    assert judged("X5", accuracies(0.012, 0.0)).verdict == "holds"
    assert judged("X5", accuracies(0.012, 0.001)).verdict == "holds"
    # Twice the errors that the factor allows: as far apart as a test of a share of one half could be by chance.
    assert judged("X5", accuracies(0.012, 0.012)).verdict == "fails"
    assert judged("X5", accuracies(0.0, 0.0)).verdict == "holds"
    # A negative slope turns the factor over: errors inside are then the larger ones.
    assert judged("X5", accuracies(0.012, 0.0, -0.1, turned=True)).verdict == "holds"
    assert judged("X5", accuracies(0.012, 0.0, 0.1, turned=True)).verdict == "fails"
    assert judged("X5", accuracies(0.012, 0.0, -0.1)).verdict == "fails"


def heads(free_penalty: float, free_norm: float) -> list[tuple]:
    found = {"plane": (0.5, 1.0), "plane-free-head": (free_penalty, free_norm)}
    return [
        (arm, gamma, "nuclear norm 0.1", None, seed, None, metric, value + 1e-3 * seed * (arm != "plane"))
        for arm, values in found.items()
        for gamma in GAMMAS
        for metric, value in zip(("penalty", "head_norm"), values, strict=True)
        for seed in range(4)
    ]


def test_a_head_escapes_by_growing():
    assert judged("X7", heads(0.2, 2.0)).verdict == "holds"
    assert judged("X7", heads(0.2, 0.9)).verdict == "fails"
    assert judged("X7", heads(0.6, 2.0)).verdict == "fails"
