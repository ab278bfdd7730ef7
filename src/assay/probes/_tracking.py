"""What all trackers have in common: a record that is told of every step of an optimiser, in one's own loop or in
somebody else's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import nn

from assay.methods.trainer_callbacks import watch_lightning, watch_trainer


class Record(Protocol):
    """One that has hooks in the model has ``remove()`` too."""

    def step(self) -> None: ...


R = TypeVar("R", bound=Record)


class Tracker(ABC, Generic[R]):
    """Settings of something that is watched while a model trains."""

    @abstractmethod
    def begin(self, model: nn.Module) -> R:
        """Start watching; call ``step()`` of the record after every step of the optimiser."""

    @contextmanager
    def attach(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> Iterator[R]:
        """Watch while the body trains ``model``; hooks come off however the body ends.

        With ``optimizer``, each of its steps ends a step here. Without it, call ``record.step()`` once per optimiser
        step, after the last ``backward`` and before the next step's first.
        """
        record = self.begin(model)
        # After the step, since an optimiser with a closure computes its gradients inside.
        hook = None if optimizer is None else optimizer.register_step_post_hook(lambda *_: record.step())
        try:
            yield record
        finally:
            if hook is not None:
                hook.remove()
            if hasattr(record, "remove"):
                record.remove()

    def trainer_callback(self) -> Any:
        """A callback for Hugging Face's Trainer; its ``record`` has the report."""
        return watch_trainer(self.begin)

    def lightning_callback(self) -> Any:
        """A callback for Lightning; its ``record`` has the report."""
        return watch_lightning(self.begin)
