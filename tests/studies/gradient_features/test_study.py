from __future__ import annotations

import pytest

from assay.lab import UserError
from assay.studies.gradient_features.study import study


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"xor_dims": "100,50"}, "xor_dims needs values that grow"),
        ({"sampled": "500,500"}, "sampled needs values that grow"),
        ({"hard_dims": "100,81"}, "hard_dims needs values that grow"),
        ({"wide_dims": "100,81"}, "wide_dims needs values that grow"),
        ({"need_dims": "100,49"}, "need_dims needs values that grow"),
        ({"need_ratios": "0.1,0.05"}, "need_ratios needs values that grow"),
        ({"kernel_samples": ""}, "kernel_samples needs values that grow"),
        ({"sampled_dims": "10,21"}, "odd and above its size"),
        ({"instances": "50-6"}, "instances"),
        ({"instances": "50-5,50-5"}, "different ones"),
        ({"threshold": "0"}, "greater than 0"),
        ({"cone": "1"}, "less than 1"),
        ({"index_ratios": "2,1"}, "index_ratios needs values that grow"),
        ({"head_widths": "64,8"}, "head_widths needs values that grow"),
        ({"sample_ratios": "-1,1"}, "greater than 0"),
        ({"six_dims": "30"}, "odd and above its size"),
        ({"parity_race": "30,4,64"}, "odd"),
        ({"head_parity": "5,7"}, "do not fit"),
        ({"image_pair": "3,3"}, "two different classes"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        study.resolve("smoke", overrides)
    assert "\n" not in str(refusal.value)
