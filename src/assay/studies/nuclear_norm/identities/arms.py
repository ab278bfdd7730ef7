"""Identities of the norm on random matrices, one set of them per seed."""

from __future__ import annotations

import torch

from assay import lab
from assay.methods.nuclear_norm import nuclear_norm
from assay.probes.stable_rank import stable_rank
from assay.training import Seeds

from . import theory

SHAPES = [{"rows": 8, "width": 5}, {"rows": 5, "width": 8}, {"rows": 24, "width": 16}]
MATRICES = 20
STEP = 1e-5  # of finite differences

part = lab.Part("identities", params=lab.Params)


@part.arm("norm-identities", over=SHAPES, dtype="float64")
def norm_identities(params: lab.Params, seeds: Seeds, record: lab.Recorder, *, rows: int, width: int) -> None:
    """The gradient of the norm, its bounds by the Frobenius norm, and both definitions of a stable rank."""
    features = seeds.normal("features", MATRICES, rows, width).requires_grad_()
    values = nuclear_norm(features, "none", stacked=True)
    (slope,) = torch.autograd.grad(values.sum(), features)
    features = features.detach()
    frobenius, norm = features.square().sum((-2, -1)).sqrt(), values.detach()
    least = min(rows, width)
    towards = seeds.normal("directions", MATRICES, rows, width)
    risen = (theory.norm_by_gram(features + STEP * towards) - theory.norm_by_gram(features - STEP * towards)) / 2 / STEP
    along = (theory.subgradient(features) * towards).sum((-2, -1))
    record(
        gradient_error=(slope - theory.subgradient(features)).abs().amax((1, 2, 3)),
        difference_error=(risen - along).abs().amax(1),
        below_frobenius=(frobenius - norm).amax(1) / least,
        above_root_rank=(norm / frobenius).amax(1) / least**0.5,
    )
    scaled = 3 * features
    record(
        stable_rank_moved=(stable_rank(scaled, stacked=True) / stable_rank(features, stacked=True) - 1).abs().amax(1),
        printed_moved=(theory.printed_stable_rank(scaled) / theory.printed_stable_rank(features)).amin(1),
        stable_rank_least=stable_rank(features, stacked=True).amin(1),
        stable_rank_share=stable_rank(features, stacked=True).amax(1) / least,
    )


@part.arm("rank-one", dtype="float64")
def rank_one(params: lab.Params, seeds: Seeds, record: lab.Recorder) -> None:
    """For one logit no extractor has a smaller norm than the one of rank one."""
    inputs = seeds.normal("inputs", MATRICES, 30, 6)
    classifier, head = seeds.normal("classifier", MATRICES, 6), seeds.normal("head", MATRICES, 4)
    least = theory.least_norm(inputs, classifier, head)
    attained = nuclear_norm(inputs @ theory.rank_one_extractor(classifier, head).mT, "none", stacked=True)
    others = []
    for scale in (0.01, 0.1, 1.0):
        anything = theory.rank_one_extractor(classifier, head) + scale * seeds.normal("others", MATRICES, 4, 6)
        extractor = theory.feasible_extractor(classifier, head, anything)
        others.append(nuclear_norm(inputs @ extractor.mT, "none", stacked=True) / least)
    record(attained_error=(attained / least - 1).abs().amax(1), least_of_others=torch.stack(others).amin((0, 2)))
