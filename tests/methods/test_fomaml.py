"""FOMAML and MAML against unrolled loops, finite differences and autograd; splits, statistics, refusals."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from assay.methods.fomaml import Fomaml, fomaml
from assay.methods.inner_loop import InnerLoop
from assay.methods.meta_tasks import Task, draw_tasks, split_task

HALVES = (torch.arange(4), torch.arange(4, 8))


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()


def task(seed=0, split=True):
    g = torch.Generator().manual_seed(seed)
    inputs = torch.randn(8, 3, generator=g, dtype=torch.float64)
    labels = torch.tensor([0, 1] * 4)
    return Task(inputs, labels, *HALVES) if split else Task(inputs, labels)


def unrolled(model, support, query, lr, steps, order):
    """MAML by hand: plain tensors, plain autograd."""
    start = [p.detach().clone().requires_grad_() for p in model.parameters()]
    weights = list(start)

    def loss(w, part):
        hidden = torch.tanh(part.inputs @ w[0].mT + w[1])
        return functional.cross_entropy(hidden @ w[2].mT + w[3], part.labels)

    for _ in range(steps):
        slopes = torch.autograd.grad(loss(weights, support), weights, create_graph=order == "second")
        weights = [w - lr * g for w, g in zip(weights, slopes, strict=True)]
        if order == "first":
            weights = [w.detach().requires_grad_() for w in weights]
    return torch.autograd.grad(loss(weights, query), start if order == "second" else weights)


def gradient(method, model, one):
    inside, outside = method.parts(one, torch.Generator())
    return method.meta_gradient(model, inside, outside, functional.cross_entropy, method.inner())


@pytest.mark.parametrize("order", ["first", "second"])
@pytest.mark.parametrize("split", ["train-val", "train-train"])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_gradients_are_those_of_the_unrolled_loop(order, split, steps):
    model, one = network(), task()
    method = Fomaml(0.3, steps, split=split, order=order)
    inside, outside = method.parts(one, torch.Generator())
    expected = unrolled(model, inside, outside, 0.3, steps, order)
    for ours, theirs in zip(gradient(method, model, one)[0].values(), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_second_order_is_the_derivative_of_the_meta_objective():
    model, one = network(), task()
    method = Fomaml(0.3, 3, order="second")
    slopes, _ = gradient(method, model, one)

    def objective():
        return float(gradient(method, model, one)[1])

    weight, bump = model[0].weight, 1e-6
    for place in ((0, 0), (3, 2)):
        with torch.no_grad():
            weight[place] += bump
            up = objective()
            weight[place] -= 2 * bump
            down = objective()
            weight[place] += bump
        assert (up - down) / (2 * bump) == pytest.approx(float(slopes["0.weight"][place]), abs=1e-8)


def test_first_and_second_order_differ_unless_the_inner_rate_is_zero():
    model, one = network(), task()
    first, second = (gradient(Fomaml(0.3, 2, order=order), model, one)[0]["0.weight"] for order in ("first", "second"))
    assert float((first - second).abs().max()) > 1e-4
    first, second = (gradient(Fomaml(0.0, 2, order=order), model, one)[0]["0.weight"] for order in ("first", "second"))
    assert torch.equal(first, second)


def test_a_step_averages_over_tasks_and_applies_the_optimiser():
    model, tasks = network(), [task(1), task(2)]
    method = Fomaml(0.3, 2)
    found = [gradient(method, model, one)[0].values() for one in tasks]
    expected = [torch.stack(parts).mean(0) for parts in zip(*found, strict=True)]
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    report = method.step(model, tasks, functional.cross_entropy, optimizer, generator=torch.Generator())
    for old, new, slope in zip(before, model.parameters(), expected, strict=True):
        torch.testing.assert_close(new.detach(), old - 0.1 * slope, rtol=0, atol=1e-12)
    norm = torch.stack([slope.norm() for slope in expected]).norm()
    assert report.gradient_norm == pytest.approx(float(norm))
    assert report.loss < report.loss_before or report.loss > 0


def test_clipping_bounds_the_applied_gradient():
    model = network()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    report = Fomaml(0.3, 1, clip=0.01).step(
        model, [task()], functional.cross_entropy, optimizer, generator=torch.Generator()
    )
    moved = torch.stack([(a - b.detach()).norm() for a, b in zip(before, model.parameters(), strict=True)]).norm()
    assert report.gradient_norm > 0.01
    assert float(moved) == pytest.approx(0.01, rel=1e-3)


def test_inner_params_adapt_the_head_alone_while_all_train():
    model, one = network(), task()
    inner = Fomaml(0.3, 2, inner_params=("2",)).inner()
    adapted = inner.adapt(model, one, functional.cross_entropy)
    assert torch.equal(adapted["0.weight"].detach(), model[0].weight.detach())
    assert not torch.equal(adapted["2.weight"].detach(), model[2].weight.detach())
    slopes, _ = gradient(Fomaml(0.3, 2, inner_params=("2",)), model, one)
    assert float(slopes["0.weight"].abs().max()) > 0
    model[0].requires_grad_(False)
    assert set(gradient(Fomaml(0.3, 1), model, one)[0]) == {"2.weight", "2.bias"}


def test_the_inner_rate_defaults_to_ten_times_the_outer_one():
    optimizer = torch.optim.SGD(network().parameters(), lr=0.02)
    assert Fomaml().inner(optimizer).inner_lr == pytest.approx(0.2)
    with pytest.raises(ValueError, match="inner_lr"):
        Fomaml().inner()


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).double()

    def forward(self, inputs):
        return self.body(inputs)


@pytest.mark.parametrize("statistics", ["batch", "frozen"])
@pytest.mark.parametrize("order", ["first", "second"])
def test_running_statistics_and_modes_are_left_alone(statistics, order):
    torch.manual_seed(0)
    model = Normalised()
    model.body[0].eval()
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    modes = [module.training for module in model.modules()]
    method = Fomaml(0.1, 2, statistics=statistics, order=order)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reports = [
        method.step(model, [task()], functional.cross_entropy, optimizer, generator=torch.Generator()) for _ in range(2)
    ]
    assert all(torch.equal(value, buffers[name]) for name, value in model.named_buffers())
    assert [module.training for module in model.modules()] == modes
    assert reports[0].loss != reports[1].loss


def test_batch_statistics_are_used_or_not():
    torch.manual_seed(0)
    model, one = Normalised(), task(split=False)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    losses = {}
    for statistics in ("batch", "frozen"):
        inner = InnerLoop(0.1, 1, statistics=statistics)
        with inner.modes(model):
            losses[statistics] = float(inner.loss(model, weights, one, functional.cross_entropy)[0])
    model.eval()
    assert losses["frozen"] == pytest.approx(float(functional.cross_entropy(model(one.inputs), one.labels).detach()))
    assert abs(losses["batch"] - losses["frozen"]) > 1e-3


def test_modes_come_back_after_an_error():
    model = Normalised()
    inner = InnerLoop(0.1)

    def fails(outputs, labels):
        assert not model.body[2].training
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        inner.adapt(model, task(), fails)
    assert all(module.training for module in model.modules())


def test_training_lowers_the_loss_and_is_reproducible():
    def run(**options):
        model = network()
        return fomaml(
            model,
            lambda g: task(int(torch.randint(5, (1,), generator=g)), split=False),
            functional.cross_entropy,
            torch.optim.Adam(model.parameters(), lr=0.02),
            steps=40,
            seed=3,
            inner_lr=0.5,
            **options,
        )

    first, again = run(), run()
    assert [step.loss for step in first] == [step.loss for step in again]
    memorised = run(split="train-train")
    assert sum(step.loss for step in memorised[-10:]) < sum(step.loss for step in memorised[:10])
    assert memorised[-1].loss < first[-1].loss
    half = run(split="train-train", tt_samples="support")
    assert half[0].loss != memorised[0].loss


def test_tokenised_text_and_objects_with_logits():
    class Answer:
        def __init__(self, logits):
            self.logits = logits

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 2).double()

        def forward(self, input_ids, attention_mask):
            return Answer((self.table(input_ids) * attention_mask.unsqueeze(-1)).sum(1))

    g = torch.Generator().manual_seed(0)
    inputs = {"input_ids": torch.randint(10, (8, 4), generator=g), "attention_mask": torch.ones(8, 4)}
    one = Task(inputs, torch.tensor([0, 1] * 4))
    model = Reader()
    method = Fomaml(0.1, 2)
    report = method.step(
        model,
        [one],
        lambda out, y: functional.cross_entropy(out.logits, y),
        torch.optim.SGD(model.parameters(), lr=0.1),
        generator=g,
    )
    assert report.gradient_norm > 0


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(2, 9), min_size=2, max_size=4), fraction=st.floats(0.2, 0.8), seed=st.integers(0, 99)
)
def test_a_stratified_split_has_every_class_on_both_sides(counts, fraction, seed):
    labels = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    one = Task(torch.arange(len(labels)).float().unsqueeze(1), labels)
    support, query = split_task(one, val_fraction=fraction, generator=torch.Generator().manual_seed(seed))
    for part in (support, query):
        assert set(part.labels.tolist()) == set(range(len(counts)))
    ids = torch.cat([support.inputs, query.inputs]).flatten().sort().values
    assert torch.equal(ids, torch.arange(len(labels)).float())
    for label, count in enumerate(counts):
        held = int((query.labels == label).sum())
        assert abs(held - fraction * count) <= 1


def test_bad_tasks_are_refused():
    one = task(split=False)
    with pytest.raises(ValueError, match="both support and query"):
        Task(one.inputs, one.labels, torch.tensor([0, 1]), torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="or neither"):
        Task(one.inputs, one.labels, torch.tensor([0]))
    with pytest.raises(ValueError, match="one label"):
        Task(one.inputs, one.labels[:3])
    with pytest.raises(ValueError, match="class 7"):
        split_task(Task(one.inputs, torch.tensor([0, 0, 0, 1, 1, 1, 1, 7])), generator=torch.Generator())
    with pytest.raises(ValueError, match="also in the support"):
        Task.from_parts((one.inputs[:4], one.labels[:4]), (one.inputs[3:], one.labels[3:]))
    made = Task.from_parts((one.inputs[:4], one.labels[:4]), (one.inputs[4:], one.labels[4:]))
    assert torch.equal(split_task(made, generator=torch.Generator())[1].labels, one.labels[4:])
    with pytest.raises(ValueError, match="cannot be drawn"):
        draw_tasks([one], 2, torch.Generator())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(inner_steps=-1), "inner_steps"),
        (dict(inner_lr=-0.1), "inner_lr must be at least 0"),
        (dict(split="half"), "split"),
        (dict(order="third"), "order"),
        (dict(tt_samples="some"), "tt_samples"),
        (dict(statistics="running"), "statistics"),
        (dict(val_fraction=1.0), "val_fraction"),
        (dict(tasks_per_step=0), "tasks_per_step"),
        (dict(clip=0.0), "clip"),
        (dict(proximal=-1.0), "proximal"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(Fomaml(0.1), **change)


def test_bad_models_and_losses_are_refused():
    model = network()
    with pytest.raises(ValueError, match="'head'"):
        Fomaml(0.1, inner_params=("head",)).inner().adapting(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(FloatingPointError, match="outer step 7"):
        Fomaml(0.1).step(
            model, [task()], lambda out, y: out.sum() * float("nan"), optimizer, generator=torch.Generator(), step=7
        )
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="no trainable parameters"):
        Fomaml(0.1).inner().adapt(model, task(), functional.cross_entropy)


def test_parameters_that_the_optimiser_does_not_own_neither_accumulate_nor_count():
    results = []
    for clip in (None, 0.01):
        model, one, method = network(), task(), Fomaml(0.3, 2, clip=clip)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.0)
        for _ in range(3):
            report = method.step(model, [one], functional.cross_entropy, optimizer, generator=torch.Generator())
        slopes, _ = gradient(method, model, one)
        torch.testing.assert_close(model[0].weight.grad, slopes["0.weight"], rtol=0, atol=1e-12)
        own = torch.stack([slopes["2.weight"].norm(), slopes["2.bias"].norm()]).norm()
        assert report.gradient_norm == pytest.approx(float(own))
        results.append(torch.cat([model[2].weight.grad.flatten(), model[2].bias.grad]).norm())
    assert float(results[1]) == pytest.approx(0.01, rel=1e-3)
    with pytest.raises(ValueError, match="optimiser owns none"):
        Fomaml(0.3).step(
            model,
            [one],
            functional.cross_entropy,
            torch.optim.SGD(network().parameters(), lr=0.1),
            generator=torch.Generator(),
        )


def test_a_step_without_tasks_is_refused_before_anything_moves():
    model = network()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    with pytest.raises(ValueError, match="at least one task"):
        Fomaml(0.1).step(model, [], functional.cross_entropy, optimizer, generator=torch.Generator())
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert all(bool((parameter.grad == 1).all()) for parameter in model.parameters())


def test_arrays_and_labels_of_any_integer_type_make_a_task():
    expected, model = task(), network()
    arrays = Task(expected.inputs.float().numpy(), expected.labels.numpy().astype("int16"), *HALVES)
    assert arrays.labels.dtype == torch.int64
    torch.testing.assert_close(arrays.inputs.double(), expected.inputs.float().double())
    batch = {"inputs": expected.inputs, "labels": expected.labels.int()}
    named = Task(batch, batch["labels"], *HALVES)
    assert list(named.inputs) == ["inputs"]
    method = Fomaml(0.3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    method.step(model, [expected], functional.cross_entropy, optimizer, generator=torch.Generator())


def test_second_order_goes_through_a_compiled_model():
    model, one = network(), task()
    expected, _ = gradient(Fomaml(0.3, 2, order="second"), model, one)
    compiled = torch.compile(model, backend="aot_eager")
    compiled(one.inputs)
    found, _ = gradient(Fomaml(0.3, 2, order="second"), compiled, one)
    for name, value in expected.items():
        torch.testing.assert_close(found[f"_orig_mod.{name}"], value)
