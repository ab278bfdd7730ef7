"""What a test with flipped labels found, read in three ways: raw answers, balanced answers, ranking."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from assay._extras import extra
from assay._reports import Report, altair
from assay.methods._checks import all_finite, one_of
from assay.probes.intervals import Interval, mean_interval

Metric = Literal["auc", "balanced", "raw"]
METRICS: tuple[Metric, ...] = ("auc", "balanced", "raw")
_NAMES = {
    "auc": "AUC",
    "balanced": "balanced answers",
    "raw": "raw answers",
}


@dataclass(frozen=True, repr=False)
class FlipReport(Report):
    """Log-probabilities of the labels, ``scores`` (seeds, fractions, queries, labels), the true labels ``truth``
    (seeds, queries), the ``settings`` of the test, and a mark of each seed's draw.

    Three readings. ``raw``: the likeliest label is the answer; a model that prefers one label whatever the text scores
    one half. ``balanced``: each label is given to as many queries as have it, those that fit it best (two labels: a
    threshold at the median). ``auc``: how often a query with a label ranks above one without, averaged over labels. The
    last two do not see the preference."""

    model: str
    data: str
    settings: dict[str, Any]
    scores: Tensor
    truth: Tensor
    draws: tuple[str, ...]

    def __post_init__(self) -> None:
        all_finite("the scores of labels", self.scores)

    @property
    def fractions(self) -> tuple[float, ...]:
        """The shares of demonstrations with a flipped label, ascending."""
        return tuple(self.settings["fractions"])

    def values(self, metric: Metric = "auc") -> Tensor:
        """The metric for each seed and fraction: (seeds, fractions), float64."""
        one_of("metric", metric, METRICS)
        if metric == "auc":
            return self._each(_auc)
        return self._each(lambda scores, truth: float((_answers(scores, truth, metric) == truth).double().mean()))

    def at(self, fraction: float, metric: Metric = "auc") -> Interval:
        """The metric at one share of flipped labels, with its interval over seeds."""
        if fraction not in self.fractions:
            raise ValueError(f"the shares of flipped labels are {self.fractions}, not {fraction}")
        return mean_interval(self.values(metric)[:, self.fractions.index(fraction)].tolist())

    def change(self, metric: Metric = "auc") -> Interval:
        """The metric at the largest share of flipped labels minus that at the smallest, paired by seed."""
        values = self.values(metric)
        return mean_interval((values[:, -1] - values[:, 0]).tolist())

    def slope(self, metric: Metric = "auc") -> Interval:
        """The slope of a straight line through the metric over the shares, per unit of share."""
        if len(self.fractions) < 2:
            raise ValueError("a slope needs two shares of flipped labels or more")
        shares = torch.tensor(self.fractions, dtype=torch.double)
        centred = shares - shares.mean()
        return mean_interval((self.values(metric) @ centred / centred.square().sum()).tolist())

    def override(self, metric: Literal["balanced", "raw"] = "balanced") -> Interval:
        """The share of answers at the largest share of flipped labels that are what the flipped demonstrations teach:
        the label that follows the true one."""
        one_of("metric", metric, ("balanced", "raw"))
        classes = self.scores.shape[-1]
        found = self._each(
            lambda scores, truth: float((_answers(scores, truth, metric) == (truth + 1) % classes).double().mean())
        )
        return mean_interval(found[:, -1].tolist())

    def preference(self) -> Tensor:
        """The share of raw answers that each label gets: (seeds, fractions, labels)."""
        answers = self.scores.argmax(-1)
        return torch.stack([(answers == label).double().mean(-1) for label in range(self.scores.shape[-1])], -1)

    def reading(self) -> str:
        """What the AUC says, in a sentence, and what it leaves open."""
        (least, most), moved = (self.fractions[0], self.fractions[-1]), self.change()
        first, last = self.at(least), self.at(most)
        if first.compared(0.5) != "above":
            return (
                f"at {least:.0%} flipped labels the AUC is not above one half ({first}): the model does not solve this "
                "task, and flipped labels say nothing about it"
            )
        moves = {"below": "falls", "above": "rises", "undecided": "moves by an undecided amount"}[moved.compared()]
        stays = {
            "below": "ends below one half: the demonstrations override what the model knew",
            "above": "stays above one half: what the model knew is not overridden",
            "undecided": "ends where it is not told apart from one half",
        }[last.compared(0.5)]
        return f"from {least:.0%} to {most:.0%} flipped labels the AUC {moves} ({moved}) and {stays} ({last})"

    def against(self, other: FlipReport, metric: Metric = "auc") -> Interval:
        """This model's change minus the other's, paired by seed: below zero, this one loses more to flipped labels.
        Refused unless both were asked about the same draws."""
        settings = [{k: v for k, v in each.settings.items() if k != "batch"} for each in (self, other)]
        if settings[0] != settings[1] or self.draws != other.draws:
            raise ValueError("two models are compared on the same draws: the same settings, seeds and data")
        both = [each.values(metric)[:, -1] - each.values(metric)[:, 0] for each in (self, other)]
        return mean_interval((both[0] - both[1]).tolist())

    def headline(self) -> str:
        """Model, data and sizes."""
        seeds, _, queries, labels = self.scores.shape
        shown = self.settings["demonstrations"]
        data = f" on {self.data}" if self.data else ""
        return (
            f"{self.model}{data}: {labels} labels, {shown} demonstrations, {queries} queries, {seeds} seeds; "
            f"{self.reading()}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per reading and share of flipped labels, with the mean over seeds and its 95 % interval."""
        rows = []
        for metric in METRICS:
            for fraction in self.fractions:
                found = self.at(fraction, metric)
                numbers = {"estimate": found.estimate, "low": found.low, "high": found.high, "seeds": found.count}
                rows.append({"model": self.model, "reading": _NAMES[metric], "flipped": fraction, **numbers})
        return rows

    def figure(self, *others: FlipReport) -> Any:
        """The three readings over the share of flipped labels, with intervals; ``others`` are further models."""
        alt = altair("the figure of a report")
        rows = [row for each in (self, *others) for row in each.table()]
        half = alt.Chart(alt.Data(values=[{"chance": 0.5}])).mark_rule(strokeDash=[4, 4], color="#888")
        panels = []
        for metric in METRICS:
            shown = [_drawable(row) for row in rows if row["reading"] == _NAMES[metric]]
            base = alt.Chart(alt.Data(values=shown)).encode(
                x=alt.X("flipped:Q", title="flipped labels", axis=alt.Axis(format="%", values=list(self.fractions))),
                color=alt.Color("model:N", title="model"),
            )
            line = base.mark_line(point=True).encode(y=alt.Y("estimate:Q", title="score", scale=alt.Scale(zero=False)))
            parts = [base.mark_rule().encode(y="low:Q", y2="high:Q"), line]
            if metric == "auc" or self.scores.shape[-1] == 2:  # chance of a share depends on the number of labels
                parts.insert(0, half.encode(y="chance:Q"))
            panels.append(alt.layer(*parts).properties(title=_NAMES[metric], width=190, height=180))
        return alt.hconcat(*panels).resolve_scale(y="shared")

    @classmethod
    def load(cls, path: str | Path) -> FlipReport:
        """A report that was saved: models that ran on different machines can be compared."""
        kept = json.loads(Path(path).read_text(encoding="utf-8"))
        settings = {key: tuple(v) if isinstance(v, list) else v for key, v in kept["settings"].items()}
        scores, truth = torch.tensor(kept["scores"]), torch.tensor(kept["truth"])
        return cls(kept["model"], kept["data"], settings, scores, truth, tuple(kept["draws"]))

    def joined(self, *others: FlipReport) -> FlipReport:
        """One report of all seeds, from parts of a test that ran with different seeds and are else alike."""
        parts = (self, *others)
        alike = [{k: v for k, v in each.settings.items() if k not in ("seeds", "batch")} for each in parts]
        seeds = tuple(seed for each in parts for seed in each.settings["seeds"])
        named = {(each.model, each.data) for each in parts}
        if any(each != alike[0] for each in alike) or len(set(seeds)) != len(seeds) or len(named) > 1:
            raise ValueError("parts of one test have the same model, data and settings, and no seed in common")
        scores, truth = (torch.cat([getattr(each, name) for each in parts]) for name in ("scores", "truth"))
        draws = tuple(each for part in parts for each in part.draws)
        return FlipReport(self.model, self.data, {**self.settings, "seeds": seeds}, scores, truth, draws)

    def _each(self, measure: Any) -> Tensor:
        rows = [
            [measure(self.scores[seed, at], self.truth[seed]) for at in range(len(self.fractions))]
            for seed in range(len(self.truth))
        ]
        return torch.tensor(rows, dtype=torch.double)


def _answers(scores: Tensor, truth: Tensor, metric: Metric) -> Tensor:
    """(queries, labels) to the label that is answered: (queries,)."""
    if metric == "raw":
        return scores.argmax(-1)
    counts = torch.bincount(truth, minlength=scores.shape[-1])
    if scores.shape[-1] == 2:
        order = (scores[:, 1] - scores[:, 0]).argsort(descending=True, stable=True)
        return torch.zeros_like(truth).index_fill_(0, order[: int(counts[1])], 1)
    with extra("lab", "a balanced reading of three labels or more"):
        from scipy.optimize import linear_sum_assignment
    seats = torch.repeat_interleave(torch.arange(len(counts)), counts)
    rows, columns = linear_sum_assignment(scores[:, seats].double().numpy(), maximize=True)
    return truth.new_zeros(len(truth)).index_copy_(0, torch.as_tensor(rows), seats[torch.as_tensor(columns)])


def _auc(scores: Tensor, truth: Tensor) -> float:
    """How often the log-odds of a label are larger for a query that has it than for one that has not, ties one half;
    averaged over the labels that some queries have and some have not."""
    found = []
    for label in range(scores.shape[-1]):
        others = torch.cat([scores[:, :label], scores[:, label + 1 :]], 1)
        odds = scores[:, label].double() - others.double().logsumexp(-1)
        inside, outside = odds[truth == label], odds[truth != label]
        if len(inside) and len(outside):
            above = inside[:, None] - outside[None]
            found.append(((above > 0).double() + (above == 0).double() / 2).mean())
    return float(torch.stack(found).mean()) if found else float("nan")


def _drawable(row: dict[str, Any]) -> dict[str, Any]:
    """The row without bounds that are not there."""
    return {name: value for name, value in row.items() if value == value}
