"""Criteria that can fail, domains of the settings that are measured, and shares that state their trials."""

from __future__ import annotations

import math

import polars as pl
import pytest

from assay.lab import Measurements, Recorder, discovery, pick
from assay.studies.meta_split.params import record_shares
from assay.studies.meta_split.phases.claims import tells_the_winner
from assay.studies.meta_split.theorems import theory

study = discovery.studies()["meta-split"]


def measurements(rows, overrides=None, preset="laptop"):
    """Rows are dictionaries; the settings are those of the study."""
    overrides = overrides or {}
    frame = pl.DataFrame(rows, infer_schema_length=None)
    for column in ("setting", "split", "step"):
        if column not in frame.columns:
            frame = frame.with_columns(pl.lit(None).alias(column))
    return Measurements(
        frame,
        study.resolve(preset, overrides),
        setting_params=lambda setting: study.resolve(preset, overrides, setting),
    )


def judged(claim, rows, overrides=None, preset="laptop"):
    found = study.judge(measurements(rows, overrides, preset))
    return next(finding.judgement for finding in found if finding.claim.id == claim)


def fomaml(setting, split, metric, values, step=600):
    return [
        {"arm": "fomaml", "setting": setting, "split": split, "seed": s, "step": step, "metric": metric, "value": v}
        for s, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("claim", "changed", "reason"),
    [
        ("C2h", {"dim": 3000}, "σ₀ = d^{−1/2}"),
        ("C2f", {"long.inner_steps": 0}, "noise that the inner loop amplifies more than the feature"),
        ("C5b", {"two-tasks.noise_energy": 1.0}, "s > Kn/2"),
        ("C6a", {"inner_steps": 3}, "five inner steps"),
        ("C6d", {"phase_rates": (0.2, 0.5)}, "a phase map with this noise energy and the inner rates 0.1 and 0.5"),
        ("N1", {"tasks": 9}, "an even number of tasks"),
    ],
)
def test_outside_its_domain_a_claim_is_not_judged(claim, changed, reason):
    found = judged(claim, fomaml("base", "train-train", "test_loss", [0.7] * 3), changed)
    assert found.verdict == "not run"
    assert found.reason == f"the claim is about {reason}"


def test_the_large_start_is_that_of_the_dimension():
    for preset in ("smoke", "laptop", "paper"):
        p = study.resolve(preset, {}, "large-start")
        assert p.initial_scale == pytest.approx(p.dim**-0.5)


@pytest.mark.parametrize(("claim", "method"), [("N5", "reptile"), ("N7", "fomaml")])
def test_a_chosen_candidate_is_compared_with_the_others(claim, method):
    """The chosen pair is the best by a hair and nobody knows by how much: among all candidates it would be compared
    with itself, at a difference of exactly 0."""
    p = study.resolve("laptop", {})
    chosen, rows = getattr(p, method), []
    for candidate in getattr(p, f"{method}_candidates"):
        shift = 0.0 if candidate == chosen else -0.001
        for seed, noise in enumerate((0.1, -0.1, 0.05, -0.05)):
            value = 0.5 + shift + (noise if candidate == chosen else -noise)
            label = {"arm": f"{method}-tuning", "candidate": candidate, "metric": "tuning_accuracy"}
            rows.append({**label, "seed": seed, "value": value})
    m = measurements(rows)
    found = [
        m.final("tuning_accuracy", arm=f"{method}-tuning", candidate=c) for c in getattr(p, f"{method}_candidates")
    ]
    mine = m.final("tuning_accuracy", arm=f"{method}-tuning", candidate=chosen)
    assert (pick(max, found) - mine).at_most(0.02).verdict == "holds"
    assert judged(claim, rows).verdict == "undecided"


def test_rates_that_are_exactly_as_far_apart_as_asked_tell_no_winner():
    rates = study.resolve("laptop", {}, "two-tasks-pooled").rates("train-train")
    assert rates.apart == pytest.approx(1.5)
    assert not tells_the_winner(rates)
    assert tells_the_winner(study.resolve("laptop", {}, "steps-3").rates("train-train"))


@pytest.mark.parametrize(("with_a_split", "verdict"), [(0.6, "holds"), (0.4, "fails")])
def test_the_network_reverses_an_order_that_the_linear_model_has(with_a_split, verdict):
    """The network alone has the lower loss with a split in both cases."""
    rows = [
        {"arm": "linear", "split": split, "seed": seed, "metric": "linear_error", "value": error + 0.01 * seed * factor}
        for split, error, factor in (("train-train", 0.5, 1), ("train-validation", with_a_split, 2))
        for seed in range(3)
    ]
    rows += fomaml("base", "train-train", "test_loss", [0.69, 0.7, 0.69])
    rows += fomaml("base", "train-validation", "test_loss", [0.03, 0.04, 0.03])
    assert judged("C9c", rows).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "metric", "split"),
    [("C4n", "feature_inner_excess", "train-train"), ("C4o", "validation_excess", "train-validation")],
)
def test_bounds_of_the_inner_loop_are_judged_where_there_is_one(claim, metric, split):
    """Without inner steps movement and bound are both 0, which would be the worst case whatever the others are."""
    rows = fomaml("base", split, metric, [-2.0, -1.0, -3.0]) + fomaml("steps-1", split, metric, [-2.0] * 3)
    for setting in ("pooled", "two-tasks-pooled"):
        rows += fomaml(setting, split, metric, [0.0] * 3)
    found = judged(claim, rows)
    assert (found.verdict, found.estimate) == ("holds", -1.0)


@pytest.mark.parametrize(("median", "verdict"), [(1.2, "holds"), (1.3, "fails")])
def test_five_steps_on_validation_noise_are_measured_by_one_on_the_feature(median, verdict):
    label = {"arm": "early-growth", "energy": 8.0, "inner": 5, "split": "train-validation", "metric": "noise_gain"}
    rows = [{**label, "seed": seed, "value": median + 0.001 * seed} for seed in range(3)]
    found = judged("C4d", rows)
    assert found.verdict == verdict
    assert "[0.8, 1.25]" in found.criterion


@pytest.mark.parametrize(("last", "verdict"), [([0.03, 0.031, 0.03], "holds"), ([0.05, 0.051, 0.05], "fails")])
def test_more_tasks_are_compared_in_their_order(last, verdict):
    losses = {
        "tasks-40": last,
        "tasks-2": [0.4] * 3,
        "base": [0.035] * 3,
        "tasks-20": [0.03] * 3,
        "tasks-5": [0.04] * 3,
    }
    rows = [row for s, values in losses.items() for row in fomaml(s, "train-validation", "test_loss", values)]
    assert judged("C3e", rows).verdict == verdict


@pytest.mark.parametrize(("slow", "verdict"), [(None, "holds"), (2000, "holds"), (1000, "fails")])
def test_a_run_that_never_learns_counts_with_its_last_step(slow, verdict):
    rows = []
    for step in range(0, 5001, 50):
        rows += fomaml("long", "train-validation", "test_loss", [0.7 if step < 200 else 0.1] * 3, step)
        rows += fomaml("long", "train-train", "test_loss", [0.7 if slow is None or step < slow else 0.3] * 3, step)
    found = judged("C2j", rows)
    assert found.verdict == verdict
    assert found.estimate == (5000 if slow is None else slow) / 200


def stages(split, **curves):
    """Curves of the race, each (start, growth per step), in seeds that are alike up to a small factor."""
    rows = []
    for seed in range(4):
        label = {"arm": "stages", "split": split, "seed": seed}
        for name, (start, growth) in curves.items():
            values = [start * (1 + 0.01 * seed) * (1 + growth) ** step for step in range(121)]
            rows += [{**label, "step": step, "metric": name, "value": value} for step, value in enumerate(values)]
        energy = {**label, "step": None, "value": 8.0 + 0.01 * seed}
        rows += [{**energy, "metric": name} for name in ("least_energy", "largest_energy")]
    return rows


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (1.4, "fails")])
def test_the_second_stage_is_timed(factor, verdict):
    p = study.resolve("laptop", {})
    growth = factor * p.outer_rate * p.rates("train-validation").feature
    rows = stages("train-validation", feature_alignment=(1.5e-4, growth))
    assert judged("C3o", rows).verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (3.0, "fails")])
def test_the_race_is_lost_by_the_slower(factor, verdict):
    p = study.resolve("laptop", {})
    tt, tv = (p.rates(split) for split in ("train-train", "train-validation"))
    eta = p.outer_rate
    without = stages(
        "train-train",
        least_noise_alignment=(1e-4, eta * tt.noise),
        largest_feature_alignment=(2e-4, factor * eta * tt.feature),
    )
    assert judged("C4p", without).verdict == verdict
    with_one = stages(
        "train-validation",
        feature_alignment=(1e-4, eta * tv.feature),
        largest_noise_alignment=(6e-4, 1.5 * factor * eta * tv.noise),
    )
    assert judged("C4q", with_one).verdict == verdict


def test_a_stage_that_never_ends_is_no_success():
    rows = stages("train-validation", feature_alignment=(1e-4, 0.001), largest_noise_alignment=(1e-4, 0.001))
    for claim in ("C3o", "C4q"):
        found = judged(claim, rows)
        assert found.verdict == "fails"
        assert "no finite value" in found.reason


@pytest.mark.parametrize(("noise", "verdict"), [(0.9, "holds"), (1.1, "fails")])
def test_validation_noise_is_watched_until_the_feature_is_large(noise, verdict):
    p = study.resolve("laptop", {})
    large, small = math.log(p.dim) ** 0.1, theory.unlearned_level(p.dim)
    rows = []
    for seed in range(3):
        for step, (feature, alignment) in enumerate(((0.1, 0.1), (0.9 * large, noise), (2 * large, 5.0))):
            label = {"arm": "stages", "split": "train-validation", "seed": seed, "step": step}
            rows.append({**label, "metric": "largest_feature_alignment", "value": feature})
            rows.append({**label, "metric": "largest_noise_alignment", "value": alignment * small})
    assert judged("C3q", rows).verdict == verdict


def test_shares_are_recorded_with_their_trials():
    record = Recorder([0, 1])
    record_shares(record, {"loss": [0.3, 0.4], "accuracy": [0.5, 0.75]}, {"accuracy": 4, "memorised": 9}, step=3)
    rows = {(r["metric"], r["seed"]): r for r in record.frame().iter_rows(named=True)}
    assert rows["loss", 0]["trials"] is None
    assert rows["accuracy", 1]["trials"] == 4
    assert rows["accuracy", 1]["step"] == 3
