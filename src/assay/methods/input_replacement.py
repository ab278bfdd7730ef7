"""The label-preserving input-replacement test: does a network need the structure of its inputs to learn a function?

A teacher of the right size labels both the original inputs and injected ones (noise, unrelated images); a student
learns the teacher's function on a mixture. Where learning relies on the inputs' structure, the injected part lags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.methods._checks import check_fields, limits
from assay.methods._data import as_classes, checked, joined, rows_of, size_of, split_batch
from assay.methods._models import answer, evaluating
from assay.methods._precision import uncached_casts
from assay.methods._training import own_training
from assay.training.seeds import stream

from .replacement_report import ReplacementReport, StudentCurves
from .size_curve import SizeCurve, first_local_minimum

Make = Callable[[int], nn.Module]


def balance_regularizer(probabilities: Tensor) -> Tensor:
    """R1 = Σ_j p̄_j ln p̄_j of the batch's mean class probabilities: (..., batch, classes) -> (...). At least
    -ln C, and equal to it only when all classes are equally frequent."""
    mean = probabilities.mean(dim=-2)
    return (mean * _safe_log(mean)).sum(dim=-1)


def confidence_regularizer(probabilities: Tensor) -> Tensor:
    """R2, the mean entropy of the predictions: (..., batch, classes) -> (...). Between 0 (certain) and ln C."""
    return -(probabilities * _safe_log(probabilities)).sum(dim=-1).mean(dim=-1)


def _safe_log(probabilities: Tensor) -> Tensor:
    """Finite at zero, and so is its gradient."""
    return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()


@dataclass(frozen=True)
class ReplacementData:
    """Inputs (n, ...), tensors, arrays or mappings of either, with labels (n,) for training and testing, and injected
    inputs for both, without labels."""

    inputs: Any
    labels: Any
    test_inputs: Any
    test_labels: Any
    injected: Any
    injected_test: Any

    def __post_init__(self) -> None:
        names = ("inputs", "test_inputs", "injected", "injected_test")
        for name in names:
            object.__setattr__(self, name, checked(split_batch(getattr(self, name))[0]))
        for name, inputs in (("labels", self.inputs), ("test_labels", self.test_inputs)):
            object.__setattr__(self, name, as_classes(getattr(self, name), size_of(inputs)).to(_device(inputs)))
        if (
            any(size_of(getattr(self, name)) == 0 for name in names)
            or len({_shape(getattr(self, n)) for n in names}) != 1
        ):
            raise ValueError("inputs must not be empty and must have one shape, and every original one needs one label")


def _shape(inputs: Any) -> Any:
    """The shape of one sample."""
    return tuple((k, _shape(v)) for k, v in inputs.items()) if isinstance(inputs, Mapping) else inputs.shape[1:]


def _device(inputs: Any) -> torch.device:
    found: Tensor = next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs
    return found.device


@dataclass(frozen=True)
class InputReplacement:
    """The test's hyper-parameters. ``make(size)`` builds an untrained classifier that returns logits; the method
    seeds torch around the call. Everything runs where the data's tensors are."""

    fractions: tuple[float, ...] = (0.5,)
    regularizer_weight: float = field(default=1.0, metadata=limits(least=0))
    confidence_weight: float = field(default=0.1, metadata=limits(least=0))
    teacher_steps: int = field(default=500, metadata=limits(least=1))
    student_steps: int = field(default=500, metadata=limits(least=1))
    batch: int = field(default=200, metadata=limits(least=1))
    learning_rate: float = field(default=3e-3, metadata=limits(above=0))
    evaluate_every: int = field(default=20, metadata=limits(least=1))

    def __post_init__(self) -> None:
        if not self.fractions or not all(0 < f < 1 for f in self.fractions):
            raise ValueError(f"fractions of injected inputs lie between 0 and 1, both excluded, not {self.fractions}")
        check_fields(self)

    def size_curve(self, make: Make, sizes: Sequence[int], data: ReplacementData, *, seeds: Sequence[int]) -> SizeCurve:
        """Train every size on the labelled inputs; its ``minimum.size`` is the teacher's. Give three seeds or more."""
        losses = torch.tensor([[self._test_loss(make, size, data, seed) for seed in seeds] for size in sizes])
        return SizeCurve(tuple(sizes), losses, first_local_minimum(sizes, losses))

    def teacher(self, make: Make, size: int, data: ReplacementData, *, seed: int) -> nn.Module:
        """A classifier trained on the labelled inputs that also spreads the injected ones over all classes."""
        model = _built(make, size, data.inputs, seed, "teacher")
        classes = _logits(model, rows_of(data.inputs, slice(0, 2))).shape[-1]
        if self.batch < 20 * classes:
            raise ValueError(f"balancing {classes} classes needs a batch of {20 * classes} or more, not {self.batch}")
        injected = _batches(size_of(data.injected), self.batch, self.teacher_steps, seed, "teacher injected")

        def loss(batch: Tensor) -> Tensor:
            # One pass over both parts: batch normalisation must see in training what it will see in use.
            logits = answer(model, joined([rows_of(data.inputs, batch), rows_of(data.injected, next(injected))]))
            chances = logits[len(batch) :].softmax(dim=-1)
            penalty = balance_regularizer(chances) + self.confidence_weight * confidence_regularizer(chances)
            fit = functional.cross_entropy(logits[: len(batch)], data.labels[batch])
            return fit + self.regularizer_weight * penalty

        batches = _batches(len(data.labels), self.batch, self.teacher_steps, seed, "teacher original")
        self._train(model, loss, batches, seed, "teacher")
        return model

    def run(
        self, make: Make, data: ReplacementData, *, teacher_size: int | None, student_size: int, seeds: Sequence[int]
    ) -> ReplacementReport:
        """Teach, relabel, and train one student per seed on original inputs alone and on every mixture."""
        if teacher_size is None:
            raise ValueError("the size curve had no interior minimum: try other sizes, or state the teacher's size")
        teachers = [self.teacher(make, teacher_size, data, seed=seed) for seed in seeds]
        curves = []
        for fraction in (0.0, *self.fractions):
            pairs = zip(teachers, seeds, strict=True)
            students = [self._student(make, student_size, teacher, data, fraction, seed) for teacher, seed in pairs]
            original, injected = torch.tensor(students).permute(2, 1, 0)
            curves.append(StudentCurves(fraction, torch.tensor(self._points()), original, injected))
        classes = _logits(teachers[0], rows_of(data.inputs, slice(0, 2))).shape[-1]
        shares = [torch.bincount(labels_of(t, data.injected_test), minlength=classes) for t in teachers]
        accuracy = [agreement(t, data.test_inputs, data.test_labels) for t in teachers]
        return ReplacementReport(
            tuple(curves), torch.tensor(accuracy), torch.stack(shares).cpu() / size_of(data.injected_test)
        )

    def _points(self) -> list[int]:
        return sorted({*range(0, self.student_steps, self.evaluate_every), self.student_steps})

    def _test_loss(self, make: Make, size: int, data: ReplacementData, seed: int) -> float:
        model = _built(make, size, data.inputs, seed, "size")
        batches = _batches(len(data.labels), self.batch, self.teacher_steps, seed, "size")

        def loss(batch: Tensor) -> Tensor:
            return functional.cross_entropy(answer(model, rows_of(data.inputs, batch)), data.labels[batch])

        self._train(model, loss, batches, seed, "size")
        return functional.cross_entropy(_logits(model, data.test_inputs), data.test_labels).item()

    def _student(
        self, make: Make, size: int, teacher: nn.Module, data: ReplacementData, fraction: float, seed: int
    ) -> list[list[float]]:
        """Agreement with the teacher on the original and on the injected test inputs at every point."""
        model = _built(make, size, data.inputs, seed, "student")
        labels, injected_labels = labels_of(teacher, data.inputs), labels_of(teacher, data.injected)
        test, injected_test = labels_of(teacher, data.test_inputs), labels_of(teacher, data.injected_test)
        share = round(fraction * self.batch)
        if fraction and not 0 < share < self.batch:
            raise ValueError(f"a batch of {self.batch} cannot hold a fraction of {fraction} and its rest")
        drawn = _batches(size_of(data.injected), max(share, 1), self.student_steps, seed, "student injected")

        def loss(batch: Tensor) -> Tensor:
            if not share:
                return functional.cross_entropy(answer(model, rows_of(data.inputs, batch)), labels[batch])
            other = next(drawn)
            inputs = joined([rows_of(data.inputs, batch), rows_of(data.injected, other)])
            return functional.cross_entropy(answer(model, inputs), torch.cat([labels[batch], injected_labels[other]]))

        curve: list[list[float]] = []

        def look(step: int) -> None:
            if step in points:
                parts = ((data.test_inputs, test), (data.injected_test, injected_test))
                curve.append([agreement(model, inputs, wanted) for inputs, wanted in parts])

        points = set(self._points())
        look(0)
        batches = _batches(len(data.labels), self.batch - share, self.student_steps, seed, "student original")
        self._train(model, loss, batches, seed, "student", look)
        return curve

    def _train(
        self,
        model: nn.Module,
        loss: Callable[[Tensor], Tensor],
        batches: Iterator[Tensor],
        seed: int,
        name: str,
        after: Callable[[int], None] = lambda step: None,
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        with own_training(seed, name, model):
            for step, batch in enumerate(batches, start=1):
                model.train()
                optimizer.zero_grad()
                value = loss(batch)
                value.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                after(step)
        if not (bool(value.isfinite()) and all(bool(weight.isfinite().all()) for weight in model.parameters())):
            raise ValueError(f"the loss or a weight of the {name} network of seed {seed} is not finite: lower the rate")


def labels_of(model: nn.Module, inputs: Any) -> Tensor:
    """The classes (n,) that a model gives to inputs; refused where its logits are not numbers."""
    logits = _logits(model, inputs)
    if bool(logits.isnan().any()):
        raise ValueError("some logits are NaN, which is no class: training diverged, or inputs are not finite")
    return logits.argmax(dim=-1)


def agreement(model: nn.Module, inputs: Any, labels: Tensor) -> float:
    """The share of inputs that a model gives these labels."""
    return (labels_of(model, inputs) == labels).float().mean().item()


@torch.no_grad()
def _logits(model: nn.Module, inputs: Any) -> Tensor:
    with evaluating(model), uncached_casts():
        starts = range(0, size_of(inputs), 1000)
        return torch.cat([answer(model, rows_of(inputs, slice(start, start + 1000))) for start in starts])


def _built(make: Make, size: int, like: Any, seed: int, name: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(seed, name).initial_seed())
        return make(size).to(_device(like))


def _batches(n: int, batch: int, steps: int, seed: int, name: str) -> Iterator[Tensor]:
    """Epochs of shuffled indices; a batch larger than the data is all of it."""
    generator, order, at = stream(seed, name), torch.empty(0), n
    for _ in range(steps):
        if at + batch > n:
            order, at = torch.randperm(n, generator=generator), 0
        yield order[at : at + batch]
        at += batch
