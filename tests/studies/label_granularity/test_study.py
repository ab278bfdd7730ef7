from __future__ import annotations

import math

import polars as pl
import pytest

from assay.data.images import load_images
from assay.lab import Judgement, Measurements, UserError
from assay.studies.label_granularity import claims  # noqa: F401 (registers the claims)
from assay.studies.label_granularity.hard_sample_claims import around_critical
from assay.studies.label_granularity.image_claims import weakest
from assay.studies.label_granularity.image_labels import SIZES
from assay.studies.label_granularity.study import study


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"image_samples": "399"}, "greater than or equal to 400"),
        ({"clusters": "0,2,5"}, "clusters.*greater than 0"),
        ({"clusters": "2,5,5000"}, "clusters ask for 5000 in a superclass"),
        ({"clusters": "5,2"}, "clusters needs values that grow"),
        ({"resnet_clusters": "0,5"}, "resnet_clusters.*greater than 0"),
        ({"resnet_clusters": "5,100"}, "resnet_clusters ask for 100 in a superclass"),
        ({"strong_noises": "-1,1"}, "strong_noises.*greater than 0"),
        ({"image_widths": "0,0"}, "image_widths.*greater than 0"),
        ({"image_widths": "-1,5"}, "image_widths.*greater than 0"),
        ({"initial_neurons": "0,5"}, "initial_neurons.*greater than 0"),
        ({"starved_samples": "1000"}, "starved_samples asks for 1000 of each class, and 400 images of digits allow 16"),
        ({"starved_samples": "4"}, "greater than or equal to 8"),
        ({"threshold": "40"}, "give 0 detectors per feature"),
        ({"threshold": "0.1"}, "detectors per feature"),
        ({"faint_low": "2"}, "from small to large"),
        ({"subclasses": "40"}, "dictionary vectors"),
        ({"sweep": "2,4,40"}, "dictionary vectors"),
        ({"images": "paintings"}, "no hierarchy of classes"),
        ({"tiles": "bathroom"}, "tiles are"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        study.resolve("smoke", overrides)
    assert "\n" not in str(refusal.value)


def test_presets_are_allowed_and_the_digits_are_counted():
    for preset in ("smoke", "laptop", "paper"):
        for setting in (None, *study.settings):
            study.resolve(preset, {}, setting)
    study.resolve("laptop", {"images": "digits", "tiles": "digits"})
    assert len(load_images("digits")) == SIZES["digits"]


def measurements(rows: list[tuple], params, names: tuple[str, ...] = ("k",)) -> Measurements:
    columns = ("arm", *names, "seed", "step", "metric", "value")
    return Measurements(pl.DataFrame(rows, schema=columns, orient="row"), params)


def judged(claim: str, m: Measurements) -> Judgement:
    return study.claims[claim].judge(m)


def test_without_strength_of_distractors_there_is_no_critical_k():
    params = study.resolve("laptop", {"images": "digits", "tiles": "digits", "faint_low": 0, "faint_high": 0})
    assert around_critical(params) == ()
    applies = {name: all(check(params) for check in study.claims[name].when.values()) for name in ("C2c", "C2d", "N1")}
    assert applies == {"C2c": False, "C2d": False, "N1": True}


def test_the_rule_is_judged_next_to_k_star_and_a_constant_guess_does_not_pass():
    params = study.resolve("laptop", {"images": "digits", "tiles": "digits"})
    assert around_critical(params) == (4, 8)

    def rule(agreement: float, constant: float) -> Measurements:
        rows = [("sweep", k, seed, None, metric, value + 1e-4 * seed) for k in (4, 8, 24) for seed in range(4)
                for metric, value in (("rule_agreement", agreement), ("constant_agreement", constant))]  # fmt: skip
        return measurements(rows, params)

    assert judged("C2h", rule(0.98, 0.9)).verdict == "holds"
    assert judged("C2h", rule(0.98, 0.98)).verdict == "fails"
    assert judged("C2c", rule(0.98, 0.98)).verdict == "holds"
    assert judged("C2c", rule(0.9, 0.8)).verdict == "fails"


def test_granularity_rises_only_if_every_step_does():
    params = study.resolve("laptop", {"images": "digits", "tiles": "digits"})

    def cross(accuracies: list[float]) -> Measurements:
        rows = [("cross", grain, "probe", seed, None, "accuracy", a + 0.001 * (-1) ** (seed + i))
                for i, (grain, a) in enumerate(zip((2, 3, 6, 12, 24), accuracies, strict=True))
                for seed in range(8)]  # fmt: skip
        return measurements(rows, params, ("grain", "readout"))

    assert judged("C10d", cross([0.5, 0.6, 0.7, 0.8, 0.9])).verdict == "holds"
    found = judged("C10d", cross([0.5, 0.6, 0.8, 0.7, 0.9]))
    assert found.verdict == "fails"
    assert found.criterion == "accuracy, 12 − 6 classes > 0"
    assert judged("C10d", cross([0.5, 0.6, 0.7, 0.7, 0.9])).verdict == "undecided"


def test_the_weakest_judgement_decides():
    verdicts = [Judgement("holds", "a", 0.2), Judgement("undecided", "b", 0.5), Judgement("holds", "c", 0.1)]
    assert weakest(verdicts).criterion == "b"
    assert weakest([verdicts[0], verdicts[2]]).criterion == "c"
    assert weakest([*verdicts, Judgement("fails", "d", 1.0)]).criterion == "d"


def test_what_is_said_about_t0_is_undecided_where_it_was_not_reached():
    params = study.resolve("smoke", {})
    values = {"t0": math.nan, "predicted_t0": 30.0, "common_output_at_t0": 0.2, "hard_error_at_t0": 0.0}
    rows = [("fine", "exact", seed, None, metric, math.nan if seed == 1 else value)
            for metric, value in values.items() for seed in range(4)]  # fmt: skip
    m = measurements(rows, params, ("setting",))
    for claim in ("C3b", "C6g", "C6h"):
        assert judged(claim, m).verdict == "undecided", claim
