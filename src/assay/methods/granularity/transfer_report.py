"""What fine labels gained over retraining on the coarse ones, by protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay._reports import Report, bars
from assay.probes.intervals import Interval, mean_interval


@dataclass(frozen=True)
class TransferScore:
    """Test accuracy of one protocol, and the choices made on validation data: the rate of the last stage, its best
    epoch, and the validation accuracy of every rate tried, NaN where training diverged. Over several seeds these are
    means and the choices of most, and ``by_seed`` has each seed's own."""

    accuracy: float
    rate: float | None = None
    epoch: int | None = None
    validation: Mapping[float, float] = field(default_factory=dict)
    by_seed: tuple[TransferScore, ...] = ()

    @classmethod
    def over(cls, scores: Sequence[TransferScore]) -> TransferScore:
        """Several seeds: means of accuracies, and the choices that most of them made."""
        if len(scores) == 1:
            return scores[0]
        often = (Counter(getattr(each, name) for each in scores).most_common(1) for name in ("rate", "epoch"))
        rate, epoch = (most[0][0] for most in often)
        validation = {key: _mean([each.validation[key] for each in scores]) for key in scores[0].validation}
        return cls(_mean([each.accuracy for each in scores]), rate, epoch, validation, tuple(scores))

    @property
    def accuracies(self) -> tuple[float, ...]:
        """By seed."""
        return tuple(each.accuracy for each in self.by_seed or (self,))

    @property
    def error(self) -> float:
        return 1 - self.accuracy

    @property
    def at_edge(self) -> bool:
        """The best rate was the smallest or the largest tried: widen the grid."""
        return len(self.validation) > 1 and self.rate in (min(self.validation), max(self.validation))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True, repr=False)
class TransferReport(Report):
    """``gain`` is what fine labels add to retraining, in accuracy, in the mean over seeds."""

    readout: str
    fine: TransferScore
    retrain: TransferScore
    onepass: TransferScore

    @property
    def gain(self) -> float:
        return self.fine.accuracy - self.retrain.accuracy

    def interval(self) -> Interval:
        """The gain with its interval over seeds, paired; without one below three seeds."""
        pairs = zip(self.fine.accuracies, self.retrain.accuracies, strict=True)
        return mean_interval(ours - theirs for ours, theirs in pairs)

    @property
    def advice(self) -> str:
        """``fine labels help`` or ``fine labels harm`` where the interval over seeds decides, else ``undecided``."""
        return {1: "fine labels help", -1: "fine labels harm"}.get(self.interval().sign, "undecided")

    def headline(self) -> str:
        found, what = self.interval(), f"accuracy on retraining ({self.readout})"
        if found.count == 1:
            return f"fine labels gain {self.gain:+.4f} in {what}; one seed decides nothing"
        within = f" [{found.low:+.4f}, {found.high:+.4f}]" if found.count > 2 else ""
        return f"fine labels gain {self.gain:+.4f}{within} in {what} over {found.count} seeds: {self.advice}"

    def table(self) -> list[dict[str, Any]]:
        """A row per protocol."""
        ways = {"fine labels": self.fine, "retraining": self.retrain, "one pass": self.onepass}
        rows = []
        for name, way in ways.items():
            found = mean_interval(way.accuracies)
            ends = {"low": found.low, "high": min(found.high, 1.0)} if found.count > 2 else {}
            choices = {"rate": way.rate, "epoch": way.epoch, "edge": way.at_edge}
            rows.append({"protocol": name, "accuracy": way.accuracy, **ends, **choices})
        return rows

    def figure(self) -> Any:
        """Test accuracy of the protocols."""
        return bars(self.table(), "protocol", "accuracy", accuracy="test accuracy")
