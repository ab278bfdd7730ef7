"""Methods for trainers that own the loop: Hugging Face's ``Trainer`` and Lightning's.

Neither library is needed to import this. A callback attaches when training begins and leaves the model as it was when
training ends; where training fails under the ``Trainer``, call its ``remove()``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn

from assay._extras import MissingExtra, extra

from ._attached import AttachedPenalty, PenaltyReport
from ._features import Side
from .nuclear_norm import NuclearNorm
from .swad import SWAD

LOGGED = ("penalty", "stable_rank", "product")
Begin = Callable[[nn.Module], Any]


def watch_trainer(begin: Begin) -> Any:
    """A ``TrainerCallback`` around a record: ``begin(model)`` returns it when training begins, and every step of the
    optimiser ends a ``step()`` of it. The callback keeps it as ``record``; where it has hooks, ``record.remove()`` is
    called at the end. A record with ``epoch()`` is told of the end of each."""
    base: Any = _trainer()

    class Watch(base):  # type: ignore[misc]
        record: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.remove()
            self.record = begin(model)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.record.step()

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if hasattr(self.record, "epoch"):
                self.record.epoch()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.remove()

        def remove(self) -> None:
            """Take hooks off, where the record has any; what it has seen stays."""
            if hasattr(self.record, "remove"):
                self.record.remove()

    return Watch()


def watch_lightning(begin: Begin) -> Any:
    """The same for Lightning; a batch that only accumulates gradients is no step."""
    base: Any = _lightning()

    class Watch(base):  # type: ignore[misc]
        record: Any = None
        steps = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.remove()
            self.record, self.steps = begin(pl_module), trainer.global_step

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if trainer.global_step > self.steps:
                self.steps = trainer.global_step
                self.record.step()

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if hasattr(self.record, "epoch"):
                self.record.epoch()

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self.remove()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.remove()

        def remove(self) -> None:
            """Take hooks off, where the record has any; what it has seen stays."""
            if hasattr(self.record, "remove"):
                self.record.remove()

    return Watch()


def huggingface_callback(penalty: NuclearNorm, layer: str | None = None, *, at: Side = "input") -> Any:
    """A ``TrainerCallback`` that adds the penalty to the loss which the model returns, and to the Trainer's log the
    penalty, the stable rank and head norm × feature norm. Its ``report()`` has all steps. With label smoothing or a
    loss function of your own the model returns no loss: call ``penalty.attach(model)`` and add it there.

    >>> Trainer(model, arguments, train_dataset=data, callbacks=[huggingface_callback(NuclearNorm(0.01))])
    """
    base: Any = _trainer()

    class NuclearNormCallback(base):  # type: ignore[misc]
        """Attached while the Trainer trains."""

        attached: AttachedPenalty | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.remove()
            self.attached = penalty.attach(model, layer, at=at, to_output=True)
            self.attached.steps = state.global_step * args.gradient_accumulation_steps
            # A model that is told how many items all accumulated batches have divides by these; the Trainer then
            # does not divide again, and multiplies by the number of processes.
            processes = args.world_size if getattr(args, "average_tokens_across_devices", False) else 1
            self.attached.accumulation = float(args.gradient_accumulation_steps * processes)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            row = self.attached.last() if self.attached else None
            if row and "loss" in (logs or {}):
                more = {f"nuclear_{name}": getattr(row, name) for name in LOGGED}
                logs.update(more)
                if state.log_history:
                    state.log_history[-1].update(more)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.remove()

        def remove(self) -> None:
            """Take the hooks off; the report stays."""
            if self.attached:
                self.attached.remove()

        def report(self) -> PenaltyReport:
            """The penalty's steps."""
            return _begun(self.attached).report()

    return NuclearNormCallback()


def huggingface_swad(*, converge: int = 3, tolerate: int = 6, ratio: float = 0.3, device: str | None = "cpu") -> Any:
    """A ``TrainerCallback`` that averages weights by SWAD: every step is a step, every evaluation of the Trainer
    (``eval_strategy="steps"``) a look at the validation loss, and training stops when the valley has ended. The model
    is then ``callback.swad.averaged()``; ``callback.swad.report()`` says what was averaged."""
    base: Any = _trainer()

    class SwadCallback(base):  # type: ignore[misc]
        """Follows the weights while the Trainer trains."""

        swad: SWAD

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.swad = SWAD(model, converge=converge, tolerate=tolerate, ratio=ratio, device=device)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.swad.update()

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
            if "eval_loss" not in (metrics or {}):
                raise ValueError("SWAD needs the validation loss, and the evaluation gave no eval_loss")
            if self.swad.check(metrics["eval_loss"]):
                control.should_training_stop = True

    return SwadCallback()


def lightning_callback(penalty: NuclearNorm, layer: str | None = None, *, at: Side = "input") -> Any:
    """A Lightning ``Callback`` that adds the penalty to the loss which ``training_step`` returns, as a tensor or under
    ``"loss"``, before Lightning scales it or divides it over accumulated batches. ``layer`` is named from the
    LightningModule. Its ``report()`` has all steps.

    >>> Trainer(callbacks=[lightning_callback(NuclearNorm(0.01), layer="model.fc")])
    """
    base: Any = _lightning()

    class NuclearNormCallback(base):  # type: ignore[misc]
        """Stands around ``training_step`` while Lightning fits."""

        attached: AttachedPenalty | None = None
        module: Any = None
        before: Any = None  # a step that the module itself, and not its class, had

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            self.remove()
            self.attached, self.module = penalty.attach(pl_module, layer, at=at), pl_module
            self.before = vars(pl_module).get("training_step")
            self.attached.steps = int(getattr(trainer, "global_step", 0))
            inner, attached = pl_module.training_step, self.attached

            def training_step(*args: Any, **kwargs: Any) -> Any:
                found = inner(*args, **kwargs)
                if found is None:  # Lightning skips the batch, and so does the penalty
                    attached.forget()
                    return None
                return {**found, "loss": attached(found["loss"])} if isinstance(found, dict) else attached(found)

            pl_module.training_step = training_step

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            self.remove()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.remove()

        def remove(self) -> None:
            """Take the hooks off and give the module its own step back; the report stays."""
            if self.attached:
                self.attached.remove()
            if self.module is not None:
                vars(self.module).pop("training_step", None)
                if self.before is not None:
                    self.module.training_step = self.before
                self.module = None

        def report(self) -> PenaltyReport:
            """The penalty's steps."""
            return _begun(self.attached).report()

    return NuclearNormCallback()


def _begun(attached: AttachedPenalty | None) -> AttachedPenalty:
    if attached is None:
        raise RuntimeError("training has not begun yet: there is nothing to report")
    return attached


def _trainer() -> Any:
    with extra("llm", "a callback for Hugging Face's Trainer"):
        from transformers import TrainerCallback
    return TrainerCallback


def _lightning() -> Any:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return import_module(name).Callback
        except ModuleNotFoundError:
            continue
    raise MissingExtra("a callback for Lightning needs lightning (pip install lightning)", name="lightning")
