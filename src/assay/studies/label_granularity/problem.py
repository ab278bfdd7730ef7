"""Hierarchical multi-view patches: superclasses with a common feature, subclasses with features k times rarer.

A sample is a set of patches, each a feature of an orthonormal dictionary or noise. Easy samples show the common and
the subclass feature; hard ones lack the common feature and carry faint copies of the *opposite* superclass' one.
Every sample keeps the kind and the strength of each of its patches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training import Seeds

NOISE, COMMON, SUBCLASS, DISTRACTOR, STRONG = range(5)
KINDS = ("noise", "common", "subclass", "distractor", "strong noise")
COUNTS = ("exact", "bernoulli")


@dataclass(frozen=True)
class Samples:
    """Patches (seeds, n, patches, dim) and the truth about them: kinds and strengths (seeds, n, patches), strength 0
    where there is no feature. Superclass (0 for +, 1 for −) and subclass (n,) are the same for all seeds."""

    patches: Tensor
    kinds: Tensor
    strengths: Tensor
    superclass: Tensor
    subclass: Tensor
    subclasses: int
    hard: bool

    def __len__(self) -> int:
        return len(self.superclass)

    @property
    def fine(self) -> Tensor:
        """The fine label k·y + c: (n,)."""
        return self.subclasses * self.superclass + self.subclass


@dataclass(frozen=True)
class HierarchicalPatches:
    """``subclasses`` k per superclass, ``patches`` P per sample, ``feature_patches`` s* expected patches per feature,
    ``jitter`` ι of the strengths, ``noise`` σ_ζ on every patch; in hard samples ``distractors`` s† expected patches
    of a strength in ``faint``, and one patch of noise ``strong_noise`` σ_ζ*.

    ``counts="exact"`` puts exactly s*, s* and s† patches at random places; with "bernoulli" their numbers vary, and a
    share e^{−s*} of samples lacks a feature.
    """

    dim: int = 64
    patches: int = 24
    subclasses: int = 8
    feature_patches: int = 6
    jitter: float = 0.0
    noise: float = 0.002
    distractors: int = 4
    faint: tuple[float, float] = (0.4, 0.6)
    strong_noise: float = 0.02
    counts: str = "exact"

    def __post_init__(self) -> None:
        k, s = self.subclasses, self.feature_patches
        if k < 1 or 2 * k + 2 > self.dim:
            raise ValueError(f"{k} subclasses need 2k + 2 = {2 * k + 2} of only {self.dim} dictionary vectors")
        if s < 1 or 2 * s > self.patches:
            raise ValueError(f"two kinds of {s} feature patches do not fit into {self.patches} patches")
        if self.distractors < 0 or s + self.distractors + 1 > self.patches:
            raise ValueError(
                f"{s} subclass patches, {self.distractors} distractors and one of strong noise do not fit into "
                f"{self.patches} patches"
            )
        if not 0 <= self.jitter < 1:
            raise ValueError(f"the jitter ι lies in [0, 1), not {self.jitter}")
        if not 0 <= self.faint[0] <= self.faint[1]:
            raise ValueError(f"the distractors' strengths go from small to large, not {self.faint}")
        if self.noise < 0 or self.strong_noise < 0:
            raise ValueError("deviations of the noise must not be negative")
        if self.counts not in COUNTS:
            raise ValueError(f"counts are {' or '.join(COUNTS)}, not {self.counts!r}")

    @property
    def features(self) -> int:
        """Dictionary vectors that occur in data: the two common ones, then those of (+, c), then those of (−, c)."""
        return 2 * self.subclasses + 2

    def common(self, superclass: int) -> int:
        return superclass

    def subclass(self, superclass: int, c: int) -> int:
        return 2 + superclass * self.subclasses + c

    def batch(self, size: int) -> int:
        """The samples per subclass of a balanced batch."""
        if size < 1 or size % (2 * self.subclasses):
            raise ValueError(f"a balanced batch of {size} is not divisible by {2 * self.subclasses} subclasses")
        return size // (2 * self.subclasses)

    def sample(
        self,
        seeds: Seeds,
        name: str,
        per_subclass: int,
        *,
        hard: bool = False,
        compact: bool = False,
        dictionary: Tensor | None = None,
    ) -> Samples:
        """A balanced batch from each seed's streams ``name``. ``compact`` leaves out plain noise patches, which no
        neuron answers (exact counts only). ``dictionary`` (dim, dim) or (seeds, dim, dim) has the features as rows;
        the standard basis is the default, and noise is drawn in the dictionary's coordinates."""
        if per_subclass < 1:
            raise ValueError("every subclass needs at least one sample")
        if compact and self.counts != "exact":
            raise ValueError("noise patches can be left out only where counts are exact")
        k, n = self.subclasses, 2 * self.subclasses * per_subclass
        fine = torch.arange(2 * k, device=seeds.device).repeat_interleave(per_subclass)
        superclass, subclass = fine // k, fine % k
        kinds = self._compact_kinds(seeds, n, hard) if compact else self._kinds(seeds, name, n, hard)
        strengths = self._strengths(seeds, name, kinds)
        places = self._features_of(kinds, superclass, subclass)
        patches = self._noise(seeds, name, kinds)
        patches.scatter_add_(-1, places.unsqueeze(-1), strengths.unsqueeze(-1))
        if dictionary is not None:
            basis = orthonormal(dictionary, self.dim).to(patches)
            patches = (patches.flatten(1, 2) @ basis).view_as(patches)
        return Samples(patches, kinds, strengths, superclass, subclass, k, hard)

    def test_sets(self, seeds: Seeds, per_subclass: int) -> tuple[Samples, Samples]:
        """Easy and hard samples to test on, without plain noise patches where counts are exact."""
        compact = self.counts == "exact"
        easy, hard = (self.sample(seeds, f"test {h}", per_subclass, hard=h, compact=compact) for h in (False, True))
        return easy, hard

    def _compact_kinds(self, seeds: Seeds, n: int, hard: bool) -> Tensor:
        s, far = self.feature_patches, self.distractors
        row = [SUBCLASS] * s + [DISTRACTOR] * far + [STRONG] if hard else [COMMON] * s + [SUBCLASS] * s
        return torch.tensor(row, device=seeds.device).expand(len(seeds), n, len(row))

    def _kinds(self, seeds: Seeds, name: str, n: int, hard: bool) -> Tensor:
        shape, s = (n, self.patches), self.feature_patches
        draws = [seeds.uniform(f"{name} places {i}", *shape) for i in range(1 if self.counts == "exact" else 4)]
        if self.counts == "exact":
            rank = draws[0].argsort(-1).argsort(-1)
            if not hard:
                return torch.where(rank < s, COMMON, torch.where(rank < 2 * s, SUBCLASS, NOISE))
            last = s + self.distractors
            far = torch.where(rank < last, DISTRACTOR, torch.where(rank == last, STRONG, NOISE))
            return torch.where(rank < s, SUBCLASS, far)
        common = draws[0] < s / self.patches
        left = (self.patches - common.sum(-1, keepdim=True)).clamp(min=1)
        own = ~common & (draws[1] < s / left)
        if not hard:
            return torch.where(common, COMMON, torch.where(own, SUBCLASS, NOISE))
        left = (self.patches - own.sum(-1, keepdim=True)).clamp(min=1)
        far = ~own & (draws[2] < self.distractors / left)
        kinds = torch.where(own, SUBCLASS, torch.where(far, DISTRACTOR, NOISE))
        free = draws[3].masked_fill(kinds != NOISE, -1)
        strongest = free == free.amax(-1, keepdim=True)
        return torch.where(strongest & (kinds == NOISE), STRONG, kinds)

    def _strengths(self, seeds: Seeds, name: str, kinds: Tensor) -> Tensor:
        """α = √u with u uniform on [1 − ι, 1 + ι] on features, uniform on ``faint`` on distractors, else 0."""
        uniform = seeds.uniform(f"{name} strengths", *kinds.shape[1:])
        own = (1 + self.jitter * (2 * uniform - 1)).sqrt()
        low, high = self.faint
        far = low + (high - low) * uniform
        feature = (kinds == COMMON) | (kinds == SUBCLASS)
        return torch.where(feature, own, torch.where(kinds == DISTRACTOR, far, 0.0))

    def _features_of(self, kinds: Tensor, superclass: Tensor, subclass: Tensor) -> Tensor:
        """The dictionary vector of every patch; 0 where there is none, with strength 0."""
        own = (2 + superclass * self.subclasses + subclass).view(1, -1, 1)
        common = superclass.view(1, -1, 1)
        places = torch.where(kinds == SUBCLASS, own, torch.where(kinds == DISTRACTOR, 1 - common, common))
        return torch.where((kinds == NOISE) | (kinds == STRONG), 0, places)

    def _noise(self, seeds: Seeds, name: str, kinds: Tensor) -> Tensor:
        normal = seeds.normal(f"{name} noise", *kinds.shape[1:], self.dim)
        scale = torch.where(kinds == STRONG, self.strong_noise, self.noise)
        return normal * scale.unsqueeze(-1).to(normal)


def orthonormal(dictionary: Tensor, dim: int) -> Tensor:
    """The dictionary, refused unless its rows are an orthonormal basis."""
    if dictionary.shape[-2:] != (dim, dim):
        raise ValueError(f"a dictionary for dimension {dim} has shape ({dim}, {dim}), not {tuple(dictionary.shape)}")
    eye = torch.eye(dim, dtype=dictionary.dtype, device=dictionary.device)
    if float((dictionary @ dictionary.mT - eye).abs().max()) > 1e-4:
        raise ValueError("the dictionary's rows are not orthonormal")
    return dictionary


def rotations(seeds: Seeds, dim: int) -> Tensor:
    """A dictionary of each seed, uniform over the orthogonal group: (seeds, dim, dim)."""
    q, r = torch.linalg.qr(seeds.normal("rotation", dim, dim, dtype=torch.float64).double())
    basis: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return basis.to(seeds.dtype)
