from dataclasses import replace

import pytest
import torch

from assay.data.images import ImageSet, load_images, two_classes
from assay.networks.quadratic import quadratic
from assay.studies.feature_emergence.image_networks import ResNetFilters, standardized, two_layer_weights
from assay.studies.feature_emergence.injected_inputs import (
    Part,
    QuadraticTraining,
    double_descent,
    gaussian_inputs,
    image_inputs,
    injected_inputs,
    labelled,
    teacher_labels,
    train_teacher,
)
from assay.training.seeds import Seeds


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", limit=400), load_images("digits", "test", limit=200)


@pytest.fixture(scope="module")
def pair(digits):
    return [two_classes(each, 0, 1) for each in digits]


def test_standardized_inputs_are_centred_with_unit_mean_variance(digits):
    train, test = standardized(*digits)
    assert train.mean(dim=0).abs().max() < 1e-5
    assert train.var(dim=0, correction=0).mean().item() == pytest.approx(1, abs=1e-5)
    assert test.shape == (200, 64)


def test_two_layer_weights_learn_and_move_early(pair):
    epochs = list(two_layer_weights(*pair, Seeds((0, 1)), width=20, epochs=20, batch=20, init_scale=0.1))
    assert [each.epoch for each in epochs] == list(range(21))
    assert epochs[-1].weights.shape == (2, 20, 64)
    assert (epochs[-1].test_accuracy > 0.95).all()
    assert (epochs[0].movement == 0).all()
    early, late = (torch.stack([each.movement for each in part]).sum(dim=0) for part in (epochs[1:11], epochs[11:]))
    assert (early > late).all()
    moved = (epochs[3].weights - epochs[2].weights).norm(dim=(1, 2)) / epochs[0].weights.norm(dim=(1, 2))
    torch.testing.assert_close(epochs[3].movement, moved)


def test_the_first_step_follows_autograd_of_one_seed(pair):
    train, test = (replace(each, images=each.images[:8], labels=each.labels[:8]) for each in pair)
    start, end = two_layer_weights(train, test, Seeds((3,)), width=4, epochs=1, batch=8, learning_rate=0.5)
    inputs, labels = standardized(train)[0], train.labels.float()
    head = Seeds((3,)).normal("head", 4)[0] / 2
    weights = start.weights[0].clone().requires_grad_()
    margins = labels * (torch.relu(inputs @ weights.T) @ head)
    (gradient,) = torch.autograd.grad(torch.log1p(torch.exp(-margins)).mean(), weights)
    torch.testing.assert_close(end.weights[0], start.weights[0] - 0.5 * gradient)


def test_two_layer_seeds_do_not_depend_on_their_company(pair):
    together = list(two_layer_weights(*pair, Seeds((0, 7)), width=5, epochs=2, batch=20))
    alone = list(two_layer_weights(*pair, Seeds((7,)), width=5, epochs=2, batch=20))
    torch.testing.assert_close(together[-1].weights[1], alone[-1].weights[0], rtol=1e-4, atol=1e-5)


SMALL = ResNetFilters(width=2, epochs=2, snapshots=(0, 1, 2), chunks=3, chunk_steps=2, batch=16, keep=3)


def test_resnet_filters_have_the_stated_shapes(pair):
    report = SMALL.train(*pair, Seeds((0, 1)))
    assert set(report.filters) == set(report.test_accuracy) == {0, 1, 2}
    assert [tuple(stage.shape) for stage in report.filters[0]] == [(2, 2, 18), (2, 3, 36), (2, 3, 72), (2, 3, 144)]
    assert [tuple(stage.shape) for stage in report.chunk_means] == [
        (2, 3, 2, 18), (2, 3, 3, 36), (2, 3, 3, 72), (2, 3, 3, 144)
    ]  # fmt: skip
    assert not torch.equal(report.filters[0][0], report.filters[2][0])
    assert report.test_accuracy[2].shape == (2,)


def test_the_chunks_are_the_gradients_of_plain_descent(pair):
    plain = replace(SMALL, epochs=1, snapshots=(0, 1), chunks=1, chunk_steps=4, momentum=0.0, learning_rate=0.1)
    train = replace(pair[0], images=pair[0].images[:64], labels=pair[0].labels[:64])
    report = plain.train(train, pair[1], Seeds((0,)))
    for before, after, mean in zip(report.filters[0], report.filters[1], report.chunk_means, strict=True):
        torch.testing.assert_close(after - before, -0.1 * 4 * mean[:, 0], rtol=1e-3, atol=1e-6)


def test_shuffled_labels_change_the_gradients_but_not_the_start(pair):
    true, null = (replace(SMALL, shuffle_labels=each).train(*pair, Seeds((0,))) for each in (False, True))
    assert torch.equal(true.filters[0][3], null.filters[0][3])
    assert not torch.equal(true.chunk_means[3], null.chunk_means[3])
    again = SMALL.train(*pair, Seeds((5, 0)))
    torch.testing.assert_close(again.chunk_means[2][1], true.chunk_means[2][0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change", [{"snapshots": (0, 3)}, {"chunk_steps": 100}])
def test_impossible_schedules_are_refused(pair, change):
    with pytest.raises(ValueError, match=r"snapshots|more steps"):
        replace(SMALL, **change).train(*pair, Seeds((0,)))


QUICK = QuadraticTraining(steps=80, batch=200, learning_rate=1e-2)


def test_injected_noise_is_learned_less_than_the_images(digits):
    seeds = Seeds((0, 1))
    data = labelled(*digits, seeds)
    report = injected_inputs(data, gaussian_inputs(data, seeds), seeds, student_width=30, fractions=(0.25, 0.5),
                             teaching=QUICK, studying=QUICK, evaluate_every=30)  # fmt: skip
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
        parts = [Part(data.inputs, data.labels, 0.5), Part(noise, data.labels, 0.5)]
        return noise, replace(QUICK, steps=5).fit(seeds, "net", 4, 10, parts)

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


def test_unrelated_images_can_be_injected(digits):
    seeds = Seeds((0,))
    generator = torch.Generator().manual_seed(0)
    other = ImageSet(torch.rand(30, 3, 12, 12, generator=generator), torch.zeros(30, dtype=torch.long), "other", 1)
    inputs, test_inputs = image_inputs(other, other, digits[0], seeds)
    assert inputs.shape == test_inputs.shape == (1, 30, 64)
    assert inputs.mean().abs() < 1e-5


def test_double_descent_reports_every_width_and_teacher(digits):
    seeds = Seeds((0, 1))
    points = list(double_descent(labelled(*digits, seeds), seeds, widths=(1, 4), teachers=(9,),
                                 training=QUICK, teaching=QUICK))  # fmt: skip
    assert [(point.teacher, point.width) for point in points] == [(None, 1), (None, 4), (9, 1), (9, 4)]
    assert points[1].parameters == 4 * 64 + 4 + 10 * 4 + 10
    assert all(point.test_loss.shape == (2,) and point.test_loss.isfinite().all() for point in points)
    assert (points[1].train_loss < points[0].train_loss).all()


def test_mixtures_and_batches_that_cannot_be_are_refused(digits):
    seeds = Seeds((0,))
    data = labelled(*digits, seeds)
    noise = gaussian_inputs(data, seeds)
    for fraction in (0.0001, 1.0):
        with pytest.raises(ValueError, match="cannot be mixed"):
            injected_inputs(data, noise, seeds, fractions=(fraction,))
    with pytest.raises(ValueError, match="batch of 200"):
        injected_inputs(data, noise, seeds, teaching=replace(QUICK, batch=100))


def test_a_batch_larger_than_the_data_is_refused(pair):
    with pytest.raises(ValueError, match="cannot be drawn"):
        next(two_layer_weights(*pair, Seeds((0,)), batch=1000))
