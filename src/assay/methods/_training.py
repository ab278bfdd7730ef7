"""A training loop that belongs to a method: its randomness follows a seed, its casts are never stale, and the caller's
generators, gradient and autocast settings are as before afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from assay.training.seeds import stream

from ._precision import uncached_casts


@contextmanager
def own_training(seed: int, name: str, *models: nn.Module) -> Iterator[None]:
    """Inside, torch's own generators, which dropout draws from, follow ``seed`` and ``name`` on the CPU and on the
    devices of the models; gradients are on, and autocast casts weights anew in every pass."""
    devices = {each.device for model in models for each in model.parameters() if each.device.type == "cuda"}
    number = stream(seed, f"{name} noise").initial_seed()
    with torch.random.fork_rng(devices=list(devices)):
        torch.default_generator.manual_seed(number)
        for device in devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(number)
        with uncached_casts(), torch.inference_mode(False), torch.enable_grad():
            yield
