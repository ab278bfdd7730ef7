"""MoCo's keys and negatives: a slow copy of the model, and a queue of the keys that it made."""

from __future__ import annotations

import copy
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize as unit

from assay.training.contrastive import HALF

from ._checks import number, whole
from ._features import Pool, features_of


class MomentumQueue(nn.Module):
    """MoCo's keys: a copy of the model (and projector) whose weights follow by ``momentum``, and the last ``size`` keys
    of ``dim`` entries as negatives. Until there are any, the other keys of the batch are the negatives. Its state is
    that of a module: keep ``state_dict()`` with the model's. Weights in half precision, where a slow step would be lost
    in rounding, are followed in single precision."""

    memory: Tensor
    filled: Tensor

    def __init__(
        self,
        model: nn.Module,
        dim: int,
        *,
        projector: nn.Module | None = None,
        size: int = 4096,
        momentum: float = 0.99,
    ) -> None:
        super().__init__()
        number("momentum", momentum, least=0, below=1)
        self.momentum = momentum
        self.followers = copy.deepcopy(nn.ModuleList([model, *([] if projector is None else [projector])]))
        self.followers.requires_grad_(False)
        weights = [each for follower in self.followers for each in follower.parameters()]
        if not weights:
            raise ValueError("the model has no parameters, so that there is nothing to follow")
        half = [nn.Parameter(each.float(), requires_grad=False) for each in weights if each.dtype in HALF]
        self.exact = nn.ParameterList(half)
        self.register_buffer("memory", weights[0].new_zeros(whole("size", size, 2), whole("dim", dim, 1)))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def keys(
        self, model: nn.Module, projector: nn.Module | None, inputs: Any, pool: Pool, head: nn.Module | str
    ) -> tuple[Tensor, Tensor | None]:
        """Follow the model, then the keys (n, dim) of the inputs and the negatives that are in the queue."""
        self._follow([model, *([] if projector is None else [projector])])
        keys = features_of(self.followers[0], head, inputs, pool)
        keys = self.followers[1](keys) if len(self.followers) == 2 else keys
        return keys, self.memory[: int(self.filled)].clone() if int(self.filled) else None

    def _follow(self, leaders: list[nn.Module]) -> None:
        if len(leaders) != len(self.followers):
            raise ValueError("the queue was made with another projector than the loss is given")
        exact = iter(self.exact)
        for leader, follower in zip(leaders, self.followers, strict=True):
            pairs = list(zip_longest(leader.parameters(), follower.parameters()))
            if any(ahead is None or behind is None or ahead.shape != behind.shape for ahead, behind in pairs):
                raise ValueError("the queue was made for another model than the loss is given")
            for ahead, behind in pairs:
                slow = next(exact, behind) if behind.dtype in HALF else behind
                slow.data.lerp_(ahead.data.to(slow), 1 - self.momentum)
                if slow is not behind:
                    behind.data.copy_(slow)
            for now, then in zip(leader.buffers(), follower.buffers(), strict=True):
                then.copy_(now)
            for own, theirs in zip(follower.modules(), leader.modules(), strict=True):
                own.training = theirs.training

    @torch.no_grad()
    def add(self, keys: Tensor) -> None:
        """The newest keys come first, the oldest fall out."""
        if keys.shape[-1] != self.memory.shape[-1]:
            raise ValueError(f"keys have {keys.shape[-1]} entries, and the queue was made for {self.memory.shape[-1]}")
        newest = unit(keys.detach().to(self.memory), dim=-1)
        self.memory.copy_(torch.cat([newest, self.memory])[: len(self.memory)])
        self.filled.add_(len(keys)).clamp_(max=len(self.memory))
