import math

import torch

from assay.studies.imbalanced_contrastive.learners import Encoders
from assay.studies.imbalanced_contrastive.stage_two.learners import InitialSets

# Two neurons of one feature each, one without any, in two feature directions and one of noise.
SETS = InitialSets(
    lucky=torch.tensor([[[True, False], [False, True], [False, False]]]),
    ordinary=torch.tensor([[[True, False], [False, True], [False, False]]]),
)


def encoders(weights, bias=0.5):
    weights = torch.tensor(weights, dtype=torch.float64)[None, None]
    return Encoders(weights, torch.full(weights.shape[:3], bias, dtype=torch.float64))


def test_neurons_on_their_own_feature_are_pure_and_bounded_by_hand():
    end = encoders([[3.0, 0.0, 4.0], [0.0, -2.0, 0.0], [1.0, 1.0, 0.0]])
    seen = SETS.specialisation(end)
    assert [float(seen[name]) for name in ("lucky_kept", "lucky_share")] == [1.0, 1.0]
    assert math.isclose(float(seen["lucky_norm_share"]), (9 / 25 + 1) / 2)
    assert float(SETS.growth(end, torch.full((1, 3), 2.0, dtype=torch.float64))) == 1.0
    bounds = SETS.over_bias(end)
    assert float(bounds["lucky_over_bias"]) == 4.0
    assert float(bounds["outsider_over_bias"]) == 2.0
    assert float(SETS.others_over_lucky(end)) == 0.5
    assert float(SETS.weak_rms(end)) == 0.0


def test_a_neuron_that_changes_its_feature_is_not_kept():
    seen = SETS.specialisation(encoders([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert float(seen["lucky_kept"]) == 0.5
    assert float(seen["lucky_share"]) == 0.5


def test_without_a_lucky_neuron_there_is_nothing_to_compare():
    none = InitialSets(torch.zeros(1, 3, 2, dtype=torch.bool), torch.zeros(1, 3, 2, dtype=torch.bool))
    assert none.others_over_lucky(encoders([[1.0, 0.0, 0.0]] * 3)).isnan().all()
