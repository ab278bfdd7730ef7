"""Tasks and splits for any module, and what the inner loop can be differentiated through."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from assay.methods.fomaml import Fomaml
from assay.methods.inner_loop import InnerLoop
from assay.methods.meta_tasks import Task, margins, split_task
from assay.methods.reptile import Reptile


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
    with pytest.raises(ValueError, match="support has the fields a tensor, and query ids"):
        Task.from_parts((ids, labels), ({"ids": ids}, labels))


def test_stratified_splits_need_classes_on_both_sides():
    generator = torch.Generator().manual_seed(0)
    lopsided = Task(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1]), torch.tensor([2, 3]))
    with pytest.raises(ValueError, match="class 0 is on one side"):
        split_task(lopsided, generator=generator)
    assert len(split_task(lopsided, stratify=False, generator=generator)[0]) == 2
    with pytest.raises(ValueError, match=r"shape \(4, 1\).*stratify=False"):
        split_task(Task(torch.zeros(4, 1), torch.zeros(4, 1)), generator=generator)
    with pytest.raises(ValueError, match="stratify=False"):
        split_task(Task(torch.zeros(4, 1), torch.randn(4)), generator=generator)


def places(support, query):
    task = Task(torch.zeros(4, 1), torch.tensor([0, 1, 0, 1]), support, query)
    return task.support.tolist(), task.query.tolist()


def test_a_split_knows_its_samples_by_one_number_each():
    assert places(torch.tensor([0, -3]), torch.tensor([2, -1])) == ([0, 1], [2, 3])
    first = torch.tensor([True, True, False, False])
    assert places(first, ~first) == ([0, 1], [2, 3])
    assert places(torch.tensor([0, 1], dtype=torch.uint8), [2, 3]) == ([0, 1], [2, 3])
    with pytest.raises(ValueError, match="1 samples are in both"):
        places(torch.tensor([0, -1]), torch.tensor([2, 3]))
    with pytest.raises(ValueError, match="1 samples are in both"):
        places(first, torch.tensor([1, 2]))


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (torch.tensor([0, 4]), "support asks for sample 4, and there are 4"),
        (torch.tensor([-5, 0]), "support asks for sample -5"),
        (torch.tensor([True, False]), "one flag for each of 4 samples"),
        (torch.tensor([0.0, 1.0]), "list of places"),
        (torch.tensor([[0, 1]]), "list of places"),
    ],
)
def test_a_split_that_names_no_samples_is_refused(support, message):
    with pytest.raises(ValueError, match=message):
        places(support, torch.tensor([2, 3]))


class Checkpointed(torch.nn.Module):
    """A network whose first pass is repeated for its gradient, when asked."""

    def __init__(self, reentrant):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.head = torch.nn.Linear(3, 5).double(), torch.nn.Linear(5, 2).double()
        self.reentrant = reentrant

    def hidden(self, inputs):
        return torch.tanh(self.first(inputs))

    def forward(self, inputs):
        if self.reentrant is None:
            return self.head(self.hidden(inputs))
        return self.head(checkpoint(self.hidden, inputs, use_reentrant=self.reentrant))


def checkpointed_task():
    inputs = torch.randn(8, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return Task(inputs.requires_grad_(), torch.tensor([0, 1] * 4))


def test_checkpointing_finds_the_weights_that_its_pass_had():
    loss, found = torch.nn.functional.cross_entropy, []
    for reentrant in (None, False):
        model, task = Checkpointed(reentrant), checkpointed_task()
        slopes, value = Fomaml(0.5, 3).meta_gradient(model, task, task, loss, InnerLoop(0.5, 3))
        Reptile(0.5, 3).step(model, [task], loss)
        found.append([value, *slopes.values(), *(p.detach() for p in model.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_is_refused_where_gradients_go_through_several_weights(reentrant):
    model, task, loss = Checkpointed(reentrant), checkpointed_task(), torch.nn.functional.cross_entropy
    with pytest.raises(RuntimeError, match=r"gradient checkpointing, .* order='first'"):
        Fomaml(0.5, 2, order="second").meta_gradient(model, task, task, loss, InnerLoop(0.5, 2))
    with pytest.raises(RuntimeError, match="gradient checkpointing"):
        InnerLoop(0.5).loss(model, dict(model.named_parameters()), task, loss)
    assert not model._forward_hooks
    if reentrant:
        with pytest.raises(RuntimeError, match="use_reentrant=False"):
            Fomaml(0.5, 2).meta_gradient(model, task, task, loss, InnerLoop(0.5, 2))


def test_margins_of_one_output_and_of_several():
    assert margins(torch.tensor([2.0, -3.0]), torch.tensor([1, -1])).tolist() == [2.0, 3.0]
    several = margins(torch.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]]), torch.tensor([0, 1]))
    assert several.tolist() == [1.0, -4.0]
    with pytest.raises(ValueError, match="labels"):
        margins(torch.tensor([2.0]), torch.tensor([3]))
