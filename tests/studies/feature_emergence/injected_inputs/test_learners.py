"""Teachers and students on the digits and on what replaces them."""

from dataclasses import replace

import pytest
import torch

from assay.networks.quadratic import quadratic
from assay.studies.feature_emergence.injected_inputs.learners import (
    Portion,
    QuadraticTraining,
    injected_inputs,
    teacher_labels,
    train_teacher,
)
from assay.studies.feature_emergence.injected_inputs.problem import gaussian_inputs, labelled
from assay.training.seeds import Seeds

QUICK = QuadraticTraining(steps=80, batch=200, learning_rate=1e-2)


def test_injected_noise_is_learned_less_than_the_images(digits):
    seeds = Seeds((0, 1))
    data = labelled(*digits, seeds)
    report = injected_inputs(
        data,
        gaussian_inputs(data, seeds),
        seeds,
        student_width=30,
        fractions=(0.25, 0.5),
        teaching=QUICK,
        studying=QUICK,
        evaluate_every=30,
    )
    assert [curve.fraction for curve in report.curves] == [0.0, 0.25, 0.5]
    assert report.curves[2].steps.tolist() == [0, 30, 60, 80]
    assert report.curves[2].original.shape == (4, 2)
    assert (report.curves[2].original[-1] > report.curves[2].injected[-1] + 0.1).all()
    assert torch.equal(report.curves[0].original[0], report.curves[2].original[0])
    assert (report.teacher_accuracy > 0.6).all()
    torch.testing.assert_close(report.label_shares.sum(dim=1), torch.ones(2))


def test_quadratic_training_is_the_same_alone_and_in_company(digits):
    def fitted(seeds):
        data = labelled(*digits, seeds)
        noise = gaussian_inputs(data, seeds)[0]
        portions = [Portion(data.inputs, data.labels, 0.5), Portion(noise, data.labels, 0.5)]
        return noise, replace(QUICK, steps=5).fit(seeds, "net", 4, 10, portions)

    (noise, together), (own, alone) = fitted(Seeds((0, 6))), fitted(Seeds((6,)))
    assert torch.equal(noise[1], own[0])
    for key, value in alone.items():
        torch.testing.assert_close(together[key][1], value[0], rtol=1e-4, atol=1e-5)


def test_every_seed_is_labelled_by_its_own_teacher(digits):
    seeds = Seeds((0, 1))
    data = labelled(*digits, seeds)
    noise, _ = gaussian_inputs(data, seeds)
    teacher = train_teacher(data, noise, seeds, width=4, classes=10, training=replace(QUICK, steps=3))
    # In float64, in which no two of an input's best classes are as near as rounding: one seed's product is not the
    # batch's, bit for bit.
    teacher, noise = {key: value.double() for key, value in teacher.items()}, noise.double()
    labels = teacher_labels(teacher, noise)
    one = {key: value[1:] for key, value in teacher.items()}
    assert torch.equal(labels[1], quadratic(one, noise[1:]).argmax(dim=-1)[0])


def test_mixtures_and_batches_that_cannot_be_are_refused(digits):
    seeds = Seeds((0,))
    data = labelled(*digits, seeds)
    noise = gaussian_inputs(data, seeds)
    for fraction in (0.0001, 1.0):
        with pytest.raises(ValueError, match="cannot be mixed"):
            injected_inputs(data, noise, seeds, fractions=(fraction,))
    with pytest.raises(ValueError, match="batch of 200"):
        injected_inputs(data, noise, seeds, teaching=replace(QUICK, batch=100))
