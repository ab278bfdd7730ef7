"""FC(m) teachers and students on images and on inputs that replace them, all seeds at once.

The source leaves most training settings open. Defaults here were chosen by how well the original task is learned, on
the digits and on part of MNIST, before any criterion was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import ImageSet, conform
from assay.methods.input_replacement import (
    ReplacementReport,
    StudentCurves,
    balance_regularizer,
    confidence_regularizer,
)
from assay.networks.quadratic import quadratic, quadratic_parameters
from assay.training.seeds import Seeds

from .image_networks import standardized

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Labelled:
    """Inputs (seeds, n, dim), possibly one set seen by all seeds, with labels (seeds, n), for training and testing."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


def labelled(train: ImageSet, test: ImageSet, seeds: Seeds) -> Labelled:
    """Standardised images for every seed, without copies."""

    def shared(values: Tensor) -> Tensor:
        return values.to(seeds.device).expand(len(seeds), *values.shape)

    inputs, test_inputs = (part.to(seeds.dtype) for part in standardized(train, test))
    return Labelled(shared(inputs), shared(train.labels), shared(test_inputs), shared(test.labels))


def gaussian_inputs(like: Labelled, seeds: Seeds) -> tuple[Tensor, Tensor]:
    """Standard normal inputs for training and testing, as many as there are images; every seed has its own."""
    shapes = (like.inputs.shape[1:], like.test_inputs.shape[1:])
    return seeds.normal("injected", *shapes[0]), seeds.normal("injected test", *shapes[1])


def image_inputs(train: ImageSet, test: ImageSet, like: ImageSet, seeds: Seeds) -> tuple[Tensor, Tensor]:
    """Unrelated images for training and testing, brought to the size of the labelled ones and standardised."""
    other = labelled(conform(train, like), conform(test, like), seeds)
    return other.inputs, other.test_inputs


@dataclass(frozen=True)
class Part:
    """Inputs (seeds, n, dim) with labels (seeds, n), and the share of a batch that comes from them."""

    inputs: Tensor
    labels: Tensor
    share: float = 1.0

    def draws(self, seeds: Seeds, name: str, batch: int, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
        each = torch.arange(len(seeds), device=self.inputs.device).unsqueeze(1)
        for index in seeds.batches(name, self.inputs.shape[1], round(self.share * batch), steps):
            yield self.inputs[each, index], self.labels[each, index]


@dataclass(frozen=True)
class QuadraticTraining:
    """How FC(m) is trained, all seeds at once: Adam on cross-entropy."""

    steps: int = 500
    batch: int = 200
    learning_rate: float = 3e-3

    def fit(
        self, seeds: Seeds, name: str, width: int, classes: int, parts: Sequence[Part], *,
        penalty: Callable[[Parameters], Tensor] | None = None, look: Callable[[Parameters, int], None] | None = None,
    ) -> Parameters:  # fmt: skip
        """Stacked parameters of FC(width). Every batch holds ``share * batch`` samples of each part; ``penalty``
        (seeds,) is added to the loss; ``look(parameters, step)`` sees the network before and after every step."""
        parameters = quadratic_parameters(seeds, name, width, inputs=parts[0].inputs.shape[-1], classes=classes)
        for parameter in parameters.values():
            parameter.requires_grad_()
        optimizer = torch.optim.Adam(list(parameters.values()), lr=self.learning_rate)
        draws = [part.draws(seeds, f"{name}/{i}", self.batch, self.steps) for i, part in enumerate(parts)]
        if look:
            look(parameters, 0)
        for step, drawn in enumerate(zip(*draws, strict=True), start=1):
            inputs, labels = (torch.cat(pieces, dim=1) for pieces in zip(*drawn, strict=True))
            optimizer.zero_grad()
            loss = _losses(quadratic(parameters, inputs), labels)
            loss = loss + penalty(parameters) if penalty else loss
            loss.sum().backward()
            optimizer.step()
            if look:
                look(parameters, step)
        return {key: value.detach() for key, value in parameters.items()}


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy per seed of logits (seeds, n, classes)."""
    return functional.cross_entropy(logits.mT, labels, reduction="none").mean(dim=1)


@torch.no_grad()
def _agreement(parameters: Parameters, inputs: Tensor, labels: Tensor) -> Tensor:
    return (quadratic(parameters, inputs).argmax(dim=-1) == labels).float().mean(dim=1).cpu()


@torch.no_grad()
def teacher_labels(teacher: Parameters, inputs: Tensor) -> Tensor:
    """Hard labels (seeds, n), each seed by its own teacher."""
    return quadratic(teacher, inputs).argmax(dim=-1)


def train_teacher(
    data: Labelled, injected: Tensor, seeds: Seeds, *, width: int, classes: int, training: QuadraticTraining,
    regularizer_weight: float = 1.0, confidence_weight: float = 0.1,
) -> Parameters:  # fmt: skip
    """FC(width) trained on the labels and, by R1 + λ R2, towards confident and balanced classes on injected inputs."""
    if training.batch < 20 * classes:
        raise ValueError(f"balancing {classes} classes needs a batch of {20 * classes} or more, not {training.batch}")
    blank = torch.zeros(injected.shape[:2], dtype=torch.long, device=injected.device)
    drawn = Part(injected, blank).draws(seeds, f"teacher {width} injected", training.batch, training.steps)

    def penalty(parameters: Parameters) -> Tensor:
        chances = quadratic(parameters, next(drawn)[0]).softmax(dim=-1)
        return regularizer_weight * (balance_regularizer(chances) + confidence_weight * confidence_regularizer(chances))

    part = Part(data.inputs, data.labels)
    return training.fit(seeds, f"teacher {width}", width, classes, [part], penalty=penalty)


def injected_inputs(
    data: Labelled, injected: tuple[Tensor, Tensor], seeds: Seeds, *, classes: int = 10, teacher_width: int = 9,
    student_width: int = 50, fractions: Sequence[float] = (0.5,), evaluate_every: int = 20,
    teaching: QuadraticTraining = QuadraticTraining(), studying: QuadraticTraining = QuadraticTraining(),
    regularizer_weight: float = 1.0, confidence_weight: float = 0.1,
) -> ReplacementReport:  # fmt: skip
    """The input-replacement test with FC teachers and students. ``curves[0]`` learns from original inputs alone; all
    students of a seed start from the same weights. Accuracy is agreement with the teacher on test inputs."""
    if not all(0 < round(fraction * studying.batch) < studying.batch for fraction in fractions):
        raise ValueError(f"a batch of {studying.batch} cannot be mixed by fractions {tuple(fractions)}")
    teacher = train_teacher(
        data, injected[0], seeds, width=teacher_width, classes=classes, training=teaching,
        regularizer_weight=regularizer_weight, confidence_weight=confidence_weight,
    )  # fmt: skip
    labels, injected_labels = (teacher_labels(teacher, inputs) for inputs in (data.inputs, injected[0]))
    tests = [(inputs, teacher_labels(teacher, inputs)) for inputs in (data.test_inputs, injected[1])]
    curves = []
    for fraction in (0.0, *fractions):
        parts = [Part(data.inputs, labels, 1 - fraction)]
        parts += [Part(injected[0], injected_labels, fraction)] if fraction else []
        curve = _student_curve(seeds, student_width, classes, parts, tests, studying, evaluate_every)
        curves.append(StudentCurves(fraction, *curve))
    shares = functional.one_hot(tests[1][1], classes).float().mean(dim=1).cpu()
    return ReplacementReport(tuple(curves), _agreement(teacher, data.test_inputs, data.test_labels), shares)


def _student_curve(
    seeds: Seeds, width: int, classes: int, parts: list[Part], tests: list[tuple[Tensor, Tensor]],
    studying: QuadraticTraining, evaluate_every: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Steps (points,), and accuracy (points, seeds) on original and on injected test inputs."""
    steps: list[int] = []
    seen: list[list[Tensor]] = []

    def look(parameters: Parameters, step: int) -> None:
        if step % evaluate_every == 0 or step == studying.steps:
            steps.append(step)
            seen.append([_agreement(parameters, inputs, wanted) for inputs, wanted in tests])

    studying.fit(seeds, f"student {width}", width, classes, parts, look=look)
    original, replaced = (torch.stack(values) for values in zip(*seen, strict=True))
    return torch.tensor(steps), original, replaced


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
    data: Labelled, seeds: Seeds, *, widths: Sequence[int], teachers: Sequence[int] = (9, 50, 500), classes: int = 10,
    training: QuadraticTraining = QuadraticTraining(), teaching: QuadraticTraining = QuadraticTraining(),
    regularizer_weight: float = 1.0, confidence_weight: float = 0.1,
) -> Iterator[WidthPoint]:  # fmt: skip
    """Test loss over width: first the images' own labels, then Gaussian inputs labelled by teachers of each width."""
    inputs, test_inputs = gaussian_inputs(data, seeds)
    for teacher_width in (None, *teachers):
        task = data
        if teacher_width:
            teacher = train_teacher(
                data, inputs, seeds, width=teacher_width, classes=classes, training=teaching,
                regularizer_weight=regularizer_weight, confidence_weight=confidence_weight,
            )  # fmt: skip
            task = Labelled(inputs, teacher_labels(teacher, inputs), test_inputs, teacher_labels(teacher, test_inputs))
        for width in widths:
            part = Part(task.inputs, task.labels)
            fitted = training.fit(seeds, f"width {width}", width, classes, [part])
            losses = [
                _losses(quadratic(fitted, x), y).cpu()
                for x, y in ((task.inputs, task.labels), (task.test_inputs, task.test_labels))
            ]
            accuracy = _agreement(fitted, task.test_inputs, task.test_labels)
            count = sum(value[0].numel() for value in fitted.values())
            yield WidthPoint(teacher_width, width, count, losses[0], losses[1], accuracy)
