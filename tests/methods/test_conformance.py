"""One table of methods, and what holds for all of them: data in every form give the same numbers, autocast does not
change a conclusion, models, gradients and generators are left as they were also after an error, and what is not finite
is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from assay import methods, probes
from assay._reports import plain

DIM = 6
INPUTS = torch.randn(72, DIM, generator=torch.Generator().manual_seed(0))
LABELS = (INPUTS[:, 0] + 0.3 * INPUTS[:, 1] > 0).long()
FORMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "tensors": lambda x, y: (x, y),
    "int32": lambda x, y: (x, y.int()),
    "arrays": lambda x, y: (x.double().numpy(), y.numpy().astype("uint8")),
    "mapping": lambda x, y: {"x": x, "labels": y},
    "loader": lambda x, y: DataLoader(TensorDataset(x, y), batch_size=len(y)),
}


class Net(nn.Module):
    """A small classifier with dropout and batch statistics; ``fail_at`` lets a later pass raise."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.drop = nn.Linear(DIM, 12), nn.BatchNorm1d(12), nn.Dropout(0.2)
        self.head = nn.Linear(12, 2)
        self.passes, self.fail_at = 0, -1

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        if self.passes == self.fail_at:
            raise RuntimeError("this pass fails")
        return self.head(self.drop(torch.relu(self.norm(self.first(x)))))


def pair(data: Any) -> tuple[Any, Any]:
    """Inputs and labels apart, for methods that take them so."""
    if isinstance(data, DataLoader):
        data = next(iter(data))
    return (data["x"], data["labels"]) if isinstance(data, dict) else tuple(data)


def gain(model: nn.Module, data: Any) -> Any:
    return methods.feature_learning_gain(
        model, data, data, data, head="head", steps=6, batch_size=24, learning_rates=(1e-2, 3e-2), seeds=2
    )


def race(model: nn.Module, data: Any) -> Any:
    mask = torch.arange(12) < 6
    return methods.compare_tickets(model, "first", mask, data, data, data, steps=4, seeds=2, learning_rates=(0.03, 0.1))


def update(model: nn.Module, data: Any) -> Any:
    def noise(x: Any) -> Any:
        return (
            {"x": x["x"] + 0.1 * torch.randn(x["x"].shape)} if isinstance(x, dict) else x + 0.1 * torch.randn(x.shape)
        )

    if isinstance(data, DataLoader):  # a loader's own batches are the batches of the update
        data = next(iter(data))
    found = methods.ContrastiveUpdate(steps=3, batch_size=24).apply(model, data, augment=noise, seed=0)
    return [{"loss": loss} for loss in found.losses]


def erase(model: Net, data: Any) -> Any:
    model.drop.p = 0.0
    batches = data if isinstance(data, DataLoader) else [data]
    return methods.EraseAndStep(["first"]).apply(model, cross_entropy, batches)


def transfer(model: nn.Module, data: Any) -> Any:
    inputs, labels = pair(data)
    fine = 2 * LABELS + (INPUTS[:, 2] > 0)
    hierarchy = methods.LabelHierarchy("halves", fine, labels, aligned=True)
    stage, whole = methods.Stage(2, 24, 0.05), {"x": inputs} if isinstance(data, dict) else inputs
    held = {"validation": (whole, labels), "test": (whole, labels), "seed": 0}
    found = methods.FineToCoarse(stage, rates=(1.0,)).run(model, whole, hierarchy, **held)
    again = methods.fine_to_coarse(model, whole, fine, labels, pretrain=stage, rates=(1.0,), **held)
    assert again.table() == found.table()
    return found


def meta(model: nn.Module, data: Any) -> Any:
    return methods.fomaml(model, tasks(data), cross_entropy, descent(model), steps=3, seed=0)


def reptile(model: nn.Module, data: Any) -> Any:
    return [vars(step) for step in methods.Reptile(0.05).train(model, tasks(data), cross_entropy, steps=3, seed=0)]


def audit(model: nn.Module, data: Any) -> Any:
    settings = methods.SplitAudit(methods.Fomaml(0.05, 1, tasks_per_step=2), steps=2, test_tasks=3)
    given = tasks(data)
    return settings.run(lambda: copy.deepcopy(model), descent, given, given, cross_entropy, seeds=3)


def fixed(model: nn.Module, data: Any) -> Any:
    inputs = torch.as_tensor(pair(data)[0]).float()
    kinds = (methods.linearized(model), methods.frozen_backbone(model, "head").eval())
    return [{"logit": value} for kind in kinds for value in kind(inputs).flatten().tolist()]


def penalised(model: Net, data: Any) -> Any:
    with methods.NuclearNorm(0.1, warmup=0).attach(model, "head") as penalty:
        losses = fitted(model, data, penalty)
        return [*losses, *penalty.report().table()]


def regularised(model: Net, data: Any) -> Any:
    model.drop.p = 0.0
    batch, queue = whole_batch(data), methods.MomentumQueue(model, 12, size=8)
    options = {"augment": negated, "loss": "moco", "queue": queue}
    found = methods.contrastive_regularized_loss(model, "head", *batch, **options)
    assert isinstance(found, methods.RegularizedLoss)
    return [{"total": float(found.total.detach()), "prediction": float(found.prediction.detach())}]


def adapted(model: nn.Module, data: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        small, head = methods.adapter(DIM, hidden=8), nn.Linear(DIM, 2)
    found = methods.contrastive_regularized_loss(small, head, *pair(data), augment=negated)
    return [{"total": float(found.total.detach())}]


def pruned(model: Net, data: Any) -> Any:
    model.drop.p = 0.0
    pruner = methods.ForwardMagnitudePruner(model, alpha=0.3)
    view = whole_batch(data)[0]
    found = pruner.loss(view, negated(view))
    return [{"loss": float(found.loss), "surrogate": float(found.surrogate.detach())}, *pruner.report().table()]


def ticket(model: nn.Module, data: Any) -> Any:
    return methods.gradient_ticket(model, "first", data, size=4, gamma=0.5, stability=-1.0)


def watched(model: Net, data: Any) -> Any:
    view = whole_batch(data)[0]
    directions = torch.eye(DIM)[:2]
    settings = (
        probes.AlignmentTracker("first", directions.numpy() if isinstance(view, np.ndarray) else directions, view),
        probes.DirectionTracker("first", directions, every=1),
        probes.GradientConsistency(["first", "head"], chunks=2, steps_per_chunk=1),
    )
    with ExitStack() as stack:
        records = [stack.enter_context(each.attach(model, None)) for each in settings]
        features = stack.enter_context(probes.RepresentationTracker("first", (0, 2)).attach(model))
        losses = fitted(model, data, after=lambda: [each.step() for each in (*records, features)], steps=2)
    return [*losses, *(row for each in records for row in each.report().table()), *features.report(data, data).table()]


def averaged(model: Net, data: Any) -> Any:
    valley = methods.SWAD(model, converge=1, tolerate=1)
    losses = []

    def after() -> None:
        valley.update()
        valley.check(losses[-1])

    losses = fitted(model, data, after=after, losses=losses)
    return [{"weight": value} for value in valley.averaged().first.weight.flatten().tolist()]


def tied(model: Net, data: Any) -> Any:
    optimizer = descent(model)
    with methods.norm_tied_bias(optimizer, [model.first], 0.1):
        fitted(model, data, optimizer=optimizer)
    return [{"bias": value} for value in model.first.bias.tolist()]


def mixed(model: Net, data: Any) -> Any:
    view, labels = whole_batch(data)
    batch = methods.Mixup(0.4)(view, labels, generator=torch.Generator().manual_seed(0))
    model.drop.p = 0.0
    given = batch.inputs if isinstance(batch.inputs, dict) else {"x": batch.inputs.float()}
    return [{"loss": float(batch.loss(model(**given)).detach())}]


def tasks(data: Any) -> list[methods.Task]:
    return [methods.Task(*whole_batch(data))] * 4


def descent(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.05)


def whole_batch(data: Any) -> tuple[Any, Any]:
    """All inputs, as a mapping where the data are one, and their labels."""
    inputs, labels = pair(data)
    return ({"x": inputs} if isinstance(data, dict) else inputs), labels


def negated(view: Any) -> Any:
    """A second view of the same samples."""
    return {"x": -0.5 * view["x"]} if isinstance(view, dict) else -0.5 * view


def fitted(
    model: Net,
    data: Any,
    change: Callable[[Tensor], Tensor] = lambda loss: loss,
    after: Callable[[], Any] = lambda: None,
    optimizer: torch.optim.Optimizer | None = None,
    losses: list[float] | None = None,
    steps: int = 3,
) -> list[dict[str, float]]:
    """Somebody's own training: the losses of a few steps, under autocast as they would, gradients in full precision."""
    model.drop.p, found = 0.0, [] if losses is None else losses
    optimizer = descent(model) if optimizer is None else optimizer
    view, labels = (torch.as_tensor(each) for each in pair(data))
    for _ in range(steps):
        torch.clear_autocast_cache()
        optimizer.zero_grad()
        loss = change(cross_entropy(model(view.float()), labels.long()))
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
        after()
    return [{"loss": each} for each in found]


def replacement(model: nn.Module, data: Any) -> Any:
    inputs, labels = pair(data)
    whole = {"x": inputs} if isinstance(data, dict) else inputs
    method = methods.InputReplacement(teacher_steps=3, student_steps=3, batch=40, evaluate_every=1)
    given = methods.ReplacementData(whole, labels, whole, labels, whole, whole)
    return method.run(lambda size: copy.deepcopy(model), given, teacher_size=1, student_size=1, seeds=[0, 1, 2])


def features(model: nn.Module, data: Any) -> Any:
    return probes.gradient_features(model, "first", data, stability=-1.0, gamma=0.5)


def representation(model: nn.Module, data: Any) -> Any:
    return probes.representation_probe(
        {0: model, 1: probes.snapshot(model, "first")}, data, data, scalings=["rescaled"]
    )


def efficiency(model: nn.Module, data: Any) -> Any:
    return probes.label_efficiency({"model": model}, data, data, budgets=(8, 32), seeds=3)


def rank(model: nn.Module, data: Any) -> Any:
    return probes.rank_report(data, model=model, layer="head")


def cka(model: nn.Module, data: Any) -> Any:
    return probes.cka_map(model, data, layers=["first", "head"])


WITH_COPIES = (gain, race, update, transfer, audit, fixed, adapted, replacement, features, ticket)
READING = (representation, efficiency, rank, cka)
IN_PLACE = (erase, meta, reptile, penalised, regularised, pruned, watched, averaged, tied, mixed)  # they train yours
CASES = {each.__name__: each for each in (*WITH_COPIES, *READING, *IN_PLACE)}
ROUGH = {"update": 0.3, "race": 0.3, "gain": 0.15, "transfer": 0.15, "replacement": 0.3, "features": 0.35}


def model_state(model: nn.Module, in_place: bool = False) -> list[Any]:
    """All that a caller would notice: tensors, gradients, modes, hooks and what trains; without the weights and their
    gradients of a model that is trained."""
    tensors = [] if in_place else [value.clone() for value in model.state_dict().values()]
    gradients = [] if in_place else [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    modes = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    hooks = [len(p._post_accumulate_grad_hooks or ()) for p in model.parameters()]
    names = [type(p) for p in model.parameters()]
    trains = [p.requires_grad for p in model.parameters()]
    return [*tensors, *gradients, torch.get_rng_state(), modes, hooks, names, trains]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in zip(one, other, strict=True))


def rows(found: Any) -> list[dict[str, Any]]:
    table = found if isinstance(found, list) else found.table()
    return plain(table)


def assert_close(one: list[dict[str, Any]], other: list[dict[str, Any]], tolerance: float) -> None:
    assert len(one) == len(other)
    for ours, theirs in zip(one, other, strict=True):
        for name, value in ours.items():
            if isinstance(value, float) and theirs[name] is not None:
                assert theirs[name] == pytest.approx(value, abs=tolerance, rel=tolerance), name


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict[str, Any]]]:
    return {name: rows(case(Net(), (INPUTS, LABELS))) for name, case in CASES.items()}


@pytest.mark.parametrize("form", [name for name in FORMS if name != "tensors"])
@pytest.mark.parametrize("name", CASES)
def test_every_form_of_data_gives_the_same_numbers(name, form, expected):
    assert_close(expected[name], rows(CASES[name](Net(), FORMS[form](INPUTS, LABELS))), 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_autocast_does_not_change_the_conclusion(name, expected):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = rows(CASES[name](Net(), (INPUTS, LABELS)))
    if name not in ("features", "race"):  # where a row may appear or a rate change at a tie
        assert_close(
            [{k: v for k, v in row.items() if k not in ("rate", "low", "high")} for row in expected[name]],
            found,
            ROUGH.get(name, 0.1),
        )


@pytest.mark.parametrize("fail_at", [-1, 1, 3])
@pytest.mark.parametrize("name", CASES)
def test_models_and_generators_are_left_alone_also_after_an_error(name, fail_at):
    model = Net()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model.norm.eval()  # a part that somebody froze on purpose
    model.fail_at = fail_at
    in_place = CASES[name] in IN_PLACE
    before = model_state(model, in_place)
    with suppress(RuntimeError):
        CASES[name](model, (INPUTS, LABELS))
    assert same(before, model_state(model, in_place))
    assert torch.is_autocast_cache_enabled()


@pytest.mark.parametrize("name", CASES)
def test_inputs_that_are_not_finite_are_refused(name):
    broken = INPUTS.clone()
    broken[3, 2] = torch.nan
    if CASES[name] is fixed:  # a module of yours, which computes what it is given: NaN stays NaN
        assert None in [row["logit"] for row in rows(fixed(Net(), (broken, LABELS)))]
        return
    with pytest.raises(ValueError, match=r"finite|diverged|NaN|not nan"):
        CASES[name](Net(), (broken, LABELS))
