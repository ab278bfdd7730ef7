"""Functions of tensors as people call them: with arrays, and inside autocast."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from ._precision import full_precision

P = ParamSpec("P")
R = TypeVar("R")


def of_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """The function with arrays taken as tensors, also those in a list or a mapping, and with arithmetic in the types of
    its tensors where the caller is inside autocast. Arrays of floats beside tensors get the precision of the first
    tensor, and keep their own where there is none."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        every = (*args, *kwargs.values())
        given = (each for each in every if isinstance(each, Tensor) and each.is_floating_point())
        like = next(given, None)
        with full_precision():
            return function(*(_taken(value, like) for value in args), **{k: _taken(v, like) for k, v in kwargs.items()})

    return called


def _taken(value: Any, like: Tensor | None) -> Any:
    if isinstance(value, np.ndarray):
        found = torch.as_tensor(np.ascontiguousarray(value))
        return found.to(like) if like is not None and found.is_floating_point() else found
    if isinstance(value, (list, tuple)) and any(isinstance(each, np.ndarray) for each in value):
        return [_taken(each, like) for each in value]
    if isinstance(value, dict):
        return {name: _taken(each, like) for name, each in value.items()}
    return value
