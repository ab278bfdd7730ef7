"""The claims on noise: the exact error (C2), the price of a larger rank (C3) and what removes it (C8)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from assay.lab import Judgement, Measurements, Values, combine, farthest, pool
from assay.methods import rank_noise

from .arms import Params, part

BOTH = {"noise-free prompts among the variances": lambda p: p.noises[0] == 0}


def _least(params: Params) -> int:
    return len(params.useful)


def _error(m: Measurements[Params], rank: int, *, noise: float, length: int | None = None, **where: Any) -> Values:
    """The exact error of trained networks on the task within the top directions."""
    fixed = {"arm": "noise", "spectrum": "all", "task": "useful", "length": length or m.params.prompt}
    return m.final("error", rank=rank, noise=float(noise), **(fixed | where))


def gap_of(m: Measurements[Params], rank: int, **where: Any) -> Values:
    """How much larger the error of a rank is than that of the task's own."""
    return _error(m, rank, **where) - _error(m, _least(m.params), **where)


def _larger(params: Params) -> range:
    return range(_least(params) + 1, params.dim + 1)


def _slope(m: Measurements[Params], rank: int) -> Values:
    """The gap's rise per unit of σ², which is linear."""
    low, high = m.params.noises[0], m.params.noises[-1]
    return (gap_of(m, rank, noise=high) - gap_of(m, rank, noise=low)) / (high - low)


@part.claim(
    "C2a",
    "The mean squared error of rank-limited linear attention on noisy prompts is the closed form, at every rank and "
    "noise level.",
    source="Theorem 5.4.2, on sampled prompts; 5 % is the specification's margin",
)
def sampled_error(m: Measurements[Params]) -> Judgement:
    where = [{"noise": float(noise), "rank": r} for noise in m.params.noises for r in m.params.ranks]
    ratios = [
        m.final("error", arm="sampled-noise", **at) / m.final("optimum", arm="sampled-noise", **at) for at in where
    ]
    worst = farthest(1.0, ratios, "sampled/exact error, the farthest from 1")
    return worst.equals(1.0, within=0.05, because="the specification's; sampling leaves about 1 %")


def _steps(m: Measurements[Params], metric: str) -> list[Values]:
    fixed = {"arm": "noise", "spectrum": "all", "task": "curve", "length": m.params.prompt}
    by_rank = [m.final(metric, rank=r, noise=float(m.params.noises[-1]), **fixed) for r in m.params.ranks]
    return [after - before for before, after in pairwise(by_rank)]


@part.claim(
    "C2b",
    "In trained linear attention every further rank lowers the part of the error that is owed to uncovered signal, on "
    "a task that uses all directions.",
    source="Theorem 5.4.2, the bias of trained networks",
)
def bias_falls(m: Measurements[Params]) -> Judgement:
    return combine(max, _steps(m, "bias"), "largest change of the bias by one rank").below(0)


@part.claim(
    "C2c",
    "In trained linear attention every further rank raises the part of the error that is owed to noise in the prompt.",
    source="Theorem 5.4.2, label noise and sampling noise of trained networks",
)
def noise_rises(m: Measurements[Params]) -> Judgement:
    return combine(min, _steps(m, "noise_part"), "smallest change of the noise part by one rank").above(0)


@part.claim(
    "C3a",
    "Where the task needs only the top directions, trained linear attention of any larger rank has a larger error, "
    "with and without label noise.",
    source="Theorem 5.4.3, exact errors of trained networks",
    headline=True,
)
def larger_is_worse(m: Measurements[Params]) -> Judgement:
    gaps = [gap_of(m, rank, noise=noise) for rank in _larger(m.params) for noise in m.params.noises]
    return pool(gaps, "error of a larger rank − error of the task's rank").at_least(0)


@part.claim(
    "C3b",
    "What a rank above the task's adds to the error of trained linear attention rises with the label noise at the "
    "slope of the exact sum over the extra directions, within 5 %.",
    source="Theorem 5.4.3: Σ(Nλ/((N+1)λ + tr D))²/M; 5 % is the specification's margin",
    headline=True,
)
def gap_slope(m: Measurements[Params]) -> Judgement:
    ratios = [
        _slope(m, rank) / m.final("predicted_slope", arm="noise", spectrum="all", rank=rank)
        for rank in _larger(m.params)
    ]
    worst = farthest(1.0, ratios, "slope/exact sum, the farthest from 1")
    return worst.equals(1.0, within=0.05, because="the specification's")


@part.claim(
    "C3c",
    "What a rank above the task's adds to the error of trained linear attention rises with the variance of the label "
    "noise by less than 95 % of 1/M per extra direction, M the examples in a prompt.",
    source="Theorem 5.4.3; the approximation needs Nλ ≫ tr D for the extra directions, and misses by more than 5 %",
    printed="the gap is about (r′ − r)(‖s‖² + σ²)/M",
    when={"pretraining prompts that are short for the weakest direction": lambda p: p.examples * p.smallest < 20},
)
def printed_slope(m: Measurements[Params]) -> Judgement:
    shares = [
        _slope(m, rank) / m.final("long_pretraining_slope", arm="noise", spectrum="all", rank=rank)
        for rank in _larger(m.params)
    ]
    return combine(max, shares, "slope/(extra directions/M), the largest").below(0.95)


@part.claim(
    "C8a",
    "What a rank above the task's adds to the error of trained linear attention falls by 95 % or more when the "
    "pretraining tokens vary only in the directions of the task.",
    source="Section 5.7: no gap without pretraining noise; 5 % of the gap with all directions",
    headline=True,
)
def no_extra_features(m: Measurements[Params]) -> Judgement:
    noise = m.params.noises[-1]
    shares = [
        gap_of(m, rank, noise=noise, spectrum="important") / gap_of(m, rank, noise=noise).array.mean()
        for rank in _larger(m.params)
    ]
    return farthest(0.0, shares, "gap left, as a share").between(-0.05, 0.05)


@part.claim(
    "C8b",
    "What a rank above the task's adds to the error of trained linear attention falls by 95 % or more from short "
    "prompts with noisy labels to long ones without label noise.",
    source="Section 5.7: no gap without input and label noise; 5 % of the gap at the shorter length with noise",
    when=BOTH,
)
def no_prompt_noise(m: Measurements[Params]) -> Judgement:
    noise, long = m.params.noises[-1], m.params.long_prompt
    shares = [
        gap_of(m, rank, noise=0, length=long) / gap_of(m, rank, noise=noise).array.mean() for rank in _larger(m.params)
    ]
    return farthest(0.0, shares, "gap left, as a share").between(-0.05, 0.05)


@part.claim(
    "X2a",
    "Without label noise more than half is left of what full rank, in place of the task's, adds to the error of "
    "trained linear attention at unit noise: the sampling of the examples is noise as well.",
    source="Derived from Theorem 5.4.3: ‖s‖²/(‖s‖² + σ²) of the gap remains at finite M",
    when=BOTH | {"unit noise among the variances": lambda p: 1 in p.noises},
)
def sampling_noise(m: Measurements[Params]) -> Judgement:
    left = gap_of(m, m.params.dim, noise=0) / gap_of(m, m.params.dim, noise=1)
    return left.named("gap without/with label noise, at full rank").above(0.5)


def _best(m: Measurements[Params], metric: str, length: int, noise: float) -> Values:
    where = {"arm": "noise", "spectrum": "all", "task": "curve", "length": length, "noise": float(noise)}
    errors = [m.final(metric, rank=r, **where) for r in m.params.ranks]
    return combine(lambda of_ranks: 1 + of_ranks.index(min(of_ranks)), errors, f"best rank, M = {length}")


@part.claim(
    "X2b",
    "The rank with the smallest error after training is within one of the closed form's, at every noise level and "
    "prompt length.",
    source="Derived from Theorem 5.4.2: when one more direction helps",
)
def best_rank(m: Measurements[Params]) -> Judgement:
    misses = [
        _best(m, "error", length, noise) - _best(m, "optimum", length, noise)
        for length in m.params.lengths
        for noise in m.params.noises
    ]
    return pool(misses, "best rank, trained − closed form").between(-1, 1)


@part.claim(
    "X2c",
    "The best rank of trained linear attention is lower at the most label noise tried than at the least, at every "
    "prompt length.",
    source="Derived from Theorem 5.4.2",
)
def best_rank_falls(m: Measurements[Params]) -> Judgement:
    ends = m.params.noises[0], m.params.noises[-1]
    falls = [_best(m, "error", n, ends[0]) - _best(m, "error", n, ends[1]) for n in m.params.lengths]
    return pool(falls, "best rank, least − most noise").at_least(1)


@part.claim(
    "X2d",
    "The optimal linear attention of every rank falls below chance, under 0.45 in accuracy, when all in-context labels "
    "are flipped.",
    source="Derived: the answer is linear in the labels. The source explains flipped labels by this model",
    headline=True,
)
def no_prior(m: Measurements[Params]) -> Judgement:
    flipped = [m.final("accuracy", arm="sampled-noise", flipped=1.0, rank=rank) for rank in m.params.ranks]
    return combine(max, flipped, "largest accuracy of a rank, all labels flipped").below(0.45)


@part.phase(
    "P1",
    "On a task that uses all directions, trained attention of full rank has a smaller error than attention of half the "
    "rank.",
    source="Theorem 5.4.2, over lengths of the prompt and noise of its labels (the last of the variances)",
)
def full_rank_wins(m: Measurements[Params]) -> Judgement:
    where = {"arm": "noise", "spectrum": "all", "task": "curve", "length": m.params.prompt}
    half, full = (
        m.final("error", rank=rank, noise=float(m.params.noises[-1]), **where)
        for rank in (m.params.dim // 2, m.params.dim)
    )
    return (full - half).named("error, full − half rank").below(0)


@part.boundary(
    "P1",
    says="It has where the closed form says so: few noisy examples favour the smaller rank.",
    arms=("noise",),
    point={"spectrum": "all"},
)
def closed_form(params: Params) -> float:
    error = rank_noise(
        torch.tensor(params.eigenvalues),
        pretraining=params.examples,
        examples=round(params.prompt),
        noise=float(params.noises[-1]),
        weights=torch.tensor(params.curve),
    ).error
    return float(error[params.dim // 2] - error[params.dim])
