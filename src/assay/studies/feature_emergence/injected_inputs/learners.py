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

from assay.methods.input_replacement import balance_regularizer, confidence_regularizer
from assay.methods.replacement_report import ReplacementReport, StudentCurves
from assay.networks.quadratic import quadratic, quadratic_parameters
from assay.training.seeds import Seeds

from .problem import Labelled

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Portion:
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
        self,
        seeds: Seeds,
        name: str,
        width: int,
        classes: int,
        portions: Sequence[Portion],
        *,
        penalty: Callable[[Parameters], Tensor] | None = None,
        look: Callable[[Parameters, int], None] | None = None,
    ) -> Parameters:
        """Stacked parameters of FC(width). Every batch holds ``share * batch`` samples of each portion; ``penalty``
        (seeds,) is added to the loss; ``look(parameters, step)`` sees the network before and after every step."""
        parameters = quadratic_parameters(seeds, name, width, inputs=portions[0].inputs.shape[-1], classes=classes)
        for parameter in parameters.values():
            parameter.requires_grad_()
        optimizer = torch.optim.Adam(list(parameters.values()), lr=self.learning_rate)
        draws = [each.draws(seeds, f"{name}/{i}", self.batch, self.steps) for i, each in enumerate(portions)]
        if look:
            look(parameters, 0)
        for step, drawn in enumerate(zip(*draws, strict=True), start=1):
            inputs, labels = (torch.cat(pieces, dim=1) for pieces in zip(*drawn, strict=True))
            optimizer.zero_grad()
            loss = losses(quadratic(parameters, inputs), labels)
            loss = loss + penalty(parameters) if penalty else loss
            loss.sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if look:
                look(parameters, step)
        return {key: value.detach() for key, value in parameters.items()}


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy per seed of logits (seeds, n, classes)."""
    return functional.cross_entropy(logits.mT, labels, reduction="none").mean(dim=1)


@torch.no_grad()
def agreement(parameters: Parameters, inputs: Tensor, labels: Tensor) -> Tensor:
    """The share of inputs that a network labels so, per seed."""
    return (quadratic(parameters, inputs).argmax(dim=-1) == labels).float().mean(dim=1).cpu()


@torch.no_grad()
def teacher_labels(teacher: Parameters, inputs: Tensor) -> Tensor:
    """Hard labels (seeds, n), each seed by its own teacher."""
    return quadratic(teacher, inputs).argmax(dim=-1)


def train_teacher(
    data: Labelled,
    injected: Tensor,
    seeds: Seeds,
    *,
    width: int,
    classes: int,
    training: QuadraticTraining,
    regularizer_weight: float = 1.0,
    confidence_weight: float = 0.1,
) -> Parameters:
    """FC(width) trained on the labels and, by R1 + λ R2, towards confident and balanced classes on injected inputs."""
    if training.batch < 20 * classes:
        raise ValueError(f"balancing {classes} classes needs a batch of {20 * classes} or more, not {training.batch}")
    blank = torch.zeros(injected.shape[:2], dtype=torch.long, device=injected.device)
    drawn = Portion(injected, blank).draws(seeds, f"teacher {width} injected", training.batch, training.steps)

    def penalty(parameters: Parameters) -> Tensor:
        chances = quadratic(parameters, next(drawn)[0]).softmax(dim=-1)
        return regularizer_weight * (balance_regularizer(chances) + confidence_weight * confidence_regularizer(chances))

    own = Portion(data.inputs, data.labels)
    return training.fit(seeds, f"teacher {width}", width, classes, [own], penalty=penalty)


def injected_inputs(
    data: Labelled,
    injected: tuple[Tensor, Tensor],
    seeds: Seeds,
    *,
    classes: int = 10,
    teacher_width: int = 9,
    student_width: int = 50,
    fractions: Sequence[float] = (0.5,),
    evaluate_every: int = 20,
    teaching: QuadraticTraining = QuadraticTraining(),
    studying: QuadraticTraining = QuadraticTraining(),
) -> ReplacementReport:
    """The input-replacement test with FC teachers and students. ``curves[0]`` learns from original inputs alone; all
    students of a seed start from the same weights. Accuracy is agreement with the teacher on test inputs."""
    if not all(0 < round(fraction * studying.batch) < studying.batch for fraction in fractions):
        raise ValueError(f"a batch of {studying.batch} cannot be mixed by fractions {tuple(fractions)}")
    teacher = train_teacher(data, injected[0], seeds, width=teacher_width, classes=classes, training=teaching)
    labels, injected_labels = (teacher_labels(teacher, inputs) for inputs in (data.inputs, injected[0]))
    tests = [(inputs, teacher_labels(teacher, inputs)) for inputs in (data.test_inputs, injected[1])]
    curves = []
    for fraction in (0.0, *fractions):
        portions = [Portion(data.inputs, labels, 1 - fraction)]
        portions += [Portion(injected[0], injected_labels, fraction)] if fraction else []
        curve = _student_curve(seeds, student_width, classes, portions, tests, studying, evaluate_every)
        curves.append(StudentCurves(fraction, *curve))
    shares = functional.one_hot(tests[1][1], classes).float().mean(dim=1).cpu()
    return ReplacementReport(tuple(curves), agreement(teacher, data.test_inputs, data.test_labels), shares)


def _student_curve(
    seeds: Seeds,
    width: int,
    classes: int,
    portions: list[Portion],
    tests: list[tuple[Tensor, Tensor]],
    studying: QuadraticTraining,
    evaluate_every: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Steps (points,), and accuracy (points, seeds) on original and on injected test inputs."""
    steps: list[int] = []
    seen: list[list[Tensor]] = []

    def look(parameters: Parameters, step: int) -> None:
        if step % evaluate_every == 0 or step == studying.steps:
            steps.append(step)
            seen.append([agreement(parameters, inputs, wanted) for inputs, wanted in tests])

    studying.fit(seeds, f"student {width}", width, classes, portions, look=look)
    original, replaced = (torch.stack(values) for values in zip(*seen, strict=True))
    return torch.tensor(steps), original, replaced
