"""What an arm records: tidy rows and arrays, all seeds of its chunk at once."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from . import checkpoint, snapshots

Scalar = str | int | float | bool
_SCHEMA = {"seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64, "trials": pl.Int64}
RESERVED = ("arm", "seed", "step", "metric", "value", "trials")


class Recorder:
    """Collects the measurements of one unit.

    >>> record(step=10, test_accuracy=values)                # values: one per seed, or a number for all
    >>> record(trials=2000, test_accuracy=values)            # shares of 2000 answers, which bound their interval
    >>> record(found=values > 0)                             # right or wrong: booleans are shares of one trial
    >>> record(at={"neuron": "lucky"}, cosine=values)        # an extra column of the tidy table
    >>> record.curve(steps, loss=values)                     # values: (steps, seeds)
    >>> record.array("weights", tensor, step=2)              # tensor: (seeds, ...)
    >>> record.neurons(steps, points, landmarks=places)      # neurons over training, for the explorer
    >>> record.note(learning_rate=0.1)                       # a choice that was made, kept with the unit

    A unit that takes long says how far it is and keeps its state now and then; one that was killed then goes on there:

    >>> state = record.resume()                              # None at the first start
    >>> record.progress(step, steps)                         # for the bar
    >>> record.checkpoint(lambda: {"step": step, "weights": weights})
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        columns: Mapping[str, Any] | None = None,
        watch: Callable[[str, float], None] | None = None,
        advance: Callable[[float, float], None] | None = None,
        room: Path | None = None,
    ) -> None:
        self._seeds = list(seeds)
        self._columns = dict(columns or {})
        self._watch = watch
        self._advance = advance
        self._room = room
        self._kept = time.monotonic()
        self._rows: dict[tuple[tuple[str, Scalar], ...], dict[str, list[Any]]] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.notes: dict[str, Any] = {}

    def __call__(
        self,
        *,
        step: int | None = None,
        at: Mapping[str, Scalar] | None = None,
        trials: int | Sequence[int] | None = None,
        **metrics: Any,
    ) -> None:
        if not metrics:
            raise ValueError("record() was given no metric")
        for metric, values in metrics.items():
            answered = trials if trials is not None or not _is_boolean(values) else 1
            array = _numbers(values)
            if array.ndim == 0:
                array = np.full(len(self._seeds), float(array))
            if array.shape != (len(self._seeds),):
                raise ValueError(f"{metric} has shape {array.shape}; one value for each of {len(self._seeds)} seeds")
            self._add(metric, array, self._seeds, [step] * len(self._seeds), at or {}, answered)
            if self._watch is not None:
                self._watch(metric, float(array.mean()))

    def curve(
        self,
        steps: Iterable[int],
        *,
        at: Mapping[str, Scalar] | None = None,
        trials: int | Sequence[int] | None = None,
        **metrics: Any,
    ) -> None:
        """Record a whole curve per metric; values have shape (steps, seeds)."""
        points = [int(step) for step in steps]
        for metric, values in metrics.items():
            array = _numbers(values)
            if array.shape != (len(points), len(self._seeds)):
                raise ValueError(f"{metric} has shape {array.shape}, not ({len(points)}, {len(self._seeds)})")
            repeated = [step for step in points for _ in self._seeds]
            self._add(metric, array.reshape(-1), self._seeds * len(points), repeated, at or {}, trials)

    def array(self, name: str, values: Any, *, step: int | None = None) -> None:
        """Keep an array with a leading seed axis, for figures and claims that need more than numbers."""
        array = np.ascontiguousarray(_plain(values))
        if array.ndim == 0 or array.shape[0] != len(self._seeds):
            raise ValueError(f"array {name} has shape {array.shape}; its first axis is the {len(self._seeds)} seeds")
        key = name if step is None else f"{name}@{step}"
        if key in self.arrays:
            raise ValueError(f"array {key} was recorded twice")
        self.arrays[key] = array

    def neurons(self, steps: Iterable[int], points: Any, *, landmarks: Mapping[str, Any], **probes: Any) -> None:
        """Keep neurons over training, which ``assay serve`` shows as they move. ``points`` (seeds, steps, neurons, 2)
        are their places in one plane for all steps, ``landmarks`` the places (seeds, 2) of the true features there, and
        every probe says something of each neuron: (seeds, steps, neurons)."""
        places, values = ({name: _plain(each) for name, each in given.items()} for given in (landmarks, probes))
        for name, array in snapshots.packed(len(self._seeds), steps, _plain(points), places, values):
            self.array(name, array)

    def note(self, **choices: Any) -> None:
        """Keep a choice (a tuned learning rate, a data set's size) with the unit; JSON values only."""
        self.notes.update(choices)

    def progress(self, done: float, total: float) -> None:
        """Say how far the unit is: ``done`` of ``total`` steps."""
        if not 0 <= done <= total:
            raise ValueError(f"a unit cannot be {done} of {total} steps far")
        if self._advance is not None:
            self._advance(float(done), float(total))

    def checkpoint(self, state: Any, *, seconds: float = 30.0) -> None:
        """Keep ``state``, and all that was recorded so far, unless the last time is less than ``seconds`` ago. A
        function is called only when its state is wanted. What it must hold is whatever the rest of the unit depends
        on: weights, the optimiser's state, generators, the step."""
        if self._room is None or time.monotonic() - self._kept < seconds:
            return
        rows = json.dumps([[list(map(list, labels)), columns] for labels, columns in self._rows.items()])
        recorded = {"rows": rows, "arrays": self.arrays, "notes": self.notes}
        kept = state() if callable(state) else state
        with contextlib.suppress(OSError):  # a place that cannot be written costs the chance to go on, and no result
            checkpoint.save(self._room, kept, recorded)
        self._kept = time.monotonic()

    def resume(self) -> Any:
        """The state of the last checkpoint, with the recorder as it was then; None when the unit starts afresh."""
        found = checkpoint.load(self._room) if self._room is not None else None
        if found is None:
            return None
        state, recorded = found
        rows = json.loads(recorded["rows"])
        self._rows = {tuple((name, value) for name, value in labels): columns for labels, columns in rows}
        self.arrays, self.notes = recorded["arrays"], recorded["notes"]
        return state

    def frame(self) -> pl.DataFrame:
        """All rows, in the order of recording within each set of labels."""
        if not self._rows:
            raise ValueError("the arm recorded nothing")
        frames = [
            pl.DataFrame(rows, schema=_SCHEMA).with_columns(**{name: pl.lit(value) for name, value in labels})
            for labels, rows in self._rows.items()
        ]
        return pl.concat(frames, how="diagonal_relaxed")

    def _add(
        self,
        metric: str,
        values: np.ndarray[Any, Any],
        seeds: list[int],
        steps: Sequence[int | None],
        at: Mapping[str, Scalar],
        trials: int | Sequence[int] | None,
    ) -> None:
        for name in at:
            if name in RESERVED or name in self._columns:
                raise ValueError(f"the column '{name}' is already taken")
        counts = None if trials is None else np.resize(np.asarray(trials, dtype=np.int64), len(seeds))
        if counts is not None:
            _check_share(metric, values, counts)
        # Plain lists here and one frame per set of labels at the end: a frame per call cost more than the training.
        labels = tuple({**self._columns, **at}.items())
        rows = self._rows.setdefault(labels, {name: [] for name in _SCHEMA})
        rows["seed"] += seeds
        rows["step"] += steps
        rows["metric"] += [metric] * len(seeds)
        rows["value"] += values.tolist()
        rows["trials"] += [None] * len(seeds) if counts is None else counts.tolist()


def _check_share(metric: str, values: np.ndarray[Any, Any], trials: np.ndarray[Any, Any]) -> None:
    """Refuse trials of what is no share of them: 0.5 of three answers, or a loss."""
    counts = np.where(np.isfinite(values), values, 0.0) * trials
    off = np.abs(counts - counts.round()) > 1e-3 * np.sqrt(np.maximum(trials, 1))  # single precision of many trials
    if (trials < 1).any() or ((counts < -1e-3) | (counts > trials + 1e-3) | off).any():
        raise ValueError(f"{metric} is no share of {np.unique(trials).tolist()} trials: {values.tolist()}")


def _is_boolean(values: Any) -> bool:
    return isinstance(values, bool) or str(getattr(values, "dtype", "")) in ("bool", "torch.bool")


def _plain(values: Any) -> np.ndarray[Any, Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def _numbers(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "detach"):
        values = [_plain(value) for value in values]
    return _plain(values).astype(np.float64)
