from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements
from assay.studies.label_granularity.few_samples.arms import Params
from assay.studies.label_granularity.few_samples.claims import part, weakest


def judged(claim: str, m: Measurements) -> Judgement:
    return part.claims[claim].judge(m)


def test_granularity_rises_only_if_every_step_does():
    def cross(accuracies: list[float]) -> Measurements:
        rows = [
            ("cross", grain, "probe", seed, None, "accuracy", a + 0.001 * (-1) ** (seed + i))
            for i, (grain, a) in enumerate(zip((2, 3, 6, 12, 24), accuracies, strict=True))
            for seed in range(8)
        ]
        columns = ("arm", "grain", "readout", "seed", "step", "metric", "value")
        return Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params(images="digits"))

    assert judged("C10d", cross([0.5, 0.6, 0.7, 0.8, 0.9])).verdict == "holds"
    found = judged("C10d", cross([0.5, 0.6, 0.8, 0.7, 0.9]))
    assert found.verdict == "fails"
    assert found.criterion == "accuracy, 12 − 6 classes, digits > 0"
    assert judged("C10d", cross([0.5, 0.6, 0.7, 0.7, 0.9])).verdict == "undecided"


def test_the_weakest_judgement_decides():
    verdicts = [Judgement("holds", "a", 0.2), Judgement("undecided", "b", 0.5), Judgement("holds", "c", 0.1)]
    assert weakest(verdicts).criterion == "b"
    assert weakest([verdicts[0], verdicts[2]]).criterion == "c"
    assert weakest([*verdicts, Judgement("fails", "d", 1.0)]).criterion == "d"
