"""How much does your model gain by learning features? Full training against two comparators with fixed features.

``linearized`` is the model's first-order expansion at its present weights (its tangent-kernel model);
``frozen_backbone`` trains the head alone. Both work on copies: the model that is handed in is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from ._checks import number, whole
from ._models import logits_in, module_named, no_recomputation, unknown

Data = tuple[Tensor, Tensor]
RECOMPUTES = "the model uses gradient checkpointing, which cannot be linearised: switch it off"


class Linearized(nn.Module):
    """``f(x) + J(x) displacement``: linear in the trainable displacement, which starts at zero.

    There is one displacement per trainable parameter of the model. The model inside stays in evaluation mode, so that
    the features are fixed: no dropout, no batch statistics.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError("the model has no trainable parameter to linearise in")
        self.names = list(trainable)
        self.base = copy.deepcopy(model).eval().requires_grad_(False)
        self.displacement = nn.ParameterList([torch.zeros_like(p) for p in trainable.values()])

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        parameters = dict(self.base.named_parameters())

        def outputs(values: dict[str, Tensor]) -> Tensor:
            return logits_in(functional_call(self.base, values, args, kwargs))

        with no_recomputation(self.base, RECOMPUTES), _forward_mode():
            at = {name: parameters[name] for name in self.names}
            expansion = jvp(outputs, (at,), (dict(zip(self.names, self.displacement, strict=True)),))
        value: Tensor = expansion[0]
        change: Tensor = expansion[1]
        return value + change

    def train(self, mode: bool = True) -> Linearized:
        super().train(mode)
        self.base.eval()
        return self


@contextmanager
def _forward_mode() -> Iterator[None]:
    """Fused attention has no forward-mode derivative: use its plain form inside, and put the setting back."""
    fastpath = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fastpath)


def linearized(model: nn.Module) -> Linearized:
    """The model linearised at its present weights; train it like any other module."""
    return Linearized(model)


class FrozenBackbone(nn.Module):
    """A copy of the model in which only the module named ``head`` trains; everything else is in evaluation mode."""

    def __init__(self, model: nn.Module, head: str) -> None:
        super().__init__()
        if not head:
            raise unknown("module", head, dict(model.named_modules()))
        inside = {id(p) for p in module_named(model, head, "module").parameters()}
        names = [name for name, p in model.named_parameters(remove_duplicate=False) if id(p) in inside]
        tied = [name for name in names if not name.startswith(f"{head}.")]
        if tied:
            raise ValueError(f"the head {head!r} shares its weights with {', '.join(tied)}: untie them first")
        self.head = head
        self.base = copy.deepcopy(model).requires_grad_(False)
        self.base.get_submodule(head).requires_grad_(True)
        self.train()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return logits_in(self.base(*args, **kwargs))

    def train(self, mode: bool = True) -> FrozenBackbone:
        super().train(mode)
        self.base.eval()
        self.base.get_submodule(self.head).train(mode)
        return self


def frozen_backbone(model: nn.Module, head: str) -> FrozenBackbone:
    """The model with everything but its module ``head`` frozen. For a head of your own: ``nn.Sequential(model, head)``,
    whose head is called ``"1"``."""
    return FrozenBackbone(model, head)


@dataclass(frozen=True)
class ArmResult:
    """One way of training, at the learning rate that did best on the validation data."""

    accuracy: float  # on the test data
    learning_rate: float
    validation: Mapping[float, float]  # validation accuracy by learning rate; NaN where training diverged

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried, so that a wider grid may change the result."""
        return self.learning_rate in (min(self.validation), max(self.validation))


@dataclass(frozen=True)
class FeatureLearningGain:
    """Full training beside its two comparators, each at its own best rate. ``gain`` near zero means that fixed features
    would have done."""

    full: ArmResult
    linearized: ArmResult
    frozen: ArmResult
    majority: float  # test accuracy of the best constant answer
    steps: int

    @property
    def gain(self) -> float:
        """Test accuracy of full training minus that of the better comparator."""
        return self.full.accuracy - max(self.linearized.accuracy, self.frozen.accuracy)


def feature_learning_gain(
    model: nn.Module,
    train: Data,
    validation: Data,
    test: Data,
    *,
    head: str,
    generator: torch.Generator,
    steps: int = 300,
    batch_size: int = 64,
    learning_rates: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1),
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
) -> FeatureLearningGain:
    """Train the model, its linearisation and its head alone: same start, batches, steps and grid of learning rates.

    Data are (inputs, class labels); the model maps inputs to class scores. The rate is chosen on ``validation`` by
    accuracy (the smaller one among equals), and the chosen network is scored once on ``test``.
    """
    whole("steps", steps, 1)
    whole("batch_size", batch_size, 1, len(train[0]))
    number("the smallest of learning_rates", min(learning_rates, default=0), above=0)
    batches = [torch.randint(len(train[0]), (batch_size,), generator=generator) for _ in range(steps)]

    def arm(build: Callable[[], nn.Module]) -> ArmResult:
        found: dict[float, float] = {}
        best, chosen_rate, chosen = -1.0, 0.0, nn.Module()
        for rate in sorted(learning_rates):
            network = build().train()
            rule = optimizer([p for p in network.parameters() if p.requires_grad], lr=rate)
            finite = _fit(network, rule, train, batches, loss)
            found[rate] = _accuracy(network, validation) if finite else float("nan")
            if found[rate] > best:
                best, chosen_rate, chosen = found[rate], rate, network
        if best < 0:
            raise ValueError(f"training diverged at every learning rate of {sorted(learning_rates)}: try smaller ones")
        return ArmResult(_accuracy(chosen, test), chosen_rate, found)

    return FeatureLearningGain(
        full=arm(lambda: copy.deepcopy(model)),
        linearized=arm(lambda: linearized(model)),
        frozen=arm(lambda: frozen_backbone(model, head)),
        majority=int(torch.unique(test[1], return_counts=True)[1].max()) / len(test[1]),
        steps=steps,
    )


def _fit(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Data,
    batches: Sequence[Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
) -> bool:
    """Whether the loss stayed finite."""
    for batch in batches:
        optimizer.zero_grad()
        value = loss(logits_in(network(data[0][batch])), data[1][batch])
        if not bool(value.isfinite()):
            return False
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return True


def _accuracy(network: nn.Module, data: Data) -> float:
    network.eval()
    with torch.no_grad():
        right = [
            logits_in(network(inputs)).argmax(dim=1) == labels
            for inputs, labels in zip(torch.split(data[0], 512), torch.split(data[1], 512), strict=True)
        ]
    return float(torch.cat(right).double().mean())
