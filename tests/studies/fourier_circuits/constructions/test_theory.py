from __future__ import annotations

import pytest
import torch

from assay.methods.modular_margin import build_max_margin, max_margin, network_logits
from assay.studies.fourier_circuits.constructions.theory import diagonal_transform


@pytest.mark.parametrize(("p", "k"), [(5, 2), (5, 3), (7, 3)])
def test_the_maximum_margin_function_uses_every_frequency_equally(p, k):
    found = diagonal_transform(*build_max_margin(p, k))[1:]
    expected = torch.full((p - 1,), max_margin(p, k) * p**k, dtype=torch.complex128)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_a_single_neuron_vanishes_off_its_frequency():
    p, zeta = 7, 2
    U, W = build_max_margin(p, 2)
    one = slice(8 * (zeta - 1), 8 * (zeta - 1) + 1)
    inputs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    table = network_logits(U[..., one], W[one], inputs).reshape(p, p, p)
    transform = torch.fft.fftn(table).abs()
    for index in (transform > 1e-12).nonzero().tolist():
        assert 0 in index[:2] or all(j in (zeta, p - zeta) for j in index)
