"""Tasks and splits for any module, and what the inner loop can be differentiated through."""

import pytest
import torch

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import InnerLoop, Task, split_task


class Attends(torch.nn.Module):
    """One layer of scaled dot-product attention, whose fused form cannot be differentiated twice."""

    def __init__(self):
        super().__init__()
        self.project, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        part = self.project(x).unsqueeze(1)
        return self.head(torch.nn.functional.scaled_dot_product_attention(part, part, part).squeeze(1).mean(1))


def test_second_order_goes_through_fused_attention():
    torch.manual_seed(0)
    model, cross_entropy = Attends(), torch.nn.functional.cross_entropy
    task = Task(torch.randn(4, 3, 8), torch.tensor([0, 1, 0, 1]))
    method, inner = Fomaml(0.1, 2, order="second"), InnerLoop(0.1, 2)
    slopes, value = method.meta_gradient(model, task, task, cross_entropy, inner)
    weight, step = model.head.bias, 1e-3
    moved = []
    for sign in (1, -1):
        with torch.no_grad():
            weight[0] += sign * step
        adapted = inner.adapt(model, task, cross_entropy)
        moved.append(inner.loss(model, adapted, task, cross_entropy)[0].item())
        with torch.no_grad():
            weight[0] -= sign * step
    assert float(slopes["head.bias"][0]) == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=0.02)
    assert torch.isfinite(value)


def test_parts_are_joined_by_name_and_must_fit():
    ids, mask, labels = torch.arange(6).reshape(2, 3), torch.ones(2, 3, dtype=torch.long), torch.tensor([0, 1])
    other = {"mask": mask, "ids": ids + 10}
    task = Task.from_parts(({"ids": ids, "mask": mask}, labels), (other, labels))
    assert torch.equal(task.inputs["ids"], torch.cat([ids, ids + 10]))
    assert torch.equal(task.inputs["mask"], torch.cat([mask, mask]))
    with pytest.raises(ValueError, match="support has the fields ids, mask"):
        Task.from_parts(({"ids": ids, "mask": mask}, labels), ({"ids": ids}, labels))
    with pytest.raises(ValueError, match="pad both to one length"):
        Task.from_parts((ids, labels), (torch.arange(8).reshape(2, 4), labels))
    with pytest.raises(ValueError, match="both be tensors"):
        Task.from_parts((ids, labels), ({"ids": ids}, labels))


def test_stratified_splits_need_classes_on_both_sides():
    generator = torch.Generator().manual_seed(0)
    lopsided = Task(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1]), torch.tensor([2, 3]))
    with pytest.raises(ValueError, match="class 0 is on one side"):
        split_task(lopsided, generator=generator)
    assert len(split_task(lopsided, stratify=False, generator=generator)[0]) == 2
    with pytest.raises(ValueError, match=r"shape \(4, 1\).*stratify=False"):
        split_task(Task(torch.zeros(4, 1), torch.zeros(4, 1)), generator=generator)
    with pytest.raises(ValueError, match="stratify=False for labels that are not classes"):
        split_task(Task(torch.zeros(4, 1), torch.randn(4)), generator=generator)
