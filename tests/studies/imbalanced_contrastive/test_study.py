import pytest

from assay.lab.params import build
from assay.lab.recorder import Recorder
from assay.studies.imbalanced_contrastive.capacity.arms import widths
from assay.studies.imbalanced_contrastive.stage_two.arms import lucky
from assay.studies.imbalanced_contrastive.study import Params, study
from assay.studies.imbalanced_contrastive.sweeps.arms import alignment, representation
from assay.training import Seeds


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
    assert len(rows)
    assert not rows["value"].is_finite().any(), rows.filter(rows["value"].is_finite())
