import pytest
import torch

from assay.lab import UserError
from assay.lab.params import build
from assay.lab.recorder import Recorder
from assay.studies.imbalanced_contrastive.study import Params, alignment, nan_if_diverged, representation, study, widths
from assay.studies.imbalanced_contrastive.theory_arms import lucky
from assay.training.seeds import Seeds

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


def test_every_preset_is_allowed_and_the_papers_images_are_a_row_of_its_table():
    for preset in study.presets.values():
        assert build(Params, preset.values)
    paper = study.presets["paper"].values
    assert set(paper["image_ratios"]) <= {1.0, 10.0, 50.0, 100.0}
    assert (paper["images"], paper["image_network"], paper["image_width"]) == ("cifar10", "resnet", 64)


def recorded(arm, values, seeds=(0, 1), **setting):
    record = Recorder(seeds)
    arm(build(Params, study.presets["smoke"].values, values), Seeds(seeds), record, **setting)
    return record.frame()


@pytest.mark.parametrize(
    ("arm", "setting", "values"),
    [(alignment, {}, {}), (representation, {}, {}), (widths, {"neurons": 8}, {}), (lucky, {"rule": "biased"}, {})],
)
def test_a_training_that_diverges_measures_nothing(arm, setting, values):
    """Counts over weights that are not numbers would be 0, and a claim would have a verdict on nothing."""
    values = {"rate": 50.0, "temperature": 0.05, "init": 1.0, "decay": 0.0, "pruned_decays": (0.0,), **values}
    rows = recorded(arm, values, **setting)
    if "step" in rows.columns and rows["step"].is_not_null().any():
        rows = rows.filter(rows["step"].fill_null(60) == 60)
    rows = rows.filter(~rows["metric"].is_in(["lucky_count", "lucky_features", "set_neurons", "target_variance"]))
    assert len(rows)
    assert not rows["value"].is_finite().any(), rows.filter(rows["value"].is_finite())


def test_nan_marks_encoders_that_diverged_and_no_others():
    weights = torch.ones(2, 3, 4, 5)
    weights[1, 2, 0, 0] = torch.inf
    assert nan_if_diverged(weights).isnan().tolist() == [[False] * 3, [False, False, True]]
