"""The runners of the races, against a loop over samples."""

import pytest
import torch

from assay.studies.meta_split.learners import Conditions, train
from assay.studies.meta_split.problem import Coupling, Products, SharedFeature
from assay.studies.meta_split.stages.learners import outer_energy, stage_metrics
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
TASKS = SharedFeature(50, 8, 3, 6, 3).sample(SEEDS)
START = 0.2 * SEEDS.normal("filters", 6, 50)


@pytest.mark.parametrize(("split", "seen"), [("train-train", range(6)), ("train-validation", range(3, 6))])
def test_the_runners_of_the_race_are_the_slowest_and_fastest_by_hand(split, seen):
    conditions = Conditions.of([(split, 0.5, 0.3, 4, 0.5)], SEEDS, 6, 3)
    products = Products.of(TASKS, START)
    (look,) = train(products, Coupling.of(TASKS, TASKS), conditions, 0, [0])
    found, energy = stage_metrics(look, conditions), outer_energy(products, conditions)
    for run in range(2):
        own, norms = [], []
        for task in range(3):
            for sample in seen:
                group = slice(0, 3) if TASKS.labels[run, task, sample] > 0 else slice(3, 6)
                noise = TASKS.noise[run, task, sample]
                own.append(float((START[run, group] @ noise).max()))
                norms.append(float(noise.square().sum()))
        shared = START[run] @ TASKS.shared[run]
        sides = sorted((float(shared[:3].max()), float((-shared[3:]).max())))
        assert float(found["least_noise_alignment"][run]) == pytest.approx(min(own))
        assert float(found["largest_noise_alignment"][run]) == pytest.approx(max(own))
        assert float(found["feature_alignment"][run]) == pytest.approx(sides[0])
        assert float(found["largest_feature_alignment"][run]) == pytest.approx(sides[1])
        assert float(energy["least_energy"][run]) == pytest.approx(min(norms))
        assert float(energy["largest_energy"][run]) == pytest.approx(max(norms))
