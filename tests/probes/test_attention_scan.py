"""The scan of all heads: one head that knows the cycle is found, and none where none does."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.probes import attention_fourier, scan_attention


class Model(nn.Module):
    """Two layers of two heads on random embeddings of a few tokens; one head may read the cycle off two coordinates."""

    def __init__(self, tokens: int, cyclic: bool, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(tokens, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 16, norm_first=False, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        if cyclic:
            angles = torch.arange(tokens) * (2 * math.pi / tokens)
            weight = torch.zeros(48, 16)
            for place in (8, 24):  # queries and keys of head 1
                weight[place, 0] = weight[place + 1, 1] = 1.0
            with torch.no_grad():
                self.embedding.weight[:, 0], self.embedding.weight[:, 1] = 0.05 * angles.cos(), 0.05 * angles.sin()
                self.encoder.layers[1].self_attn.in_proj_weight.copy_(weight)


def test_the_head_that_knows_the_cycle_is_found():
    found = scan_attention(Model(11, cyclic=True), range(11), orders=99)
    assert found.periodic() == [(1, 1)]
    assert float(found.p[1, 0]) == 1, "a head without any scores is not periodic"
    assert float(found.share[1, 1]) == pytest.approx(1, abs=1e-4)
    assert (int(found.key[1, 1]), int(found.query[1, 1])) == (1, 1)
    assert found.table()[0]["head"] == found.table()[0]["layer"] == 1
    one = attention_fourier(Model(11, cyclic=True), 0, 1, range(11))
    torch.testing.assert_close(found.share[0, 1].float(), one.share())


def test_chance_names_heads_no_more_often_than_its_level():
    """Of 40 models without a cycle about two may have a head with an adjusted p of 0.05; 7 have a chance of 0.3 %."""
    named = sum(bool(scan_attention(Model(9, cyclic=False, seed=k), range(9), orders=39).periodic()) for k in range(40))
    assert named <= 7


def test_a_seed_decides_and_bad_requests_are_refused():
    one, other = (scan_attention(Model(7, cyclic=False), range(7), orders=19, seed=3) for _ in range(2))
    assert torch.equal(one.p, other.p)
    assert bool((one.adjusted >= one.p - 1e-9).all())
    with pytest.raises(ValueError, match="orders must be at least 19"):
        scan_attention(Model(7, cyclic=False), range(7), orders=5)
    with pytest.raises(ValueError, match="at least 3 different tokens"):
        scan_attention(Model(7, cyclic=False), [1, 1, 2])
    broken = Model(7, cyclic=False)
    with torch.no_grad():
        broken.embedding.weight[2] = torch.nan
    with pytest.raises(ValueError, match="must be finite"):
        scan_attention(broken, range(7))
