"""Test loss over width, on images and on Gaussian inputs that teachers label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from assay.networks.quadratic import quadratic
from assay.training.seeds import Seeds

from ..injected_inputs.learners import Portion, QuadraticTraining, agreement, losses, teacher_labels, train_teacher
from ..injected_inputs.problem import Labelled, gaussian_inputs


@dataclass(frozen=True)
class WidthPoint:
    """FC(width) trained on images (``teacher`` None) or on Gaussian inputs labelled by FC(teacher); values (seeds,)."""

    teacher: int | None
    width: int
    parameters: int
    train_loss: Tensor
    test_loss: Tensor
    test_accuracy: Tensor


def double_descent(
    data: Labelled,
    seeds: Seeds,
    *,
    widths: Sequence[int],
    teachers: Sequence[int] = (9, 50, 500),
    classes: int = 10,
    training: QuadraticTraining = QuadraticTraining(),
    teaching: QuadraticTraining = QuadraticTraining(),
) -> Iterator[WidthPoint]:
    """Test loss over width: first the images' own labels, then Gaussian inputs labelled by teachers of each width."""
    inputs, test_inputs = gaussian_inputs(data, seeds)
    for teacher_width in (None, *teachers):
        task = data
        if teacher_width:
            teacher = train_teacher(data, inputs, seeds, width=teacher_width, classes=classes, training=teaching)
            task = Labelled(inputs, teacher_labels(teacher, inputs), test_inputs, teacher_labels(teacher, test_inputs))
        for width in widths:
            own = Portion(task.inputs, task.labels)
            fitted = training.fit(seeds, f"width {width}", width, classes, [own])
            train_loss = losses(quadratic(fitted, task.inputs), task.labels).cpu()
            test_loss = losses(quadratic(fitted, task.test_inputs), task.test_labels).cpu()
            accuracy = agreement(fitted, task.test_inputs, task.test_labels)
            count = sum(value[0].numel() for value in fitted.values())
            yield WidthPoint(teacher_width, width, count, train_loss, test_loss, accuracy)
