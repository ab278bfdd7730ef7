"""Criteria against made-up measurements: what they must refuse, and what they are about."""

import math

import polars as pl
import pytest

from assay.lab import Measurements, discovery
from assay.lab.params import build

study = discovery.find("imbalanced-contrastive")
SEEDS = range(4)


def params(**values):
    return build(study.model, study.presets["smoke"].values, values)


def judged(id, rows, **values):
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(trials=pl.lit(None, pl.Int64))
    return study.claims[id].judge(Measurements(frame, params(**values)))


def applies(id, **values):
    return all(holds(params(**values)) for holds in study.claims[id].when.values())


def row(arm, metric, value, seed, step=None, **labels):
    return {"arm": arm, "metric": metric, "value": float(value), "seed": seed, "step": step, **labels}


@pytest.mark.parametrize("id", ["C4d", "C4e", "C4g"])
def test_two_frequencies_that_are_compared_must_be_in_the_run(id):
    assert not applies(id, rare=(0.2, 1.0))
    assert not applies(id, rare=(0.2, 0.5, 0.8))
    assert applies(id, rare=(0.2, 0.5, 1.0))


def test_without_shared_features_rare_ones_must_not_grow_either():
    def rows(rare):
        where = {"views": "unpaired", "decay": 0.3, "epsilon": 0.3}
        growth = {"frequent": 0.985, "rare": rare, "noise": 1.1}
        return [row("stage-one", "growth", g, seed, part=name, **where) for name, g in growth.items() for seed in SEEDS]

    assert judged("N1", rows(0.985)).verdict == "holds"
    assert judged("N1", rows(1.01)).verdict == "fails"


def test_a_probe_that_errs_little_can_still_refute_the_printed_gain():
    """Where plain training is right in 96 %, no pruning can add 7 points, but it can remove half of the errors."""

    def rows(gain):
        found = {"none": 0.96, "logit-masked": 0.96 + gain}
        return [
            row("images", "accuracy", value + 1e-4 * seed, seed, imbalance=100.0, pruning=kind)
            for kind, value in found.items()
            for seed in SEEDS
        ]

    assert judged("C8h", rows(0.005)).verdict == "holds"
    assert judged("C8h", rows(0.02)).verdict == "fails"


def test_claims_that_fix_a_frequency_or_a_decay_need_it_in_the_run():
    assert not applies("C4f", rare=(0.2, 0.5))
    assert not applies("N5", pruned_decays=(0.02,))
    tried = {"pruned_rare": (0.1, 0.3, 0.5), "pruned_decays": (0.01,)}
    assert applies("C6a", pruned_steps=1200, **tried)
    assert not applies("C6a", pruned_steps=600, **tried)
    assert any("1200 steps" in words for words in study.claims["C6a"].when)


def test_claims_on_images_need_their_imbalances():
    assert applies("C8a", image_ratios=(100.0,), image_largest=None)
    assert not applies("C8c", image_ratios=(100.0,), image_largest=None)
    assert not any(applies(id, image_ratios=(10.0,)) for id in ("C8a", "C8b", "C8c", "C8d", "C8h"))
    assert applies("C8h", image_ratios=(100.0,), image_largest=None)
    assert not applies("C8h", image_ratios=(100.0,), image_largest=None, image_alpha=0.3)


def test_a_claim_on_images_names_the_set_it_was_measured_on():
    rows = [row("images", "accuracy", 0.6, 0, imbalance=100.0, pruning=kind) for kind in ("none", "logit-masked")]
    for name in ("digits", "fashion_mnist"):
        assert f"accuracy on {name}" in judged("C8a", rows, images=name).criterion


def climbs(ends):
    """Pruned trainings that are level after so many looks, per ε."""
    rows = []
    for epsilon, end in ends.items():
        where = {"decay": 0.01, "epsilon": epsilon, "gradient": "logit-masked"}
        values = [0.5] + [0.95 if end is not None and k >= end else 0.6 for k in range(1, 40)]
        rows += [row("pruning", "ratio", v, seed, 20 * k, **where) for seed in SEEDS for k, v in enumerate(values)]
    return rows


def test_a_training_that_is_never_level_is_not_within_the_horizon():
    values = {"pruned_rare": (0.1, 0.5), "rate": 0.02}
    assert judged("C6f", climbs({0.1: 30, 0.5: 5}), **values).verdict == "holds"
    assert judged("C6f", climbs({0.1: None, 0.5: 5}), **values).verdict == "fails"


def test_steps_that_fall_with_the_square_of_the_frequency_are_told_from_others():
    values = {"pruned_rare": (0.1, 0.3)}
    assert judged("C6g", climbs({0.1: 36, 0.3: 4}), **values).verdict == "holds"
    assert judged("C6g", climbs({0.1: 12, 0.3: 4}), **values).verdict == "fails"


@pytest.mark.parametrize(("growth", "verdict"), [(0.99, "holds"), (1.01, "fails")])
def test_a_feature_below_the_threshold_must_shrink(growth, verdict):
    where = {"views": "paired", "part": "rare", "decay": 0.3, "epsilon": 0.1}
    rows = [row("stage-one", "growth", growth, seed, **where) for seed in SEEDS]
    rows += [row("stage-one", "predicted_growth", 0.995, seed, **where) for seed in SEEDS]
    assert judged("C1g", rows).verdict == verdict


@pytest.mark.parametrize(
    ("gain", "above", "below"), [(0.02, "holds", "holds"), (-0.02, "fails", "holds"), (0.15, "holds", "fails")]
)
def test_image_claims_read_the_gain_at_the_larger_imbalance(gain, above, below):
    found = {
        (10.0, "none"): 0.7,
        (10.0, "logit-masked"): 0.7,
        (100.0, "none"): 0.6,
        (100.0, "logit-masked"): 0.6 + gain,
    }
    rows = [
        # Not all seeds may agree to the last digit.
        row(
            "images", "accuracy", value + 1e-4 * math.sin(seed + 7 * rho + len(kind)), seed, imbalance=rho, pruning=kind
        )
        for (rho, kind), value in found.items()
        for seed in SEEDS
    ]
    assert judged("C8a", rows).verdict == above
    assert judged("C8h", rows).verdict == below
    assert judged("C8c", rows).verdict == above
