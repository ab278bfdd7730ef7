"""Labels that are not the true subclasses, on a finite set: the synthetic twin of the experiments on images."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from assay.methods.granularity import LabelHierarchy, max_readout, random_ids
from assay.training import Seeds, stream

from ..learners import Initialisation, Report, Residual, Training, cross_entropy_residual, errors
from ..problem import Samples

TWINS = ("coarse", "fine", "one sample each", "split at random", "random within", "random anew", "random", "mixed")


def hierarchy_of(labels: str, samples: Samples, seed: int) -> LabelHierarchy:
    """Labels of the training set: the superclasses, the subclasses, the subclasses each split at random in two, 2k
    classes at random within superclasses (once, or anew for the fresh samples of every step) or over all, or k classes
    that unite a subclass of + with one of −."""
    coarse, fine, k = samples.superclass.cpu(), samples.fine.cpu(), samples.subclasses
    if labels == "coarse":
        return LabelHierarchy(labels, coarse, coarse, aligned=True)
    if labels in ("fine", "one sample each"):
        return LabelHierarchy(labels, fine, coarse, aligned=True)
    generator = stream(seed, f"labels {labels}")
    if labels == "split at random":
        halves = random_ids(fine, 2, generator=generator, within=True)
        return LabelHierarchy(labels, halves.fine, coarse, aligned=True)
    if labels == "mixed":
        return LabelHierarchy(labels, samples.subclass.cpu(), coarse)
    within = labels in ("random within", "random anew")
    return random_ids(coarse, k if within else 2 * k, generator=generator, within=within)


def twin_errors(
    labels: str, init: Initialisation, training: Training, seeds: Seeds, steps: int, easy: Samples, hard: Samples
) -> tuple[Report, Report]:
    """Numbers of the labels, and errors by the maximum read-out, a class counting for the superclass of most of its
    samples."""
    if labels == "one sample each":
        training = replace(training, per_subclass=1)
    if labels == "random anew":
        training = replace(training, finite=False)
    samples = training.batch(seeds, 0)
    found = [hierarchy_of(labels, samples, seed) for seed in seeds]
    classes = int(found[0].fine.max()) + 1
    given = torch.stack([each.fine for each in found]).to(seeds.device)
    network = init.draw(seeds, classes, training.problem).network
    rounds = iter(range(steps + 1))

    def residual(_: Samples) -> Residual:
        step = next(rounds)
        mine = given
        if labels == "random anew":
            mine = torch.stack([_anew(samples, seed, step) for seed in seeds]).to(seeds.device)
        return cross_entropy_residual(mine, classes)

    for _step, _, update in training.run(network, seeds, steps, residual):
        network = update.network
    labelled = {"classes": torch.full((len(seeds),), float(classes)), "purity": torch.tensor([h.purity for h in found])}
    wrong: Report = {}
    for name, test in (("easy", easy), ("hard", hard)):
        outputs = network.outputs(test.patches)
        scores = [
            _two(max_readout(out, each.fine_to_coarse.to(out.device))) for out, each in zip(outputs, found, strict=True)
        ]
        wrong[f"{name}_error"] = errors(torch.stack(scores), test.superclass)
    return labelled, wrong


def _anew(samples: Samples, seed: int, step: int) -> Tensor:
    drawn = random_ids(
        samples.superclass, samples.subclasses, generator=stream(seed, f"labels of step {step}"), within=True
    )
    return drawn.fine


def _two(scores: Tensor) -> Tensor:
    """Two superclasses even where one of them has no class: (n, 2)."""
    missing = 2 - scores.shape[-1]
    return torch.nn.functional.pad(scores, (0, missing), value=-torch.inf) if missing else scores
