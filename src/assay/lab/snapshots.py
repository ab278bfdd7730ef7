"""Neurons over training: where each lies in a plane beside the true features, and what probes say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .stored import Run

# What an arm recorded lies among its arrays under these names.
POINTS, STEPS, LANDMARK, PROBE = "neurons", "neurons/steps", "neurons/landmark/", "neurons/probe/"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Snapshots:
    """The neurons of one arm at one point of its grid. ``points`` are (seeds, steps, neurons, 2), ``landmarks`` places
    (seeds, 2) of the true features in the same plane, and every probe is (seeds, steps, neurons)."""

    arm: str
    point: Mapping[str, Any]
    seeds: Sequence[int]
    steps: Sequence[int]
    points: Array
    landmarks: Mapping[str, Array]
    probes: Mapping[str, Array]

    def __repr__(self) -> str:
        where = " ".join([self.arm, *(f"{name}={value}" for name, value in self.point.items())])
        count, looks = self.points.shape[2], len(self.steps)
        return f"<Snapshots of {where}: {count} neurons at {looks} steps, {len(self.seeds)} seeds>"


def packed(
    seeds: int, steps: Iterable[int], points: Array, landmarks: Mapping[str, Array], probes: Mapping[str, Array]
) -> Iterator[tuple[str, Array]]:
    """The arrays that keep snapshots, by name; what has not the shape that it should is refused."""
    looks = np.asarray(list(steps), dtype=np.int64)
    shape = (seeds, len(looks), *points.shape[2:3])
    _check("points", points, (*shape, 2))
    yield POINTS, points.astype(np.float32)
    yield STEPS, np.tile(looks, (seeds, 1))
    for name, place in landmarks.items():
        _check(f"the landmark '{name}'", place, (seeds, 2))
        yield f"{LANDMARK}{name}", place.astype(np.float32)
    for name, values in probes.items():
        _check(f"the probe '{name}'", values, shape)
        yield f"{PROBE}{name}", values.astype(np.float32)


def _check(what: str, values: Array, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise ValueError(f"{what} of neurons: shape {values.shape}, not {shape}")


def has_snapshots(run: Run) -> bool:
    """Whether a run recorded any; only the names of its arrays are read."""
    from safetensors import SafetensorError, safe_open

    for unit in run.manifest.units:
        path = run.store.units / unit.key / "arrays.safetensors"
        try:
            with safe_open(path, framework="np") as arrays:
                if POINTS in arrays.keys():  # noqa: SIM118 (it is no mapping)
                    return True
        except (OSError, SafetensorError):
            continue  # a unit without arrays, or one that is not there
    return False


def snapshots_of(run: Run) -> list[Snapshots]:
    """All that a run recorded, in the order of its plan."""
    if not has_snapshots(run):
        return []
    found = []
    places = {(unit.arm, tuple(unit.point.items())): unit.point for unit in run.manifest.units}
    for (arm, _), point in places.items():
        where = {"arm": arm, **point}
        names = run.results.array_names(**where)
        if POINTS not in names:
            continue
        seeds = sorted(s for unit in run.manifest.units if (unit.arm, unit.point) == (arm, point) for s in unit.seeds)
        found.append(
            Snapshots(
                arm,
                point,
                seeds,
                run.results.array(STEPS, **where)[0].tolist(),
                run.results.array(POINTS, **where),
                _under(LANDMARK, names, run, where),
                _under(PROBE, names, run, where),
            )
        )
    return found


def _under(prefix: str, names: Iterable[str], run: Run, where: Mapping[str, Any]) -> dict[str, Array]:
    kept = sorted(name for name in names if name.startswith(prefix))
    return {name.removeprefix(prefix): run.results.array(name, **where) for name in kept}
