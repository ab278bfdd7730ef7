"""How much does your model gain by learning features? Full training against two comparators with fixed features.

``linearized`` is the model's first-order expansion at its present weights (its tangent-kernel model);
``frozen_backbone`` trains the head alone. Both work on copies: the model that is handed in is never changed.
``feature_learning_gain`` trains all three side by side.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map

from ._models import logits_in, module_named, no_recomputation, unknown
from ._precision import full_precision

RECOMPUTES = "the model uses gradient checkpointing, which cannot be linearised: switch it off"


class Linearized(nn.Module):
    """``f(x) + J(x) displacement``: linear in the trainable displacement, which starts at zero.

    There is one displacement per trainable parameter of the model. The model inside stays in evaluation mode, so that
    the features are fixed: no dropout, no batch statistics. Inside autocast it computes in the types of its weights:
    in forward mode a value and its derivative would be cast apart.
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
        kind = next(iter(self.displacement)).dtype
        args, kwargs = tree_map(lambda each: _widened(each, kind), (args, kwargs))

        def outputs(values: dict[str, Tensor]) -> Tensor:
            return logits_in(functional_call(self.base, values, args, kwargs))

        with no_recomputation(self.base, RECOMPUTES), _forward_mode(), full_precision():
            at = {name: parameters[name] for name in self.names}
            expansion = jvp(outputs, (at,), (dict(zip(self.names, self.displacement, strict=True)),))
        value: Tensor = expansion[0]
        change: Tensor = expansion[1]
        return value + change

    def train(self, mode: bool = True) -> Linearized:
        super().train(mode)
        self.base.eval()
        return self


def _widened(value: Any, kind: torch.dtype) -> Any:
    """What autocast has made half precision before, in the type of the weights."""
    halved = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.to(torch.promote_types(value.dtype, kind)) if halved else value


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
