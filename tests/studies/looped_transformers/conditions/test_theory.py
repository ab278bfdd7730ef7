from __future__ import annotations

import numpy as np
import pytest

from assay.studies.looped_transformers.conditions.theory import edge_condition, trial_means


def test_the_edges_of_the_spectrum():
    assert edge_condition(16, 4) == pytest.approx(9.0)
    assert edge_condition(32, 4) == pytest.approx(4.38, abs=0.01)
    with pytest.raises(ValueError, match="n > d"):
        edge_condition(4, 4)


def test_means_over_trials():
    drawn = np.arange(12.0).reshape(2, 6)
    assert trial_means(drawn, 4).tolist() == [[1.5], [7.5]]
