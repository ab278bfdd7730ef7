"""A penalty on the features of a model, attached by a hook: it adds itself to a loss, counts steps and keeps a log."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from assay._reports import Report, altair, lines

from ._checks import one_of
from ._features import Side, as_matrix, find_layer, tensor_in

MOST_PASSES = 256


class Penalty(Protocol):
    """What a penalty is asked for: its settings, and how singular values come out of features and become a number."""

    @property
    def lam(self) -> float: ...
    @property
    def warmup(self) -> int: ...
    @property
    def every(self) -> int: ...
    def matrix(self, features: Tensor) -> Tensor: ...
    def spectrum(self, matrix: Tensor) -> Tensor: ...
    def normalised(self, values: Tensor, rows: int) -> Tensor: ...


@dataclass(frozen=True)
class PenaltyRow:
    """One step. ``value`` is the norm as normalised, ``penalty`` what was added to the loss (0 in the warm-up) and
    ``share`` its part of the sum. ``feature_norm`` is the root mean square length of a row; ``product``, with the norm
    of the head's weights, stays where a network only shifts scale from features to head to escape the penalty."""

    step: int
    loss: float
    value: float
    penalty: float
    share: float
    stable_rank: float
    feature_norm: float
    head_norm: float
    product: float


@dataclass(frozen=True, repr=False)
class PenaltyReport(Report):
    """What a penalty did, step by step, on the features of one layer."""

    layer: str
    at: str
    settings: Mapping[str, Any]
    steps: int
    rows: tuple[PenaltyRow, ...]

    def table(self) -> list[dict[str, Any]]:
        """A row per step that was kept."""
        return [vars(row) for row in self.rows]

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        head = f"{self.steps} steps on the {self.at} of layer {self.layer!r} ({chosen})"
        ends = sorted({0, len(self.rows) // 2, len(self.rows) - 1}) if self.rows else []
        columns = ["step", "loss", "penalty", "share", "stable_rank", "feature_norm", "head_norm", "product"]
        return "\n".join([head, *([lines([self.table()[place] for place in ends], columns)] if ends else [])])

    def figure(self) -> Any:
        """Loss, penalty, stable rank and norms over the steps, one panel each."""
        alt = altair("the figure of a penalty")
        names = {
            "loss": "loss",
            "penalty": "penalty",
            "stable_rank": "stable rank",
            "feature_norm": "feature norm",
            "head_norm": "head norm",
            "product": "head × feature norm",
        }
        stride = max(1, len(self.rows) // 400)
        values = [
            {"step": row["step"], "what": shown, "value": row[name]}
            for row in self.table()[::stride]
            for name, shown in names.items()
            if row[name] == row[name]  # a layer without weights has no head norm
        ]
        base = alt.Chart(alt.Data(values=values)).mark_line()
        chart = base.encode(
            x=alt.X("step:Q", title="step"), y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
        )
        panels = chart.properties(width=210, height=130).facet(
            facet=alt.Facet("what:N", title=None, sort=list(names.values())), columns=3
        )
        return panels.resolve_scale(y="independent")


class AttachedPenalty:
    """``penalty(loss)`` is the loss with the penalty on the features of all passes since the last call, whose rows
    count as one batch. Passes in evaluation mode or without gradients leave no trace, and a loss without gradients
    comes back as it is; so does every loss of the warm-up."""

    def __init__(self, settings: Penalty, model: nn.Module, layer: str | None, at: Side, to_output: bool) -> None:
        one_of("at", at, ("input", "output"))
        self.settings, self.model, self.at = settings, model, at
        self.layer, self._module = find_layer(model, layer)
        self.steps = 0
        self.active = True
        self.accumulation = 1.0  # by which a model that is told of accumulated batches divides its own loss
        self._passes: list[Tensor] = []
        self._log: list[tuple[int, float, Tensor]] = []
        self._handles = [self._module.register_forward_hook(self._see, with_kwargs=True)]
        if to_output:
            self._handles.append(model.register_forward_hook(self._add_to_output, with_kwargs=True))

    def __call__(self, loss: Tensor) -> Tensor:
        if not self.active:
            raise RuntimeError("the penalty was removed from the model: attach it again")
        return self._added(loss, 1.0)

    def __enter__(self) -> AttachedPenalty:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Take the hooks off; the log stays."""
        for handle in self._handles:
            handle.remove()
        self._passes.clear()
        self.active = False

    def __deepcopy__(self, memo: Any) -> AttachedPenalty:
        """A copy of the model carries copies of its hooks: these see nothing."""
        idle = copy.copy(self)
        idle.active, idle._passes, idle._log = False, [], []
        return idle

    def forget(self) -> None:
        """Leave out the passes since the last call."""
        self._passes.clear()

    def report(self) -> PenaltyReport:
        """The log so far."""
        rows = tuple(self._row(*entry) for entry in self._log)
        return PenaltyReport(self.layer, self.at, dict(vars(self.settings)), self.steps, rows)

    def last(self) -> PenaltyRow | None:
        """The newest row of the log."""
        return self._row(*self._log[-1]) if self._log else None

    def state_dict(self) -> dict[str, int]:
        """The number of steps, for a checkpoint: the warm-up must not begin again."""
        return {"steps": self.steps}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from a checkpoint."""
        self.steps = int(state["steps"])

    @staticmethod
    def _row(step: int, lam: float, kept: Tensor) -> PenaltyRow:
        loss, value, stable, feature, head = kept.tolist()
        whole = loss + lam * value
        share = lam * value / whole if lam and whole else 0.0
        return PenaltyRow(step, loss, value, lam * value, share, stable, feature, head, head * feature)

    def _training(self) -> bool:
        return self.active and self.model.training and torch.is_grad_enabled()

    def _see(self, _: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        # A pass that checkpointing repeats inside the backward pass was seen the first time.
        if not self._training() or torch._C._current_graph_task_id() >= 0:
            return
        if len(self._passes) == MOST_PASSES:
            self._passes.clear()
            raise RuntimeError(f"{MOST_PASSES} passes reached {self.layer!r}, and the penalty was added to no loss")
        self._passes.append(as_matrix(tensor_in((*args, *kwargs.values()) if self.at == "input" else output)))

    def _added(self, loss: Tensor, divided: float) -> Tensor:
        if not self._training():
            return loss
        if not self._passes:
            raise RuntimeError(f"no pass in training mode reached {self.layer!r} since the penalty was last added")
        features = torch.cat(self._passes) if len(self._passes) > 1 else self._passes[0]
        self._passes.clear()
        self.steps += 1
        kept = self.settings.every > 0 and (self.steps - 1) % self.settings.every == 0
        lam = self.settings.lam if self.steps > self.settings.warmup else 0.0
        if not lam and not kept:
            return loss
        if lam and not features.requires_grad:
            raise RuntimeError(f"nothing that trains lies before {self.layer!r}: its features cannot be penalised")
        matrix = self.settings.matrix(features if lam else features.detach())
        values = self.settings.spectrum(matrix)
        value = self.settings.normalised(values, len(matrix))
        if kept:
            self._log.append((self.steps, lam, self._measured(loss, value, values, matrix)))
        return loss + (lam / divided) * value.to(loss.device) if lam else loss

    @torch.no_grad()
    def _measured(self, loss: Tensor, value: Tensor, values: Tensor, matrix: Tensor) -> Tensor:
        """Loss, value, stable rank, feature norm and head norm, left on the device: reading them would wait for it."""
        squares = values.detach().square()
        stable = squares.sum() / squares[0].clamp(min=torch.finfo(squares.dtype).tiny)
        feature = torch.linalg.vector_norm(matrix.float()) / len(matrix) ** 0.5
        weight = getattr(self._module, "weight", None) if self.at == "input" else None
        head = torch.linalg.vector_norm(weight.float()) if isinstance(weight, Tensor) else torch.tensor(torch.nan)
        each = (loss.detach(), value.detach(), stable, feature, head)
        return torch.stack([part.to(device=values.device, dtype=torch.float32) for part in each])

    def _add_to_output(self, _: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        if not self._training():
            return output
        divided = self.accumulation if kwargs.get("num_items_in_batch") is not None else 1.0
        if isinstance(output, tuple) and output and isinstance(output[0], Tensor) and output[0].ndim == 0:
            return (self._added(output[0], divided), *output[1:])
        loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if not isinstance(loss, Tensor):
            self._passes.clear()
            raise RuntimeError("the model returned no loss to add the penalty to: add it to your own loss instead")
        if isinstance(output, dict):
            output["loss"] = self._added(loss, divided)
        else:
            output.loss = self._added(loss, divided)
        return output
