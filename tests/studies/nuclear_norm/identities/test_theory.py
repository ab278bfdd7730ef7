from __future__ import annotations

import torch

from assay.methods.nuclear_norm import nuclear_norm
from assay.studies.nuclear_norm.identities import theory


def test_extractors_meet_their_constraint_and_rank_one_is_least():
    g = torch.Generator().manual_seed(0)
    inputs, v, h = (torch.randn(5, *shape, generator=g, dtype=torch.float64) for shape in ((9, 4), (4,), (3,)))
    best = theory.rank_one_extractor(v, h)
    torch.testing.assert_close((h.unsqueeze(1) @ best).squeeze(1), v)
    torch.testing.assert_close(nuclear_norm(inputs @ best.mT, "none", stacked=True), theory.least_norm(inputs, v, h))
    other = theory.feasible_extractor(v, h, torch.randn(5, 3, 4, generator=g, dtype=torch.float64))
    torch.testing.assert_close((h.unsqueeze(1) @ other).squeeze(1), v)
    assert bool((nuclear_norm(inputs @ other.mT, "none", stacked=True) > theory.least_norm(inputs, v, h)).all())


def test_the_printed_ratio_grows_with_scale():
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(theory.printed_stable_rank(2 * features), 2 * theory.printed_stable_rank(features))


def test_the_subgradient_has_singular_values_one():
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    values = torch.linalg.svdvals(theory.subgradient(features))
    torch.testing.assert_close(values, torch.ones(4, dtype=torch.float64))
