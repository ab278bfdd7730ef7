"""The InfoNCE loss that pure neurons cannot go below: samples that share all active features cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from assay._extras import extra

from ._checks import whole

SUPPORTS = 4096  # kinds of supports that the loss floor sums over one by one


def loss_floor(rates: Sequence[float], negatives: int) -> float:
    """The InfoNCE loss that pure neurons of any scale, compared by inner products, cannot go below: E log(1 + N), for
    constant magnitudes and no noise. Other encoders can: one that also tells apart which features are absent does.

    Given the features S active in an anchor, N ~ Bin(negatives, Π_{j∈S} q_j/2) counts the negatives whose active
    features contain S with the same signs. ``rates`` are the q_j. An anchor without features costs log(1 + negatives).
    The sum over supports is exact where features share few rates; where there are too many kinds of supports, it is
    interpolated, with an error below 1e-10.
    """
    q = np.asarray(rates, dtype=float)
    if q.ndim != 1 or not len(q) or not ((q >= 0) & (q <= 1)).all():
        raise ValueError("rates are the activation probabilities of the features, each in [0, 1]")
    whole("negatives", negatives, 1)
    values, counts = np.unique(q, return_counts=True)
    kinds, active = math.prod(int(count) + 1 for count in counts), q[q > 0]
    rarest = float((np.log(active) - math.log(2)).sum())  # log Pr(a negative contains all features): may underflow
    if kinds > SUPPORTS or rarest < -650:
        return _smooth_floor(active, negatives)
    return _floor(values, counts, negatives)


def _floor(values: np.ndarray, counts: np.ndarray, negatives: int) -> float:
    """Features of equal rate are interchangeable: sum over how many of each are active, not over all supports."""
    with extra("lab", "the loss floor"):
        from scipy.stats import binom

    grids = np.meshgrid(*(np.arange(count + 1) for count in counts), indexing="ij")
    active = np.stack([grid.ravel() for grid in grids], 1)
    weight = np.prod([binom.pmf(active[:, k], counts[k], values[k]) for k in range(len(values))], axis=0)
    match = np.prod((values / 2) ** active, axis=1)
    hits = np.arange(negatives + 1)
    log_hits = np.log1p(hits)
    each = np.array([float(binom.pmf(hits, negatives, p) @ log_hits) for p in match])
    return float(weight @ each)


def _smooth_floor(rates: np.ndarray, negatives: int) -> float:
    """The same for any number of distinct rates, in time linear in it.

    With G(ℓ) = E log(1 + Bin(n, e^{−ℓ})) an active feature adds a = log(2/q) to ℓ, an absent one nothing. So features
    are averaged out one by one, V ← (1 − q)V(ℓ) + qV(ℓ + a), and the floor is V(0). V is kept on a grid and read off
    between by Lagrange's formula in 8 points; it is as smooth as G, whose derivatives are of order k!, so a spacing of
    1/64 leaves about 1e-13 per feature. Beyond the grid's end G < n e^{−ℓ} is below 1e-17.
    """
    with extra("lab", "the loss floor"):
        from scipy.stats import binom

    step, points = 1 / 64, np.arange(8)
    match = np.exp(-step * np.arange(math.ceil((math.log(negatives) + 40) / step)))
    values = np.zeros(len(match))
    for place, p in enumerate(match):
        mean, reach = negatives * p, 10 * math.sqrt(negatives * p) + 50  # what lies beyond has probability 1e-20
        hits = np.arange(max(0, int(mean - reach)), min(negatives, int(mean + reach)) + 1)
        values[place] = binom.pmf(hits, negatives, p) @ np.log1p(hits)
    others = [np.delete(points, k) for k in points]
    for q in rates:
        ahead, rest = divmod((math.log(2) - math.log(q)) / step, 1)  # 44 spacings at least: 3 points lie before
        weights = [np.prod((3 + rest - other) / (k - other)) for k, other in zip(points, others, strict=True)]
        beyond = np.append(values[int(ahead) - 3 :], np.zeros(len(values) + 7))[: len(values) + 7]
        values = (1 - q) * values + q * np.convolve(beyond, weights[::-1], mode="valid")
    return float(values[0])
