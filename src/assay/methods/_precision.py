"""Autocast around somebody's call: it is for their model's passes and not for our arithmetic, and its cache may lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_DEVICES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def full_precision() -> Iterator[None]:
    """Arithmetic in the types of its tensors, also where the caller is inside autocast; a decorator as well."""
    with ExitStack() as stack:
        for device in _DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def uncached_casts() -> Iterator[None]:
    """Under autocast, cast weights anew in every pass: the cache of casts outlives a change of the weights or of what
    requires gradients."""
    enabled = torch.is_autocast_cache_enabled()
    torch.clear_autocast_cache()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)
