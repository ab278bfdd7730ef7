"""What methods and probes of tensors share: arrays give the numbers that tensors give, autocast changes none of them,
what is not finite is refused or stays so, and neither the tensors nor the global generator are touched."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay import methods, probes
from assay._reports import plain

N, DIM = 60, 6
LABELS = torch.arange(N) % 3


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


ROWS = draw(N, DIM) + 2 * draw(3, DIM, seed=1)[LABELS]
OTHER = draw(N, 5, seed=2) + ROWS[:, :1]
SQUARE = draw(7, 7)
FINE = 2 * LABELS + (ROWS[:, 0] > 0)
HIERARCHY = methods.LabelHierarchy("halves", FINE, LABELS, aligned=True)
EYE = torch.eye(DIM)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def folded(given: Any) -> Any:
    """The labels in the form that the features have."""
    return LABELS.numpy().astype("uint8") if isinstance(given, np.ndarray) else LABELS


def summed(first: Any, second: Any) -> float:
    sums = probes.CkaSums()
    for rows in (slice(0, 20), slice(20, N)):
        sums.update(first[rows], second[rows])
    return sums.value()


def classifier(given: Any) -> Any:
    return probes.LinearProbe().fit(given, folded(given)).predict_proba(given)


def one_step_estimators(given: Any) -> Any:
    squares = (ROWS[:, 0] ** 2).numpy()
    options = {"width": 16, "random_state": 0, "switch": 0.7, "penalty": 0.1}
    return [
        methods.OneStepFeatures(**options).fit(given, folded(given)).transform(given),
        methods.OneStepClassifier(**options).fit(given, folded(given)).predict_proba(given),
        methods.OneStepRegressor(**options).fit(given, squares).predict(given),
    ]


# By name: the tensor, and what is made of it.
CASES: dict[str, tuple[Tensor, Callable[[Any], Any]]] = {
    "cosines": (ROWS, lambda x: probes.cosines(x, EYE)),
    "references": (EYE, lambda x: probes.cosines(ROWS, x)),
    "direction map": (ROWS, lambda x: probes.direction_map(x, EYE)),
    "direction maps": (ROWS, lambda x: [probes.direction_maps([x, x], EYE)[1].points]),
    "clusters of directions": (ROWS, lambda x: probes.cluster_statistics(x, 3, seed=0)),
    "label directions": (ROWS, lambda x: probes.gradient_direction_score(EYE, x, folded(x))),
    "detectors": (ROWS, lambda x: probes.detector_counts(probes.singleton_detectors(x, EYE, 1.0, 0.5))),
    "responses": (ROWS, lambda x: probes.responses(x, torch.zeros(N), EYE)),
    "response ratio": (ROWS.abs(), lambda x: probes.response_ratio(x, [0, 1], [2])),
    "group errors": (OTHER, lambda x: probes.group_errors(x, folded(x), {"first": LABELS == 0})),
    "alignments": (ROWS, lambda x: probes.alignments(x, EYE)),
    "lucky": (ROWS.clamp(-1, 1), lambda x: probes.lucky_neurons(x)),
    "mixed": (ROWS.clamp(-1, 1), lambda x: probes.mixed_neurons(x)),
    "aligned": (ROWS.clamp(-1, 1), lambda x: probes.aligned_counts(x)),
    "smallest": (ROWS.abs()[:, 0], lambda x: probes.smallest_neurons(x, 0.2)),
    "specialisation": (ROWS, lambda x: probes.specialisation(x, EYE)),
    "cone": (ROWS, lambda x: probes.p_hat(x, EYE[0], gamma=0.3)),
    "stable rank": (ROWS, lambda x: probes.stable_rank(x)),
    "spectrum": (SQUARE, lambda x: probes.fourier_probe(x)),
    "logit spectrum": (draw(5, 5, 5), lambda x: probes.logit_fourier(x, 5, 2)),
    "score spectrum": (SQUARE, lambda x: probes.score_spectrum(x)),
    "token scores": (draw(7, DIM), lambda x: probes.token_scores(x, EYE[:4], EYE[2:])),
    "descent": (draw(4, 3, 5), lambda x: probes.gd_probe(x, draw(3, 20, 5, seed=4), draw(3, 20, seed=5))),
    "chunks": (draw(3, 4, DIM), lambda x: probes.chunk_cosines(x)),
    "cka": (ROWS, lambda x: [probes.linear_cka(x, OTHER), summed(x, OTHER)]),
    "head": (ROWS, lambda x: probes.fit_head(x, folded(x)).weight),
    "ridge head": (ROWS, lambda x: probes.ridge_head(x, folded(x)).weight),
    "head and tail": (ROWS, lambda x: probes.head_tail_probe(x, folded(x), x, folded(x), [5, 3, 1])),
    "linear probe": (ROWS, classifier),
    "one step": (
        ROWS,
        lambda x: methods.one_step(x, one_hot(LABELS).float() - 1 / 3, width=16, generator=generator()).weights,
    ),
    "one-step estimators": (ROWS, one_step_estimators),
    "condition": (draw(3, 20, 5), lambda x: methods.prompt_condition(x)),
    "prompt": (draw(3, 20, 5), lambda x: methods.make_prompt(x, draw(3, 20))),
    "solver": (draw(3, 20, 5), lambda x: methods.LoopedLinearTransformer(5, 8).solve(x, draw(3, 20))),
    "certificate": (draw(2, 5, 8), lambda x: methods.margin_certificate(x, draw(8, 5, seed=6))),
    "expected margin": (draw(2, 5, 8), lambda x: methods.expected_margin(x, draw(8, 5, seed=6))),
    "covariance": (ROWS, lambda x: methods.token_covariance(x)),
    "rank and noise": (
        methods.token_covariance(ROWS),
        lambda x: methods.rank_noise(x, pretraining=40, examples=20, noise=0.1),
    ),
    "truncation": (EYE[:4] + 0.1, lambda x: list(methods.truncated_queries(x, EYE[2:], EYE, 2))),
    "nuclear norm": (ROWS, lambda x: methods.nuclear_norm(x)),
    "pruned loss": (ROWS, lambda x: methods.pruned_infonce(x, ROWS, x, ROWS).loss),
    "granularity": (ROWS, lambda x: methods.granularity_report(HIERARCHY, x)),
    "clusters": (ROWS, lambda x: methods.clusters_of_all(x, folded(x), 4, seed=0).fine),
    "clusters per class": (ROWS, lambda x: methods.clusters_per_superclass(x, folded(x), 2, seed=0).fine),
    "rebalanced": (ROWS, lambda x: methods.rebalanced_clusters(x, folded(x), least=3, seed=0).fine),
    "maximum": (draw(N, 6), lambda x: methods.max_readout(x, torch.arange(6) // 2)),
    "sum": (draw(N, 6), lambda x: methods.sum_readout(x, torch.arange(6) // 2)),
    "assumptions": (ROWS, lambda x: methods.data_assumptions(x, 2 * (LABELS > 0).float() - 1)),
    "area": (draw(5, 3).abs(), lambda x: methods.area_under_curve(torch.arange(5), x)),
    "plan": (
        torch.linspace(0.6, 0.9, 4),
        lambda x: methods.contrastive_plan(x, methods.Descent(0.1, 0.01, 0.5, 8), dim=20, width=64),
    ),
    "first stage": (
        ROWS.square()[:, :3],
        lambda x: methods.stage_one_steps(x, torch.full((N,), 9.0), torch.tensor([1.1, 1.05, 1.0]), 0.99),
    ),
    "mixup": (ROWS, lambda x: list(vars(methods.Mixup(0.4)(x, folded(x), generator=generator())).values())),
}


def numbers(found: Any) -> list[Any]:
    """All numbers in what was found, in order."""
    kept = plain(found)
    if isinstance(kept, dict):
        kept = list(kept.values())
    if isinstance(kept, list):
        return [value for each in kept for value in numbers(each)]
    return [] if isinstance(kept, str) else [kept]


def assert_same(one: Any, other: Any) -> None:
    ours, theirs = numbers(one), numbers(other)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a == b if a is None or b is None else a == pytest.approx(b, rel=1e-4, abs=1e-4)


@pytest.fixture(autouse=True)
def _libraries() -> None:
    pytest.importorskip("sklearn", reason="clusters and estimators need the extra lab")
    pytest.importorskip("scipy", reason="exact intervals need the extra lab")


pytestmark = pytest.mark.filterwarnings("ignore:c₁ log d")


@pytest.mark.parametrize("name", CASES)
def test_arrays_give_the_numbers_of_tensors(name):
    given, call = CASES[name]
    assert_same(call(given), call(given.double().numpy()))


@pytest.mark.parametrize("name", CASES)
def test_autocast_changes_no_number(name):
    given, call = CASES[name]
    expected = call(given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(expected, call(given))


@pytest.mark.parametrize("name", CASES)
def test_tensors_and_the_global_generator_are_left_alone(name):
    given, call = CASES[name]
    kept, before = given.clone(), torch.get_rng_state()
    assert_same(call(given), call(given.clone().requires_grad_()))
    assert torch.equal(given, kept)
    assert torch.equal(before, torch.get_rng_state())


# Element by element, inside somebody's training or over a stack of seeds, NaN stays NaN: it is told, and never scored.
CARRIED = (
    "alignments",
    "response ratio",
    "spectrum",
    "logit spectrum",
    "score spectrum",
    "token scores",
    "prompt",
    "certificate",
    "expected margin",
    "pruned loss",
    "maximum",
    "sum",
    "area",
    "first stage",
)


@pytest.mark.parametrize("name", CARRIED)
def test_nan_stays_nan_where_it_is_not_refused(name):
    given, call = CASES[name]
    broken = given.clone()
    broken.view(-1)[1] = math.nan
    assert None in numbers(call(broken))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", [name for name in CASES if name not in CARRIED])
def test_what_is_not_finite_is_refused(name, value):
    given, call = CASES[name]
    broken = given.clone()
    broken.view(-1)[1] = value
    with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
        call(broken)
