"""SWAD: the average of all weights along the flat valley of the validation loss.

Weights are averaged densely, at every step, segment by segment between two looks at the validation loss. The valley
begins where the loss has stopped falling and ends where it has risen above a tolerance for good; the average over its
segments is the model that is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, altair

from ._checks import number, whole

Weights = dict[str, Tensor]


@dataclass(frozen=True, repr=False)
class ValleyReport(Report):
    """``start`` and ``end`` are the first and last segment of the average, both None where the loss never settled and
    the last segment stands alone; ``threshold`` is the loss above which the valley has ended."""

    losses: tuple[float, ...]
    steps: tuple[int, ...]
    threshold: float | None
    start: int | None
    end: int | None
    done: bool

    def table(self) -> list[dict[str, Any]]:
        """A row per segment: its last step, the loss there and whether it is in the average."""
        inside = range(self.start, self.end + 1) if self.start is not None and self.end is not None else range(0)
        return [
            {"segment": i, "step": step, "loss": loss, "averaged": i in inside}
            for i, (step, loss) in enumerate(zip(self.steps, self.losses, strict=True))
        ]

    def __repr__(self) -> str:
        if self.start is None or self.end is None or self.threshold is None:
            return f"{len(self.losses)} segments, and the validation loss has not settled: the last one stands alone"
        ended = "and the valley has ended" if self.done else "and the valley goes on"
        first = self.steps[self.start - 1] + 1 if self.start else 1
        return (
            f"steps {first} to {self.steps[self.end]} are averaged (segments {self.start} to {self.end} of "
            f"{len(self.losses)}), the threshold is {self.threshold:.4g}, {ended}"
        )

    def figure(self) -> Any:
        """The validation loss over the steps, the averaged segments marked, and the threshold."""
        alt = altair("the figure of a valley")
        data = alt.Data(values=[{**row, "averaged": "yes" if row["averaged"] else "no"} for row in self.table()])
        base = alt.Chart(data).encode(
            x=alt.X("step:Q", title="step"), y=alt.Y("loss:Q", title="validation loss", scale=alt.Scale(zero=False))
        )
        points = base.mark_point(filled=True, size=60).encode(color=alt.Color("averaged:N", title="in the average"))
        chart = base.mark_line(color="grey") + points
        if self.threshold is not None:
            rule = alt.Chart(alt.Data(values=[{"loss": self.threshold}])).mark_rule(strokeDash=[4, 4])
            chart = chart + rule.encode(y="loss:Q")
        return chart.properties(width=420, height=220)


class SWAD:
    """Call ``update()`` after every optimiser step and ``check(loss)`` with every validation loss; the weights of the
    steps between two checks are one segment.

    The valley begins at a segment whose loss is not undercut by the ``converge`` - 1 segments after it; the segments
    just before, among the last ``tolerate``, join while their loss is below the threshold, (1 + ``ratio``) times the
    mean of those ``converge`` losses. It ends when ``tolerate`` losses in a row lie above it: ``done`` is then true and
    nothing more is averaged. ``device`` is where segments wait, by default where the model is; up to
    max(``converge``, ``tolerate``) copies of its weights are kept.

    >>> swad = SWAD(model)
    >>> swad.update()
    >>> swad.check(validation_loss)
    >>> averaged = swad.averaged()
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        converge: int = 3,
        tolerate: int = 6,
        ratio: float = 0.3,
        device: torch.device | str | None = None,
    ) -> None:
        self.converge, self.tolerate = whole("converge", converge, 1), whole("tolerate", tolerate, 1)
        number("ratio", ratio, least=0)
        self.model, self.ratio, self.device = model, float(ratio), device
        self.steps = 0
        self.losses: list[float] = []
        self.threshold: float | None = None
        self.done = False
        self._ends: list[int] = []  # the last step of every segment
        self._waiting: dict[int, Weights] = {}  # segments that may still join
        self._segment: Weights = {}
        self._count = 0  # steps of the segment
        self._final: Weights = {}
        self._range: tuple[int, int] | None = None  # the first and last segment of the final average

    def update(self) -> None:
        """Take the model's present weights into the running segment."""
        if self.done:
            return
        self.steps += 1
        self._count += 1
        _mean_in(self._segment, self._weights(), self._count)

    def check(self, loss: float | Tensor) -> bool:
        """Close the segment with the validation loss of the model as it is now. True when the valley has ended."""
        value = float(loss.detach()) if isinstance(loss, Tensor) else float(loss)
        number("the validation loss", value, least=0)
        if self.done:
            return True
        if not self._count:
            raise RuntimeError("no step was taken since the last check: call update() after every optimiser step")
        now = len(self.losses)
        self._waiting[now], self._segment, self._count = self._segment, {}, 0
        self.losses.append(value)
        self._ends.append(self.steps)
        if self._range is None:
            self._look_for_the_start(now)
        if self._range is not None:
            self._go_on(now)
        kept = now - max(self.converge, self.tolerate) + 1 if self._range is None else self._range[1] + 1
        self._waiting = {i: each for i, each in self._waiting.items() if i >= kept}
        return self.done

    def averaged(self) -> nn.Module:
        """A copy of the model with the averaged weights, those after the last check left out. Buffers are the model's
        own: where batch normalisation keeps statistics, take them anew (``torch.optim.swa_utils.update_bn``)."""
        made = copy.deepcopy(self.model)
        chosen, _ = self._chosen()
        with torch.no_grad():
            for name, weight in made.named_parameters():
                weight.copy_(chosen[name])
        return made

    def report(self) -> ValleyReport:
        """The losses so far, and the valley that would be averaged now."""
        _, taken = self._chosen() if self._range else ({}, None)
        start, end = taken or (None, None)
        return ValleyReport(tuple(self.losses), tuple(self._ends), self.threshold, start, end, self.done)

    def state_dict(self) -> dict[str, Any]:
        """All that a checkpoint needs to go on."""
        return {name: copy.deepcopy(getattr(self, name)) for name in _STATE}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        for name in _STATE:
            setattr(self, name, copy.deepcopy(state[name]))

    def _weights(self) -> Weights:
        return {
            name: weight.detach().to(self.device or weight.device) for name, weight in self.model.named_parameters()
        }

    def _look_for_the_start(self, now: int) -> None:
        first = now - self.converge + 1
        if first < 0 or self.losses[first] > min(self.losses[first:]):
            return
        self.threshold = sum(self.losses[first:]) / self.converge * (1 + self.ratio)
        start = first
        while start > max(0, now - self.tolerate + 1) and self.losses[start - 1] <= self.threshold:
            start -= 1
        self._range = (start, start)
        self._final = {name: each.clone() for name, each in self._waiting[start].items()}
        for i in range(start + 1, first + 1):
            self._join(i)

    def _go_on(self, now: int) -> None:
        """A segment joins when the ``tolerate`` losses from it on are known and one of them is below the threshold."""
        assert self._range is not None
        assert self.threshold is not None
        while self._range[1] + self.tolerate <= now:
            following = self._range[1] + 1
            if min(self.losses[following : following + self.tolerate]) > self.threshold:
                self.done = True
                return
            self._join(following)

    def _join(self, i: int) -> None:
        assert self._range is not None
        self._range = (self._range[0], i)
        _mean_in(self._final, self._waiting[i], i - self._range[0] + 1)

    def _chosen(self) -> tuple[Weights, tuple[int, int] | None]:
        """The weights to keep: the valley with the segments at the end of training that lie below the threshold, or,
        where the loss never settled, the last segment."""
        if self._range is None or self.threshold is None:
            last = self._waiting.get(len(self.losses) - 1, self._segment)
            if not last:
                raise RuntimeError("no step was taken yet: call update() after every optimiser step")
            return last, None
        final, (start, end) = {name: each.clone() for name, each in self._final.items()}, self._range
        while not self.done and end + 1 < len(self.losses) and min(self.losses[end + 1 :]) <= self.threshold:
            end += 1
            _mean_in(final, self._waiting[end], end - start + 1)
        return final, (start, end)


_STATE = ("steps", "losses", "threshold", "done", "_ends", "_waiting", "_segment", "_count", "_final", "_range")


@torch.no_grad()
def _mean_in(mean: Weights, new: Weights, count: int) -> None:
    """Make ``mean`` the mean of ``count`` weights, of which ``new`` is the last; half precision in float32."""
    for name, weight in new.items():
        wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
        if count == 1:
            mean[name] = wide.clone()
        else:
            mean[name] += (wide - mean[name]) / count
