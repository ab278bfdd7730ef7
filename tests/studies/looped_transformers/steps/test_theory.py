from __future__ import annotations

import pytest
import torch

from assay.studies.looped_transformers.steps.theory import remaining_error


def test_the_law_of_large_spectra_gives_the_error_that_is_left():
    generator = torch.Generator().manual_seed(0)
    for n, d, loops in ((800, 200, 20), (900, 300, 40)):
        inputs = torch.randn(8, n, d, generator=generator, dtype=torch.float64)
        largest = n * (1 + (d / n) ** 0.5) ** 2
        left = 1 - torch.linalg.eigvalsh(inputs.mT @ inputs) / largest
        assert remaining_error(n, d, loops) == pytest.approx(float((left ** (2 * loops)).mean().sqrt()), rel=0.05)


def test_no_loop_leaves_everything_and_more_loops_leave_less():
    assert remaining_error(100, 20, 0) == pytest.approx(1)
    errors = [remaining_error(100, 20, loops) for loops in (1, 10, 100)]
    assert errors == sorted(errors, reverse=True)
    with pytest.raises(ValueError, match="unless n > d"):
        remaining_error(20, 20, 5)
