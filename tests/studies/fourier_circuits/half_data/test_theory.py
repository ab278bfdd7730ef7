from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.fourier_circuits.half_data.theory import trigonometric_interpolation


@given(st.integers(1, 12).map(lambda n: 2 * n + 1), st.integers(0, 100))
def test_interpolation_goes_through_the_points(p, seed):
    u = np.random.default_rng(seed).normal(size=p)
    np.testing.assert_allclose(trigonometric_interpolation(u, np.arange(p)), u, atol=1e-10)
    fine = np.linspace(0, p, 50)
    wave = np.cos(0.3 + 2 * np.pi * np.arange(p) / p)
    np.testing.assert_allclose(trigonometric_interpolation(wave, fine), np.cos(0.3 + 2 * np.pi * fine / p), atol=1e-10)
