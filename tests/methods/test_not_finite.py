"""What is not finite is refused or reported as such, and never scored."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from assay.methods import Fomaml, InputReplacement, ReplacementData, Task, feature_learning_gain
from assay.probes import GradientConsistency, chunk_cosines, group_errors

INPUTS = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
LABELS = (INPUTS[:, 0] > 0).long()


class Broken(nn.Linear):
    """A classifier that answers NaN in evaluation mode."""

    def forward(self, inputs):
        return super().forward(inputs) if self.training else super().forward(inputs) * torch.nan


def gain(model, data=(INPUTS, LABELS), **options):
    given = dict(head="0", generator=torch.Generator(), steps=3, batch_size=20, learning_rates=(1e-2,), **options)
    return feature_learning_gain(model, data, data, data, **given)


def test_group_errors_refuse_scores_that_are_none():
    with pytest.raises(ValueError, match="scores must be finite"):
        group_errors(torch.full((3, 2), torch.nan), torch.tensor([0, 1, 1]), {"all": torch.ones(3, dtype=torch.bool)})
    some = torch.tensor([[2.0, -torch.inf], [0.0, 1.0]])  # a class that is ruled out
    assert group_errors(some, torch.tensor([0, 1], dtype=torch.int32), {"all": torch.ones(2, dtype=torch.bool)}) == {
        "all": 0.0
    }


def test_scores_that_are_not_numbers_are_no_class():
    with pytest.raises(ValueError, match="diverged at every learning rate"):
        gain(nn.Sequential(Broken(4, 2)))
    with pytest.raises(ValueError, match="inputs must be finite"):
        gain(nn.Sequential(nn.Linear(4, 2)), (INPUTS * torch.nan, LABELS))


def test_a_divergence_in_the_last_step_is_one():
    class Leap(torch.optim.SGD):
        taken = 0

        def step(self, closure=None):
            super().step()
            self.taken += 1
            if self.taken == 3:
                with torch.no_grad():
                    self.param_groups[0]["params"][0].fill_(torch.inf)

    with pytest.raises(ValueError, match="diverged at every learning rate"):
        gain(nn.Sequential(nn.Linear(4, 2)), optimizer=Leap)


DATA = ReplacementData(INPUTS, LABELS, INPUTS, LABELS, INPUTS.flip(0), INPUTS)
QUICK = InputReplacement(teacher_steps=3, student_steps=3, batch=40, evaluate_every=1)


def make(size):
    return nn.Sequential(nn.Linear(4, size), nn.ReLU(), nn.Dropout(0.5), nn.Linear(size, 2))


@pytest.mark.parametrize("part", ["inputs", "test_inputs", "injected", "injected_test"])
def test_replacement_data_are_finite(part):
    with pytest.raises(ValueError, match="inputs must be finite"):
        replace(DATA, **{part: INPUTS * torch.nan})


def test_a_network_that_diverges_is_not_reported_on():
    wild = replace(QUICK, learning_rate=1e30)
    with pytest.raises(ValueError, match="not finite"):
        wild.run(make, DATA, teacher_size=4, student_size=4, seeds=[0])


def test_gradients_that_are_not_finite_are_counted_and_left_out():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with GradientConsistency(["weight"], chunks=2, steps_per_chunk=2).attach(model, optimizer) as record:
        for step in range(5):
            optimizer.zero_grad()
            (model(INPUTS).square().mean() * (math.nan if step == 1 else 1.0)).backward()
            optimizer.step()
            if step == 1:
                with torch.no_grad():
                    model.weight.fill_(1.0)
                    model.bias.fill_(1.0)
    assert (record.steps, record.left_out) == (4, 1)
    found = record.report()["weight"]
    assert found.silent_rows == 0
    with pytest.raises(ValueError, match="chunk means must be finite"):
        chunk_cosines(torch.full((2, 3, 4), torch.nan))


def test_a_task_is_finite():
    with pytest.raises(ValueError, match="inputs must be finite"):
        Task(INPUTS * torch.nan, LABELS)
    method = Fomaml(1e30, 3)
    optimizer = torch.optim.SGD([*(model := make(4)).parameters()], 1.0)
    with pytest.raises(FloatingPointError, match="not finite"):
        method.step(model, [Task(INPUTS, LABELS)], nn.functional.cross_entropy, optimizer, generator=torch.Generator())
