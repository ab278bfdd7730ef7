"""Callbacks for other people's training loops, made when they are asked for: neither library is needed before.

``begin(model)`` starts watching and returns a record with ``step()``; the callback keeps it as ``record``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn

from assay._extras import extra

Begin = Callable[[nn.Module], Any]


def trainer_callback(begin: Begin) -> Any:
    """A ``TrainerCallback`` for Hugging Face's Trainer: a step is one step of the optimiser."""
    with extra("llm", "a callback for Hugging Face's Trainer"):
        from transformers import TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        record: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            self.record = begin(model)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.record.step()

    return Watch()


def lightning_callback(begin: Begin) -> Any:
    """A ``Callback`` for Lightning: a step is one step of the optimiser, also where gradients are accumulated."""
    lightning: Any = None
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            lightning = import_module(name)
            break
        except ModuleNotFoundError:
            continue
    if lightning is None:
        raise ImportError("a callback for Lightning needs lightning (pip install lightning)")

    class Watch(lightning.Callback):  # type: ignore[misc]
        record: Any = None
        steps = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.record, self.steps = begin(pl_module), trainer.global_step

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if trainer.global_step > self.steps:
                self.steps = trainer.global_step
                self.record.step()

    return Watch()
