from __future__ import annotations

import pytest

from assay.data.images import load_images
from assay.lab import UserError
from assay.studies.label_granularity.images.problem import SIZES
from assay.studies.label_granularity.study import study


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"image_samples": "399"}, "greater than or equal to 400"),
        ({"clusters": "0,2,5"}, "clusters.*greater than 0"),
        ({"clusters": "2,5,5000"}, "clusters ask for 5000 in a superclass"),
        ({"clusters": "5,2"}, "clusters needs values that grow"),
        ({"resnet_clusters": "0,5"}, "resnet_clusters.*greater than 0"),
        ({"resnet_clusters": "5,100"}, "resnet_clusters ask for 100 in a superclass"),
        ({"strong_noises": "-1,1"}, "strong_noises.*greater than 0"),
        ({"image_widths": "0,0"}, "image_widths.*greater than 0"),
        ({"image_widths": "-1,5"}, "image_widths.*greater than 0"),
        ({"initial_neurons": "0,5"}, "initial_neurons.*greater than 0"),
        ({"starved_samples": "1000"}, "starved_samples asks for 1000 of each class, and 400 images of digits allow 16"),
        ({"starved_samples": "4"}, "greater than or equal to 8"),
        ({"threshold": "40"}, "give 0 detectors per feature"),
        ({"threshold": "0.1"}, "detectors per feature"),
        ({"faint_low": "2"}, "from small to large"),
        ({"subclasses": "40"}, "dictionary vectors"),
        ({"sweep": "2,4,40"}, "dictionary vectors"),
        ({"images": "svhn"}, "no hierarchy of classes"),
        ({"images": "paintings"}, "unknown image set 'paintings'"),
        ({"tiles": "bathroom"}, "tiles are"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        study.resolve("smoke", overrides)
    assert "\n" not in str(refusal.value)


def test_presets_are_allowed_and_the_digits_are_counted():
    for preset in ("smoke", "laptop", "paper"):
        for setting in (None, *study.settings):
            study.resolve(preset, {}, setting)
    study.resolve("laptop", {"images": "digits", "tiles": "digits"})
    assert len(load_images("digits")) == SIZES["digits"]
