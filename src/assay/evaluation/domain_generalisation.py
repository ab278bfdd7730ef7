"""Domain generalisation as it is usually judged: train on all domains but one, choose by held-out samples of the
training domains, report the accuracy on the domain that was left out. Every algorithm has the same tuning budget."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .domain_checks import Check, Course
from .domain_data import Samples
from .domain_report import DomainReport, Outcome
from .domain_training import Algorithm, MakeModel, train

Selection = Literal["validation", "leave-one-out"]


@dataclass(frozen=True)
class LeaveOneDomainOut(Course):
    """The protocol. ``batch`` is per training domain, as in DomainBed: a penalty on features sees all of them at once.
    ``trials`` trainings are compared per algorithm, target and seed: the algorithm as it stands, then draws from its
    ``search`` ranges. Selection ``validation`` takes the trial and look with the best accuracy on held-out samples of
    the training domains, which cannot see what helps elsewhere; ``leave-one-out`` scores a trial by training on all but
    one of the training domains, each in turn, at the price of as many trainings more, and needs three domains.
    ``augment(inputs, generator=...)`` changes training batches; ``workers`` load data sets that decode as they go."""

    trials: int = 1
    selection: Selection = "validation"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.trials, bool) or not isinstance(self.trials, int) or self.trials < 1:
            raise ValueError(f"trials must be an integer of at least 1, not {self.trials!r}")
        if self.selection not in ("validation", "leave-one-out"):
            raise ValueError(f"selection must be one of validation, leave-one-out, not {self.selection!r}")

    def run(
        self,
        domains: Mapping[str, Any],
        make_model: MakeModel,
        algorithms: Sequence[Algorithm],
        *,
        seeds: Sequence[int] = (0, 1, 2),
        targets: Sequence[str] | None = None,
        progress: bool = True,
    ) -> DomainReport:
        """Leave out every domain, or those of ``targets``, in turn. ``domains`` are what ``load_domains`` returns, or
        by name pairs (inputs, labels) or data sets; ``make_model(classes)`` builds the network with its start, a
        backbone of ``assay.networks`` say. ``progress`` writes a line per training to standard error."""
        found = [Samples(name, domains[name]) for name in domains]
        chosen = list(domains) if targets is None else list(targets)
        self._check(found, chosen, algorithms, seeds)
        classes = max(int(each.labels.max()) + 1 for each in found)
        classes = max([classes, *(getattr(domains[name], "classes", 0) for name in domains)])
        outcomes = []
        for target in chosen:
            inside = [each for each in found if each.name != target]
            outside = [each for each in found if each.name == target]
            for seed in seeds:
                for algorithm in algorithms:
                    search = _Search(self, make_model, classes, seed, algorithm)
                    outcomes.append(search.best(inside, outside, target))
                    if progress:
                        last = outcomes[-1]
                        said = f"{target}, seed {seed}, {algorithm.name}: {last.accuracy:.3f} ({last.validation:.3f})"
                        print(f"{len(outcomes)}/{len(chosen) * len(seeds) * len(algorithms)} {said}", file=sys.stderr)
        names = tuple(each.name for each in algorithms)
        return DomainReport(tuple(domains), names, tuple(seeds), self.selection, tuple(outcomes))

    def _check(
        self, found: Sequence[Samples], targets: Sequence[str], algorithms: Sequence[Algorithm], seeds: Sequence[int]
    ) -> None:
        names = [each.name for each in found]
        least = 3 if self.selection == "leave-one-out" else 2
        if len(names) < least:
            raise ValueError(f"selection by {self.selection} needs at least {least} domains, not {len(names)}")
        if unknown := [target for target in targets if target not in names]:
            raise ValueError(f"there is no domain {unknown[0]!r} to leave out; there are {', '.join(names)}")
        called = [each.name for each in algorithms]
        if not called or len(set(called)) < len(called):
            raise ValueError("at least one algorithm is needed, and each must have a name of its own")
        if not targets or not seeds or len(set(seeds)) < len(seeds):
            raise ValueError("at least one target and one seed are needed, and every seed once")


@dataclass(frozen=True)
class _Search:
    """The tuning of one algorithm for one target and seed."""

    protocol: LeaveOneDomainOut
    make_model: MakeModel
    classes: int
    seed: int
    algorithm: Algorithm

    def best(self, inside: Sequence[Samples], outside: Sequence[Samples], target: str) -> Outcome:
        trials: list[tuple[float, Mapping[str, float], list[Check]]] = []
        for trial in range(self.protocol.trials):
            settings: Mapping[str, float] = self.algorithm.drawn(self.seed, trial)
            if self.protocol.selection == "leave-one-out":
                score = self._elsewhere(settings, inside)
                trials.append((score, settings, []))
            else:
                checks = self._train(settings, inside, outside)
                trials.append((_best(checks).validation, settings, checks))
        score, settings, checks = max(trials, key=lambda each: _or_worst(each[0]))
        failed = sum(math.isnan(each[0]) for each in trials)
        if math.isnan(score):
            raise RuntimeError(f"every training of {self.algorithm.name} without {target!r} diverged: lower its rate")
        checks = checks or self._train(settings, inside, outside)
        taken = _best(checks)
        return Outcome(
            algorithm=self.algorithm.name,
            target=target,
            seed=self.seed,
            accuracy=taken.accuracies[target],
            validation=taken.validation,
            step=taken.step,
            settings=dict(settings),
            trials=len(trials),
            failed=failed,
            checks=tuple(checks),
        )

    def _elsewhere(self, settings: Mapping[str, float], inside: Sequence[Samples]) -> float:
        """The mean accuracy on each training domain after training on the others."""
        scores = []
        for held in inside:
            checks = self._train(settings, [each for each in inside if each is not held], [held])
            scores.append(_best(checks).accuracies[held.name])
        return sum(scores) / len(scores)

    def _train(
        self, settings: Mapping[str, float], inside: Sequence[Samples], outside: Sequence[Samples]
    ) -> list[Check]:
        algorithm = self.algorithm.with_settings(settings)
        return train(algorithm, self.make_model, self.classes, inside, outside, self.protocol, self.seed)


def _best(checks: Sequence[Check]) -> Check:
    """The earliest look with the best validation accuracy."""
    return max(checks, key=lambda each: _or_worst(each.validation))


def _or_worst(score: float) -> float:
    return -math.inf if math.isnan(score) else score
