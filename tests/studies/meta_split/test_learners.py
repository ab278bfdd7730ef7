"""The engine against weights and inputs, and the exact symmetries of the algorithm."""

from dataclasses import replace

import pytest
import torch

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.studies.meta_split import theory
from assay.studies.meta_split.controls.learners import TwoLayerCNN, train_direct
from assay.studies.meta_split.learners import (
    SPLITS,
    Conditions,
    Unseen,
    adapt,
    margins,
    split_weights,
    train,
)
from assay.studies.meta_split.problem import Coupling, Products, SharedFeature
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = SharedFeature(50, 8, 3, 6, 3)
TASKS = PROBLEM.sample(SEEDS)
START = 0.2 * SEEDS.normal("filters", 6, 50)
CELL = ("train-validation", 0.5, 0.3, 2, 0.5)


def last(cell=CELL, tasks=TASKS, start=START, steps=5):
    conditions = Conditions.of([cell], SEEDS, tasks.labels.shape[-1], tasks.support)
    return next(train(Products.of(tasks, start), Coupling.of(tasks, tasks), conditions, steps, [steps]))


def weights_of(look, tasks=TASKS, start=START):
    return start + look.noise @ tasks.noise.flatten(1, 2) + look.feature @ tasks.features


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("J", [0, 1, 5])
@pytest.mark.parametrize("knee", [0.5, theory.RELU_KNEE])
def test_the_engine_is_the_direct_one(split, J, knee):
    cell = (split, 0.5, 0.3, J, knee)
    direct, look = train_direct(TASKS, START, cell, 5), last(cell)
    torch.testing.assert_close(weights_of(look), direct, rtol=0, atol=1e-12)
    products = Products.of(TASKS, direct)
    for name in ("noise", "feature", "shared"):
        torch.testing.assert_close(getattr(look.before, name), getattr(products, name), rtol=0, atol=1e-10)
    conditions = Conditions.of([cell], SEEDS, 6, 3)
    meta = theory.loss(margins(adapt(products, conditions), conditions.knee))
    outer = split_weights(split, 6, 3)[1]
    torch.testing.assert_close(look.meta_loss, (outer * meta).sum(-1).mean(-1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("J", [0, 3])
def test_fomaml_for_any_module_is_the_engine(split, J):
    look = last((split, 0.5, 0.3, J, 0.5), steps=3)
    for seed in range(2):
        model = TwoLayerCNN(START[seed], 0.5)
        halves = (torch.arange(3), torch.arange(3, 6))
        tasks = [Task(TASKS.inputs[seed, k], TASKS.labels[seed, k], *halves) for k in range(3)]
        method = Fomaml(0.5, J, split="train-train" if split == "train-train" else "train-val")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        for step in range(3):
            method.step(
                model, tasks, lambda f, y: theory.loss(y * f).mean(), optimizer, generator=torch.Generator(), step=step
            )
        torch.testing.assert_close(model.filters.detach(), weights_of(look)[seed], rtol=0, atol=1e-12)


def test_stacked_cells_are_the_cells_one_by_one():
    cells = [("train-train", 0.5, 0.3, 5, 0.5), ("train-validation", 0.1, 0.2, 1, 0.3), ("leaked", 0.5, 0.3, 0, 0.5)]
    conditions = Conditions.of(cells, SEEDS, 6, 3)
    parts = Products.of(TASKS, START).stacked(3), Coupling.of(TASKS, TASKS).stacked(3)
    together = next(train(*parts, conditions, 4, [4]))
    for place, cell in enumerate(cells):
        alone = last(cell, steps=4)
        mine = slice(2 * place, 2 * place + 2)
        torch.testing.assert_close(together.before.noise[mine], alone.before.noise, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(together.losses[mine], alone.losses, rtol=1e-12, atol=1e-14)


def test_without_inner_steps_it_is_pooled_descent():
    weights = START
    for _ in range(5):
        pooled = TASKS.inputs.flatten(1, 2)
        share = torch.full((18,), 1 / 18, dtype=torch.float64)
        weights = weights - 0.3 * theory.gradient(weights, pooled, TASKS.labels.flatten(1), share, 0.5)
    torch.testing.assert_close(weights_of(last(("train-train", 0.5, 0.3, 0, 0.5))), weights, rtol=0, atol=1e-12)
    weights = START
    for _ in range(5):
        pooled, labels = TASKS.inputs[:, :, 3:].flatten(1, 2), TASKS.labels[:, :, 3:].flatten(1)
        share = torch.full((9,), 1 / 9, dtype=torch.float64)
        weights = weights - 0.3 * theory.gradient(weights, pooled, labels, share, 0.5)
    torch.testing.assert_close(weights_of(last(("train-validation", 0.5, 0.3, 0, 0.5))), weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("split", SPLITS)
def test_an_inner_rate_of_zero_is_no_inner_step(split):
    a, b = last((split, 0.0, 0.3, 5, 0.5)), last((split, 0.5, 0.3, 0, 0.5))
    assert torch.equal(a.before.noise, b.before.noise)


@pytest.mark.parametrize("split", SPLITS)
def test_an_outer_rate_of_zero_moves_nothing(split):
    look = last((split, 0.5, 0.0, 2, 0.5))
    assert torch.equal(look.before.noise, Products.of(TASKS, START).noise)
    assert float(look.noise.abs().amax()) == 0


def test_leaked_halves_are_train_train_on_that_half():
    half = replace(
        TASKS,
        noise=TASKS.noise[:, :, [0, 1, 2, 0, 1, 2]],
        labels=TASKS.labels[..., [0, 1, 2, 0, 1, 2]],
        signal_patch=TASKS.signal_patch[..., [0, 1, 2, 0, 1, 2]],
    )
    leaked, everything = last(("leaked", 0.5, 0.3, 2, 0.5)), last(("train-train", 0.5, 0.3, 2, 0.5), half)
    torch.testing.assert_close(weights_of(leaked), weights_of(everything, half), rtol=0, atol=1e-12)


def permuted(order):
    return replace(
        TASKS,
        noise=TASKS.noise[:, :, order],
        labels=TASKS.labels[..., order],
        signal_patch=TASKS.signal_patch[..., order],
        allow_degenerate=True,
    )


def test_order_of_tasks_and_within_halves_does_not_matter():
    other = replace(
        TASKS,
        own=TASKS.own.flip(1),
        noise=TASKS.noise.flip(1),
        labels=TASKS.labels.flip(1),
        signal_patch=TASKS.signal_patch.flip(1),
    )
    torch.testing.assert_close(weights_of(last()), weights_of(last(tasks=other), other), rtol=0, atol=1e-12)
    inside = permuted([2, 0, 1, 4, 3, 5])
    torch.testing.assert_close(weights_of(last()), weights_of(last(tasks=inside), inside), rtol=0, atol=1e-12)
    across = permuted([3, 1, 2, 0, 4, 5])
    assert float((weights_of(last()) - weights_of(last(tasks=across), across)).abs().amax()) > 1e-3


def test_only_validation_noise_enters_the_weights_with_a_split():
    look = last()
    kept = look.noise.unflatten(-1, (3, 6))
    assert float(kept[..., :3].abs().amax()) == 0
    assert float(kept[..., 3:].abs().amax()) > 0
    span = torch.cat([TASKS.noise.flatten(1, 2), TASKS.features], 1)
    moved = train_direct(TASKS, START, CELL, 5) - START
    basis = torch.linalg.qr(span.mT).Q
    outside = moved - (moved @ basis) @ basis.mT
    assert float(outside.abs().amax()) < 1e-12


def test_exchanging_the_filter_groups():
    swapped = START.roll(3, 1)
    tasks = replace(TASKS, labels=-TASKS.labels, sign=TASKS.labels)
    assert torch.equal(tasks.inputs, TASKS.inputs)
    a, b = (theory.outputs(w.unsqueeze(1), TASKS.inputs, 0.5) for w in (START, swapped))
    torch.testing.assert_close(a, -b, rtol=0, atol=1e-12)
    ours, theirs = weights_of(last()), weights_of(last(tasks=tasks, start=swapped), tasks, swapped)
    torch.testing.assert_close(ours, theirs.roll(3, 1), rtol=0, atol=1e-12)


def test_task_features_never_fall_when_they_agree():
    tasks = replace(PROBLEM, basis="orthogonal").sample(SEEDS)
    conditions = Conditions.of([("train-train", 0.5, 0.3, 3, 0.5)], SEEDS, 6, 3)
    products, coupling = Products.of(tasks, START), Coupling.of(tasks, tasks)
    assert float(coupling.feature.min()) >= 0
    states = [look.before.feature for look in train(products, coupling, conditions, 20, range(21))]
    gains = torch.stack(states).diff(dim=0) * products.groups.unsqueeze(1)
    assert float(gains.min()) >= 0
    inner = [adapt(products, replace(conditions, inner_steps=torch.full((2,), steps))) for steps in range(5)]
    gains = torch.stack([state.feature for state in inner]).diff(dim=0) * products.groups.unsqueeze(1)
    assert float(gains.min()) >= 0


def test_the_shared_feature_after_adaptation():
    look = last(("train-train", 0.5, 0.3, 3, 0.5), steps=2)
    weights = weights_of(look)
    adapted = weights.unsqueeze(1).expand(-1, 3, -1, -1)
    share = torch.full((6,), 1 / 6, dtype=torch.float64)
    for _ in range(3):
        adapted = adapted - 0.5 * theory.gradient(adapted, TASKS.inputs, TASKS.labels, share, 0.5)
    torch.testing.assert_close(look.shared_after(), adapted[..., 0], rtol=0, atol=1e-12)
    noise = torch.einsum("sknd,skmd->skmn", TASKS.noise, adapted)
    torch.testing.assert_close(look.after.noise, noise, rtol=0, atol=1e-12)


def test_new_tasks_are_evaluated_as_on_weights():
    fresh = PROBLEM.sample_unseen(SEEDS, 4, 3 + 5)
    conditions = Conditions.of([CELL], SEEDS, 6, 3)
    unseen = Unseen(Products.of(fresh, START), Coupling.of(TASKS, fresh), 3)
    look = last()
    found = unseen.evaluate(look, conditions)
    weights = weights_of(look).unsqueeze(1)
    margin = (fresh.labels * theory.outputs(weights, fresh.inputs, 0.5))[..., 3:]
    torch.testing.assert_close(found["test_loss"], theory.loss(margin).mean((1, 2)), rtol=0, atol=1e-12)
    adapted = weights.expand(-1, 4, -1, -1)
    share = torch.tensor([1 / 3] * 3 + [0.0] * 5, dtype=torch.float64)
    for _ in range(2):
        adapted = adapted - 0.5 * theory.gradient(adapted, fresh.inputs, fresh.labels, share, 0.5)
    margin = (fresh.labels * theory.outputs(adapted, fresh.inputs, 0.5))[..., 3:]
    torch.testing.assert_close(found["adapted_loss"], theory.loss(margin).mean((1, 2)), rtol=0, atol=1e-12)
    assert torch.equal(found["adapted_accuracy"], (margin > 0).double().mean((1, 2)))


def test_impossible_conditions_are_refused():
    with pytest.raises(ValueError, match="negative"):
        Conditions.of([("train-train", 0.5, 0.3, -1, 0.5)], SEEDS, 6, 3)
    with pytest.raises(ValueError, match="knee"):
        Conditions.of([("train-train", 0.5, 0.3, 1, 0.0)], SEEDS, 6, 3)
    with pytest.raises(ValueError, match="unknown split"):
        split_weights("half", 4, 2)


def test_a_diverging_run_names_its_step():
    with pytest.raises(FloatingPointError, match="outer step 5"):
        last(("train-train", float("nan"), 0.3, 1, 0.5))
