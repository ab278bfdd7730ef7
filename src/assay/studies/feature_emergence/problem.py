"""Data with known features: hidden binary patterns times a dictionary, labelled by the count of relevant patterns.

Every problem of this study samples ``(inputs (seeds, n, features), labels (seeds, n))`` and can say what its
features are. Real images, of which nobody knows that, are standardised here.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.data.images import ImageSet
from assay.training.seeds import Seeds, stream

Data = tuple[Tensor, Tensor]  # inputs and labels
INPUTS = ("mixture", "uniform", "independent")


def label_counts(rule: str, relevant: int, low: int = 0, high: int = 0) -> tuple[int, ...]:
    """The counts of relevant patterns that are labelled +1: ``parity``, ``threshold`` or ``interval`` [low, high]."""
    counts = range(relevant + 1)
    if rule == "parity":
        return tuple(count for count in counts if count % 2 == 1)
    if rule == "threshold":
        return tuple(count for count in counts if count > relevant / 2)
    if rule == "interval":
        if not 0 <= low <= high <= relevant:
            raise ValueError(f"the interval [{low}, {high}] does not lie within the counts 0..{relevant}")
        return tuple(range(low, high + 1))
    raise ValueError(f"unknown labelling rule '{rule}' (allowed: parity, threshold, interval)")


@dataclass(frozen=True)
class PatternProblem:
    """Patterns φ̃ ∈ {0,1}^D, inputs x = M(φ̃ − E φ̃)/σ̃ with orthonormal M, label by the count in a hidden set A.

    ``inputs`` is ``mixture`` (structured parity data), ``uniform`` (no structure) or ``independent`` (relevant
    patterns with probability ``relevant_rate``). ``negative_share`` fixes the share of the label −1 by rejection.
    In the ``pattern`` basis an input is φ itself: with orthonormal M the network's dynamics are the same there,
    at D instead of d coordinates.
    """

    dim: int
    patterns: int
    relevant: int
    positive: tuple[int, ...]
    inputs: str = "mixture"
    background: float = 0.5
    relevant_rate: float = 2 / 3
    negative_share: float | None = None
    basis: str = "pattern"
    normalisation: str = "population"

    def __post_init__(self) -> None:
        if not 1 <= self.relevant < self.patterns:
            raise ValueError(f"{self.relevant} relevant of {self.patterns} patterns: there must be 1 ≤ k < D")
        if self.patterns > self.dim:
            raise ValueError(f"{self.patterns} orthonormal patterns do not fit into {self.dim} dimensions")
        if not set(self.positive) <= set(range(self.relevant + 1)):
            raise ValueError(f"the positive counts {self.positive} are not within 0..{self.relevant}")
        if self.inputs not in INPUTS:
            raise ValueError(f"unknown inputs '{self.inputs}' (allowed: {', '.join(INPUTS)})")
        if self.basis not in ("pattern", "ambient"):
            raise ValueError(f"unknown basis '{self.basis}' (allowed: pattern, ambient)")
        if self.normalisation not in ("population", "empirical"):
            raise ValueError(f"unknown normalisation '{self.normalisation}' (allowed: population, empirical)")
        if self.negative_share is not None and not 0 < self.negative_share < 1:
            raise ValueError(f"a share of {self.negative_share} negatives leaves one class empty")
        if self.negative_share is not None and not 0 < self._natural_share < 1:
            raise ValueError("all counts have the same label, so no share of negatives can be had")
        if self.inputs == "mixture":
            if not 0 < self.background <= 2 / 3:
                raise ValueError(f"the mixture needs a background rate in (0, 2/3], not {self.background}")
            if self.background != 0.5:
                warnings.warn(
                    "at a background rate other than 1/2 the mixture's background patterns depend on each other "
                    "and on the relevant ones, so the independence assumption does not hold",
                    stacklevel=2,
                )
        elif not 0 < self.background < 1:
            raise ValueError(f"the background rate {self.background} is not in (0, 1)")

    @property
    def features(self) -> int:
        """The number of coordinates of a sampled input."""
        return self.patterns if self.basis == "pattern" else self.dim

    def relevant_set(self, seeds: Seeds) -> Tensor:
        """The indices A of the relevant patterns: (seeds, k)."""
        return seeds.permutation("relevant patterns", self.patterns)[:, : self.relevant]

    def dictionary(self, seeds: Seeds) -> Tensor:
        """Orthonormal patterns as columns: (seeds, dim, patterns)."""
        return seeds.draw("dictionary", lambda g: orthonormal(self.dim, self.patterns, generator=g))

    def truth(self, seeds: Seeds) -> Tensor:
        """The ground-truth direction u* = Σ_A M_j in the sampled basis: (seeds, 1, features)."""
        indicator = torch.zeros(len(seeds), self.patterns, device=seeds.device, dtype=seeds.dtype)
        indicator.scatter_(1, self.relevant_set(seeds), 1.0)
        if self.basis == "ambient":
            indicator = torch.einsum("sdp,sp->sd", self.dictionary(seeds), indicator)
        return indicator.unsqueeze(1)

    def sample(self, seeds: Seeds, name: str, n: int) -> tuple[Tensor, Tensor]:
        """Inputs (seeds, n, features) and labels ±1 (seeds, n) from each seed's stream ``name``."""
        binary = torch.stack([self.patterns_of(stream(seed, name), n) for seed in seeds])
        labels = self.labels_of(binary[..., : self.relevant].sum(-1))
        # The first k columns of a draw are the relevant ones; move them to the seed's hidden set.
        order = Seeds(seeds.values).permutation("relevant patterns", self.patterns)
        binary = binary.gather(2, order.argsort(1).unsqueeze(1).expand_as(binary))
        inputs = self.normalise(binary.to(seeds.dtype), order).to(seeds.device)
        if self.basis == "ambient":
            inputs = inputs @ self.dictionary(seeds).mT
        return inputs, labels.to(seeds.device, seeds.dtype)

    def normalise(self, binary: Tensor, order: Tensor) -> Tensor:
        """(φ̃ − E φ̃)/σ̃ with one scalar σ̃, so that E‖x‖² = 1."""
        if self.normalisation == "empirical":
            mean = binary.mean(1, keepdim=True)
            scale = binary.var(1, correction=0).sum(1).sqrt()
            return (binary - mean) / scale[:, None, None]
        mean = torch.full(order.shape, self.background_mean, dtype=binary.dtype)
        mean.scatter_(1, order[:, : self.relevant], self.relevant_mean)
        return (binary - mean.unsqueeze(1)) / self.scale

    def labels_of(self, counts: Tensor) -> Tensor:
        table = torch.full((self.relevant + 1,), -1.0)
        table[list(self.positive)] = 1.0
        return table[counts.long()]

    def patterns_of(self, generator: torch.Generator, n: int) -> Tensor:
        """Binary patterns (n, patterns), the relevant ones first."""
        if self.negative_share is None:
            return self._draw(generator, n)
        wanted = {-1: round(n * self.negative_share)}
        wanted[1] = n - wanted[-1]
        kept: dict[int, list[Tensor]] = {-1: [], 1: []}
        while any(wanted.values()):
            drawn = self._draw(generator, n)
            labels = self.labels_of(drawn[:, : self.relevant].sum(1))
            for sign, missing in wanted.items():
                found = drawn[labels == sign][:missing]
                kept[sign].append(found)
                wanted[sign] = missing - len(found)
        both = torch.cat(kept[-1] + kept[1])
        return both[torch.randperm(n, generator=generator)]

    def _draw(self, generator: torch.Generator, n: int) -> Tensor:
        uniform = torch.rand(n, self.patterns, generator=generator)
        rates = torch.full((n, self.patterns), self.background_mean)
        if self.inputs == "uniform":
            rates[:, : self.relevant] = 0.5
        elif self.inputs == "independent":
            rates[:, : self.relevant] = self.relevant_rate
        else:
            p = self.background
            unstructured = torch.rand(n, 1, generator=generator) < p
            together = (torch.rand(n, 1, generator=generator) < 0.5).float()
            rates[:, : self.relevant] = together
            rates[:, self.relevant :] = p / (2 - 2 * p)
            rates = torch.where(unstructured, torch.tensor(0.5), rates)
        return (uniform < rates).float()

    @property
    def count_law(self) -> Tensor:
        """Pr[count in A = c] for c = 0..k before any rejection, in float64."""
        k = self.relevant
        rate = self.relevant_rate if self.inputs == "independent" else 0.5
        chances = [math.comb(k, c) * rate**c * (1 - rate) ** (k - c) for c in range(k + 1)]
        law = torch.tensor(chances, dtype=torch.float64)
        if self.inputs == "mixture":
            law *= self.background
            law[0] += (1 - self.background) / 2
            law[-1] += (1 - self.background) / 2
        return law

    @property
    def _natural_share(self) -> float:
        """Pr[y = 1] before any rejection."""
        return float(self.count_law[self.labels_of(torch.arange(self.relevant + 1)) > 0].sum())

    @property
    def balanced_law(self) -> Tensor:
        """The law of the count after rejection to the wanted class shares."""
        law, labels = self.count_law, self.labels_of(torch.arange(self.relevant + 1))
        if self.negative_share is None:
            return law
        positive = self._natural_share
        factors = torch.where(labels > 0, (1 - self.negative_share) / positive, self.negative_share / (1 - positive))
        return law * factors

    @property
    def background_mean(self) -> float:
        return 0.5 if self.inputs == "uniform" else self.background

    @property
    def relevant_mean(self) -> float:
        counts = torch.arange(self.relevant + 1).double()
        return float((self.balanced_law * counts).sum() / self.relevant)

    @property
    def positive_share(self) -> float:
        labels = self.labels_of(torch.arange(self.relevant + 1))
        return float(self.balanced_law[labels > 0].sum())

    @property
    def scale(self) -> float:
        """σ̃: the square root of the patterns' total variance."""
        relevant = self.relevant_mean * (1 - self.relevant_mean) * self.relevant
        background = self.background_mean * (1 - self.background_mean)
        return math.sqrt(relevant + background * (self.patterns - self.relevant))

    @property
    def background_deviation(self) -> float:
        """σ_φ: the standard deviation of a normalised background pattern."""
        return math.sqrt(self.background_mean * (1 - self.background_mean)) / self.scale

    @property
    def correlation(self) -> float:
        """γ: Cov(y, φ̃_i) of one relevant pattern with the label."""
        counts = torch.arange(self.relevant + 1)
        labels = self.labels_of(counts).double()
        law = self.balanced_law
        share = counts.double() / self.relevant
        return float((law * labels * share).sum() - (law * labels).sum() * (law * share).sum())

    @property
    def class_gap(self) -> float:
        """Half the gap between the classes' means of a relevant pattern: γ of the general family, Cov/(4 p₊ p₋)."""
        return self.correlation / (4 * self.positive_share * (1 - self.positive_share))


def orthonormal(rows: int, columns: int, *, generator: torch.Generator) -> Tensor:
    """A matrix with orthonormal columns, Haar distributed: QR of a Gaussian with the signs of R's diagonal fixed."""
    gaussian = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    basis: Tensor
    basis, upper = torch.linalg.qr(gaussian)
    return basis * torch.sign(torch.diagonal(upper))


def standardized(train: ImageSet, *others: ImageSet) -> list[Tensor]:
    """Flat inputs (n, dim) of all sets: the training images' mean removed, and one scale for all pixels that makes
    their mean variance 1. The scale is a scalar, as in the pattern model, so that the covariance keeps its shape."""
    flat = train.images.flatten(1)
    mean, scale = flat.mean(dim=0), flat.var(dim=0, correction=0).mean().sqrt()
    return [(each.images.flatten(1) - mean) / scale for each in (train, *others)]
