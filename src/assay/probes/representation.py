"""What can a linear head read from the features of a snapshot? The k-step representation probe.

Snapshots after chosen training steps are frozen and a head is trained on each. The head is trained on raw features, on
features that are centred and divided by one common number, and on features standardised one by one: where only the raw
head fails, the information is there and the *scale* hides it, so that the failure says nothing about directions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import RowReport, altair, chart, plain
from assay.methods._checks import all_finite, check_fields, limits
from assay.methods._data import labelled, moved, rows_of, size_of
from assay.methods._features import Pool, watching
from assay.methods._models import device_of, module_named, output_of
from assay.methods._precision import uncached_casts
from assay.methods._progress import progress

from ._reading import Representation, features_over
from ._tracking import Tracker
from .heads import SCALINGS, fit_head
from .intervals import Interval, share_interval


@dataclass(frozen=True)
class HeadScore:
    """How well a head on one snapshot reads the labels."""

    snapshot: Hashable
    scaling: str
    train_accuracy: float
    accuracy: float
    balanced_accuracy: float  # mean over classes of the share that is right
    majority: float  # accuracy of the best constant answer on the test labels
    tested: int = 0  # test samples

    def interval(self) -> Interval:
        """The accuracy with its 95 % interval over test samples: of this training, not of another seed's."""
        return share_interval(self.accuracy * self.tested, self.tested)


@dataclass(frozen=True, repr=False)
class RepresentationReport(RowReport):
    """Scores by snapshot and scaling."""

    def headline(self) -> str:
        if not self.rows:
            return "no snapshot was probed"
        best = max(self.rows, key=lambda row: row.accuracy)
        return (
            f"best accuracy {best.interval()} over {best.tested} test samples (snapshot {best.snapshot}, "
            f"{best.scaling}); the best constant answer has {best.majority:.3f}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per snapshot and scaling, with the accuracy's interval over test samples."""
        return [{**plain(row), "low": row.interval().low, "high": row.interval().high} for row in self.rows]

    def figure(self) -> Any:
        """Accuracy over the snapshots, one line per scaling; on a logarithmic axis where snapshots are steps. With one
        scaling, its interval over test samples as well."""
        alt = altair("the figure of a probe")
        names = list(dict.fromkeys(row.snapshot for row in self.rows))
        steps = all(isinstance(name, int) and name >= 0 for name in names)
        axis = alt.X("snapshot:Q", scale=alt.Scale(type="symlog"), title="step", axis=alt.Axis(values=names))
        axis = axis if steps else alt.X("snapshot:N", sort=[str(name) for name in names], title="snapshot")
        rows = [row if steps else {**row, "snapshot": str(row["snapshot"])} for row in plain(self.table())]
        y = alt.Y("accuracy:Q", title="test accuracy", scale=alt.Scale(zero=False))
        lines = chart(rows).mark_line(point=True).encode(x=axis, y=y, color=alt.Color("scaling:N", sort=list(SCALINGS)))
        if len({row.scaling for row in self.rows}) == 1:
            base = chart(rows).mark_rule(strokeWidth=1.5, opacity=0.6)
            lines += base.encode(x=axis, y=alt.Y("low:Q"), y2="high:Q", color=alt.Color("scaling:N"))
        floor = chart([{"accuracy": self.rows[0].majority}]).mark_rule(strokeDash=[4, 4]).encode(y="accuracy:Q")
        return (lines + floor).properties(width=380, height=240)


def representation_probe(
    snapshots: Mapping[Any, Representation],
    train: Any,
    test: Any,
    *,
    scalings: Sequence[str] = SCALINGS,
    pool: Pool = "flatten",
    batch_size: int = 1024,
    show: bool | None = None,
    **head: Any,
) -> RepresentationReport:
    """Score heads on every snapshot: a model, a function from inputs (n, ...) to features such as ``snapshot`` returns.

    ``train`` and ``test`` are (inputs, labels), mappings with labels, or data loaders of either; ``head`` goes to
    ``fit_head``. Features with more axes are flattened; ``pool="mean"`` averages over tokens (where the attention mask
    is one) or positions, ``first`` takes the first token.
    """
    (seen, labels), (unseen, wanted) = (
        labelled(part, batch_size, name) for part, name in ((train, "train"), (test, "test"))
    )
    scores = []
    for name, given in progress(list(snapshots.items()), "snapshot", show):
        with uncached_casts():
            known, new = (features_over(given, part, pool).flatten(1) for part in (seen, unseen))
        for scaling in scalings:
            fitted = fit_head(known, labels, scaling=scaling, **head)
            right = fitted.predict(new) == wanted
            classes, counts = torch.unique(wanted, return_counts=True)
            balanced = torch.stack([right[wanted == c].double().mean() for c in classes]).mean()
            score = HeadScore(
                name,
                scaling,
                train_accuracy=float((fitted.predict(known) == labels).double().mean()),
                accuracy=float(right.double().mean()),
                balanced_accuracy=float(balanced),
                majority=int(counts.max()) / len(right),
                tested=len(right),
            )
            scores.append(score)
    return RepresentationReport(tuple(scores))


def snapshot(model: nn.Module, layer: str | None = None, *, batch_size: int = 1024) -> Callable[[Any], Tensor]:
    """A frozen copy of the model as it is now: a function from inputs to the output of ``layer`` (or the model's).

    The copy is in evaluation mode; training the original afterwards does not change it. Inputs are a tensor or a
    mapping. Where a layer returns a tuple (a transformer block), its first entry counts, and of a Hugging Face output
    its last hidden state; where it runs several times, the last run counts.
    """
    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    module_named(frozen, layer or "")

    def features(inputs: Any) -> Tensor:
        parts = []
        with torch.no_grad(), watching(frozen, [layer or ""]) as seen:
            for start in range(0, size_of(inputs), batch_size):
                seen[layer or ""].clear()
                output_of(frozen, moved(rows_of(inputs, slice(start, start + batch_size)), device_of(frozen)))
                if not seen[layer or ""]:
                    raise ValueError(f"the model never ran its layer {layer!r} on these inputs")
                value = seen[layer or ""][-1]
                parts.append(value[0] if isinstance(value, tuple) else getattr(value, "last_hidden_state", value))
        return torch.cat(parts)

    return features


@dataclass(frozen=True)
class RepresentationTracker(Tracker["RepresentationRecord"]):
    """Take a snapshot of ``layer`` (the model's own output when None) before training and after each of ``steps``; the
    record's ``report(train, test)`` probes them. Every snapshot is a copy of the model, kept on the CPU."""

    layer: str | None = None
    steps: tuple[int, ...] = field(default=(0, 1, 10, 100, 1000))
    batch_size: int = field(default=1024, metadata=limits(least=1))

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, model: nn.Module) -> RepresentationRecord:
        """Start watching; call ``step()`` of the record after every step of the optimiser."""
        return RepresentationRecord(self, model)


class RepresentationRecord:
    """Snapshots taken so far, by step."""

    def __init__(self, settings: RepresentationTracker, model: nn.Module) -> None:
        self.steps = 0
        self.snapshots: dict[int, Callable[[Any], Tensor]] = {}
        self._settings, self._model = settings, model
        self._look()

    def step(self) -> None:
        """End a step of the optimiser."""
        self.steps += 1
        self._look()

    def report(self, train: Any, test: Any, **options: Any) -> RepresentationReport:
        """``representation_probe`` on the snapshots."""
        return representation_probe(self.snapshots, train, test, **options)

    def _look(self) -> None:
        if self.steps in self._settings.steps:
            for name, weight in self._model.named_parameters():
                all_finite(f"the weights {name!r} at step {self.steps}", weight.detach())
            kept = copy.deepcopy(getattr(self._model, "_orig_mod", self._model)).cpu()
            self.snapshots[self.steps] = snapshot(kept, self._settings.layer, batch_size=self._settings.batch_size)
