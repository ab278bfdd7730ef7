"""One table of methods, and what holds for all of them: data in every form give the same numbers, autocast does not
change a conclusion, models, gradients and generators are left as they were also after an error, and what is not finite
is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

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


def erase(model: nn.Module, data: Any) -> Any:
    twin = copy.deepcopy(model)
    twin.drop.p = 0.0
    batches = data if isinstance(data, DataLoader) else [data]
    return methods.EraseAndStep(["first"]).apply(twin, cross_entropy, batches)


def transfer(model: nn.Module, data: Any) -> Any:
    inputs, labels = pair(data)
    hierarchy = methods.LabelHierarchy("halves", 2 * LABELS + (INPUTS[:, 2] > 0), labels, aligned=True)
    method = methods.FineToCoarse(methods.Stage(2, 24, 0.05), rates=(1.0,))
    whole = {"x": inputs} if isinstance(data, dict) else inputs
    return method.run(model, whole, hierarchy, validation=(whole, labels), test=(whole, labels), seed=0)


def meta(model: nn.Module, data: Any) -> Any:
    inputs, labels = pair(data)
    tasks = [methods.Task({"x": inputs} if isinstance(data, dict) else inputs, labels)] * 4
    twin = copy.deepcopy(model)
    return methods.fomaml(twin, tasks, cross_entropy, torch.optim.SGD(twin.parameters(), 0.05), steps=3, seed=0)


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


CASES = {
    each.__name__: each
    for each in (
        gain,
        race,
        update,
        erase,
        transfer,
        meta,
        replacement,
        features,
        representation,
        efficiency,
        rank,
        cka,
    )
}
ROUGH = {"update": 0.3, "race": 0.3, "gain": 0.15, "transfer": 0.15, "replacement": 0.3, "features": 0.35}


def model_state(model: nn.Module) -> list[Any]:
    """All that a caller would notice: tensors, gradients, modes, hooks and what trains."""
    tensors = [value.clone() for value in model.state_dict().values()]
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    modes = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    return [*tensors, *gradients, torch.get_rng_state(), modes, [p.requires_grad for p in model.parameters()]]


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
    before = model_state(model)
    with suppress(RuntimeError):
        CASES[name](model, (INPUTS, LABELS))
    assert same(before, model_state(model))
    assert torch.is_autocast_cache_enabled()


@pytest.mark.parametrize("name", CASES)
def test_inputs_that_are_not_finite_are_refused(name):
    broken = INPUTS.clone()
    broken[3, 2] = torch.nan
    with pytest.raises(ValueError, match=r"finite|diverged|NaN"):
        CASES[name](Net(), (broken, LABELS))
