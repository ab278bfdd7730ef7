import pytest

from assay.lab import UserError
from assay.lab.params import build
from assay.studies.imbalanced_contrastive.study import Params

BAD = [
    ({"pruned_rare": (0.0, 0.5)}, "0 < ε ≤ 1"),
    ({"rare": (0.5, 1.5)}, "0 < ε ≤ 1|no probability"),
    ({"noise": (-0.1, 0.5)}, "noise-to-signal ratio is not negative"),
    ({"noise_high": (-1.0, 0.5, 1.0)}, "noise-to-signal ratio is not negative"),
    ({"pruned_decays": (-0.01, 0.01)}, "weight decay is not negative"),
    ({"widths": (0, 12)}, "at least 2 neurons, not 0"),
    ({"alpha": 0.99}, "prunes 24 of 24 neurons"),
    ({"alpha": 0.01}, "prunes 0 of 24 neurons"),
    ({"image_largest": 10, "image_ratios": (10.0, 100.0)}, "the smallest has none"),
    ({"image_ratios": (100.0, 10.0)}, "image_ratios must rise"),
    ({"pruned_steps": 100}, "never used in pruned_steps = 100"),
    ({"long_steps": 60}, "never used in long_steps = 60"),
]


@pytest.mark.parametrize(("values", "words"), BAD)
def test_bad_values_are_refused_before_anything_runs(values, words):
    with pytest.raises(UserError, match=words) as refusal:
        build(Params, values)
    assert "\n" not in str(refusal.value)
