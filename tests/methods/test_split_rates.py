"""The rate calculator: known values, monotonicity, critical values at which the rates are equal, refusals."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.methods.split_rates import feature_amplification, noise_amplification, predict_split_effect

BASE = dict(noise_energy=8.0, samples=4, support=2, tasks=10, inner_steps=5, inner_rate=0.5)
SIZES = dict(
    noise_energy=st.floats(0.5, 30),
    tasks=st.integers(1, 60),
    inner_steps=st.integers(1, 8),
    inner_rate=st.floats(0.05, 2),
)


def test_amplification_by_hand():
    assert noise_amplification(0.5, 5, 8.0, 4) == pytest.approx(32)
    assert feature_amplification(0.5, 2, 1.0) == pytest.approx(1.25**2)


def test_growth_beyond_all_numbers_is_infinite():
    assert feature_amplification(2.0, 1063.4, 1.0) == math.inf
    assert noise_amplification(2.0, 1e4, 8.0, 4) == math.inf


@settings(max_examples=60, deadline=None)
@example(noise_energy=3.0078125, tasks=4, inner_steps=1, inner_rate=2.0)
@given(**SIZES)
def test_critical_values_make_the_rates_equal(noise_energy, tasks, inner_steps, inner_rate):
    point = dict(
        samples=6, support=3, noise_energy=noise_energy, tasks=tasks, inner_steps=inner_steps, inner_rate=inner_rate
    )
    effect = predict_split_effect(**point)
    for name, value in (("tasks", effect.critical_tasks), ("noise_energy", effect.critical_noise_energy)):
        there = predict_split_effect(**{**point, name: value}).train_train
        assert there.feature == pytest.approx(there.noise, rel=1e-6)
    if effect.critical_inner_steps is not None:
        there = predict_split_effect(**{**point, "inner_steps": effect.critical_inner_steps}).train_train
        assert there.feature == pytest.approx(there.noise, rel=1e-6)
    there = predict_split_effect(**{**point, "noise_energy": effect.critical_noise_energy_train_val}).train_val
    assert there.feature == pytest.approx(there.noise, rel=1e-6)
    pooled = predict_split_effect(**{**point, "inner_steps": 0, "tasks": effect.critical_tasks_pooled}).train_train
    assert pooled.feature == pytest.approx(pooled.noise, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(**SIZES)
def test_a_split_never_helps_the_noise_of_large_halves(noise_energy, tasks, inner_steps, inner_rate):
    effect = predict_split_effect(noise_energy, 6, 3, tasks, inner_steps, inner_rate)
    assert effect.train_val.feature == effect.train_train.feature
    assert effect.train_val.noise_gain == 1
    more = predict_split_effect(noise_energy, 6, 3, tasks, inner_steps + 1, inner_rate)
    assert more.train_val.noise == effect.train_val.noise
    assert more.train_train.noise > effect.train_train.noise


def test_times_and_first():
    effect = predict_split_effect(**BASE, initial_scale=1e-4, outer_rate=0.05)
    feature, noise = effect.steps_train_train
    assert noise < feature
    assert effect.first_train_train == "noise"
    assert predict_split_effect(**BASE).first_train_train is None
    assert effect.train_train.apart == pytest.approx(6.4 / (0.5 * 1.25**5), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(support=4), "support"),
        (dict(noise_energy=0.0), "positive"),
        (dict(tasks=0), "positive"),
        (dict(inner_steps=-1), "inner_steps must be at least 0"),
        (dict(inner_rate=-0.1), "inner_rate must be at least 0"),
        (dict(knee=0.0), "positive"),
        (dict(class_share=1.0), "class_share"),
    ],
)
def test_nonsense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        predict_split_effect(**{**BASE, **change})
