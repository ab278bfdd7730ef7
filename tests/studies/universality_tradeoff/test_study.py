from __future__ import annotations

import pytest

from assay.lab import UserError
from assay.studies.universality_tradeoff.study import study


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"rare_shares": "0.2,0.1"}, "rare_shares must rise"),
        ({"rare_shares": "0.1,0.3"}, "below 1/4"),
        ({"norm_multiples": "1.1,1.2"}, "below and above 1"),
        ({"table_norms": "0"}, "greater than 0"),
        ({"shared": "5"}, "relevant must exceed shared"),
        ({"risk_shared": "20"}, "risk_relevant must exceed risk_shared"),
        ({"risk_tasks": "4,32"}, "begin with 1"),
        ({"floor_labels": "5,100"}, "must exceed risk_shared"),
        ({"update_relevant": "3"}, "update_relevant must exceed"),
        ({"update_reaches": "1,0.5"}, "update_reaches must rise"),
        ({"image_sources": "digits"}, "at least 2"),
        ({"image_sources": "digits,digits"}, "different sets"),
        ({"image_sources": "digits,nonsense"}, "nonsense"),
        ({"image_labels": "100,20"}, "image_labels must rise"),
        ({"tuned_labels": "100,20"}, "tuned_labels must rise"),
        ({"image_decays": "-1,0"}, "greater than or equal to 0"),
        ({"text_sets": "sst2,sst2"}, "different sets"),
        ({"strength": "0"}, "greater than 0"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        study.resolve("smoke", overrides)
    assert "\n" not in str(refusal.value)


def test_image_arms_need_the_sets_that_are_read_and_no_others():
    params = study.resolve("laptop", {"image_sources": "mnist,stripes,cifar10"})
    assert params.image_needs() == ("data:mnist", "data:cifar10")
    assert params.mixtures() == ("mnist", "mnist+stripes", "mnist+stripes+cifar10")
