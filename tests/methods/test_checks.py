"""Numbers that are none are refused by name, in every method that takes them; NumPy's numbers are numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn

from assay.methods._checks import all_finite, check_fields, limits, number, one_of, whole
from assay.methods.contrastive_planning import Descent, pruning_horizon
from assay.methods.erase_and_step import EraseAndStep
from assay.methods.fomaml import Fomaml
from assay.methods.forward_pruning import ForwardMagnitudePruner
from assay.methods.group_norm import GroupPenalty
from assay.methods.inner_loop import InnerLoop
from assay.methods.loss_floor import loss_floor
from assay.methods.meta_tasks import Task, split_task
from assay.methods.neuron_sets import neuron_sets
from assay.methods.norm_tied_bias import norm_tied_bias
from assay.methods.pruned_infonce import pruned_infonce
from assay.methods.reptile import Reptile
from assay.probes.gradient_consistency import GradientConsistency

VIEW = torch.arange(12.0).reshape(4, 3)
GROUPS = [("weight", 0)]


def pruner(**options: Any) -> ForwardMagnitudePruner:
    return ForwardMagnitudePruner(nn.Linear(3, 4), **{"alpha": 0.5, **options})


def tied(rate: Any) -> None:
    layer = nn.Linear(3, 4)
    with norm_tied_bias(torch.optim.SGD(layer.parameters(), lr=0.1), [layer], rate):
        pass


REAL: dict[str, Callable[[Any], Any]] = {
    "tau": lambda value: pruned_infonce(VIEW, VIEW, VIEW, VIEW, tau=value),
    "alpha": lambda value: pruner(alpha=value),
    "start": lambda value: pruner(start=value),
    "inner_lr": lambda value: Fomaml(inner_lr=value),
    "proximal": lambda value: InnerLoop(0.1, proximal=value),
    "val_fraction": lambda value: Fomaml(0.1, val_fraction=value),
    "clip": lambda value: Fomaml(0.1, clip=value),
    "epsilon": lambda value: Reptile(0.1, epsilon=value),
    "learning_rate": lambda value: EraseAndStep(["0"], learning_rate=value),
    "forget": lambda value: EraseAndStep(["0"], learning_rate=0.5, forget=value),
    "order": lambda value: GroupPenalty(GROUPS, order=2 * value),
    "power": lambda value: GroupPenalty(GROUPS, order=2, power=value),
    "eps": lambda value: GroupPenalty(GROUPS, order=2, eps=value),
    "rate ρ": tied,
    "temperature": lambda value: Descent(0.1, 0.1, value, 8),
    "boost": lambda value: pruning_horizon(0.5, value),
    "margin": lambda value: neuron_sets(10, margin=value),
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "inner_steps": lambda value: Fomaml(0.1, inner_steps=value),
    "tasks_per_step": lambda value: Reptile(0.1, tasks_per_step=value),
    "chunks": lambda value: GradientConsistency(["0"], chunks=value),
    "steps_per_chunk": lambda value: GradientConsistency(["0"], steps_per_chunk=value),
    "negatives": lambda value: loss_floor([0.3], value),
    "candidates": lambda value: Descent(0.1, 0.1, 1.0, value),
}


@pytest.mark.parametrize("name", REAL)
def test_what_is_no_number_is_named_and_numpys_numbers_are_numbers(name: str) -> None:
    for value in ("0.5", math.nan, np.float32("nan"), [0.5]):
        with pytest.raises(ValueError, match=rf"{name} must be a number, not "):
            REAL[name](value)
    for value in (0.5, np.float64(0.5), np.float32(0.5)):
        REAL[name](value)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_no_integer_is_named(name: str) -> None:
    for value in ("3", 2.5, math.nan, True, None):
        with pytest.raises(ValueError, match=f"{name} must be an integer, not "):
            WHOLE[name](value)
    WHOLE[name](np.int64(3))


def test_infinity_is_a_number_where_it_means_something() -> None:
    with pytest.raises(ValueError, match="tau must be finite, not inf"):
        REAL["tau"](math.inf)
    assert Fomaml(0.1, clip=math.inf).clip == math.inf
    assert not pruner(start=math.inf).active
    number("x", np.array(0.5))
    for value in (True, None, torch.ones(2), 1j):
        with pytest.raises(ValueError, match="x must be a number"):
            number("x", value)
    whole("x", 3)


def test_a_temperature_may_be_learned() -> None:
    tau = torch.tensor(0.5, requires_grad=True)
    x, y = VIEW, VIEW.flip(0)
    pruned_infonce(x, y, x, y, tau=tau).surrogate.backward()
    assert tau.grad is not None


def test_rates_and_fractions_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="activation probabilities"):
        loss_floor([0.3, math.nan], 5)
    with pytest.raises(ValueError, match="val_fraction must be a number"):
        split_task(Task(VIEW, torch.tensor([0, 1, 0, 1])), val_fraction="half", generator=torch.Generator())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Settings:
    rate: float = field(default=0.1, metadata=limits(above=0))
    share: float = field(default=0.5, metadata=limits(least=0, below=1))
    clip: float | None = field(default=None, metadata=limits(above=0, infinite=True))
    count: int = field(default=3, metadata=limits(least=1))
    place: int | Literal["auto", "last"] = field(default="auto", metadata=limits(least=0))
    kind: Literal["a", "b"] | None = "a"
    names: tuple[str, ...] = ()
    flag: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rate": 0}, "rate must be positive, not 0"),
        ({"rate": "0.1"}, "rate must be a number, not '0.1'"),
        ({"rate": math.inf}, "rate must be finite, not inf"),
        ({"rate": None}, "rate must be a number, not None"),
        ({"share": 1.0}, r"share must lie in \[0, 1\), not 1.0"),
        ({"clip": -1.0}, "clip must be positive, not -1.0"),
        ({"count": 0}, "count must be at least 1, not 0"),
        ({"count": 2.0}, "count must be an integer, not 2.0"),
        ({"place": "first"}, "place must be one of auto, last or an integer, not 'first'"),
        ({"place": -1}, "place must be at least 0, not -1"),
        ({"kind": "c"}, "kind must be one of a, b, not 'c'"),
        ({"kind": 1}, "kind must be one of a, b, not 1"),
    ],
)
def test_fields_are_checked_by_their_types_and_limits(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        Settings(**change)


def test_what_is_allowed_passes_and_integers_become_pythons() -> None:
    made = Settings(rate=np.float32(0.5), clip=math.inf, count=np.int64(4), place=2, kind=None, names=("x",), flag=True)
    assert type(made.count) is int
    assert made.place == 2
    assert made == Settings(0.5, 0.5, math.inf, 4, 2, None, ("x",), True)


def test_limits_of_one_side_words_and_entries() -> None:
    number("x", 2, most=2)
    for given, words in (({"most": 1}, "at most 1"), ({"below": 2}, "below 2"), ({"above": 3}, "above 3")):
        with pytest.raises(ValueError, match=f"x must be {words}, not 2"):
            number("x", 2, **given)
    with pytest.raises(ValueError, match=r"x must lie in \[1, 3\], not 4"):
        whole("x", 4, 1, 3)
    with pytest.raises(ValueError, match="x must be one of a, b, not 'c'"):
        one_of("x", "c", ("a", "b"))
    all_finite("values", torch.ones(3), torch.ones(2, dtype=torch.long))
    with pytest.raises(ValueError, match="values must be finite, and 2 of their entries are not"):
        all_finite("values", torch.tensor([1.0, math.nan]), torch.tensor([math.inf]))
