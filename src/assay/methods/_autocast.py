"""Training inside somebody else's autocast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fresh_weights(device: torch.device) -> Iterator[None]:
    """Around a loop that takes optimiser steps. Autocast keeps half-precision copies of the weights until its context
    ends; where that is the caller's, such a loop would go on with the weights that it started from."""
    kind = device.type
    if not torch.is_autocast_enabled(kind):
        yield
        return
    with torch.autocast(kind, dtype=torch.get_autocast_dtype(kind), cache_enabled=False):
        yield
