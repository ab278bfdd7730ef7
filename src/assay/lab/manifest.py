"""The manifest of a run: what was asked for, which units answer it, and how it went."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict

from .divergence import Divergence
from .errors import UserError

FORMAT = 2
Status = Literal["running", "complete", "failed", "interrupted"]
Kind = Literal["run", "sweep"]


class ManifestUnit(BaseModel):
    """A unit of a run, and the seeds that the run takes from it: a stored unit may hold more than were asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    arm: str
    point: dict[str, Any]
    seeds: list[int]


class Failure(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: str
    error: str
    trace: str = ""


class Manifest(BaseModel):
    """One run. ``format`` counts the shapes this document has had; older ones are brought up to date when read."""

    model_config = ConfigDict(extra="ignore")

    format: int = FORMAT
    id: str
    kind: Kind = "run"  # a cell of a sweep stands in no other run's place
    name: str = ""
    study: str
    preset: str
    set: dict[str, Any]
    point: dict[str, str] = {}
    seeds: int | None
    first_seed: int = 0
    preset_seeds: int
    asked_arms: str | None
    arms: list[str]
    skipped: dict[str, str]
    device: str
    params: dict[str, Any]
    settings: dict[str, dict[str, Any]]
    data: list[str] = []
    units: list[ManifestUnit]
    code: dict[str, str]
    status: Status = "running"
    failures: list[Failure] = []
    diverged: list[Divergence] = []
    started: str
    seconds: float | None = None
    computed: int = 0
    reused: int = 0
    versions: str
    machine: str
    commit: str

    @classmethod
    def read(cls, document: Mapping[str, Any], where: str) -> Manifest:
        """A manifest as it was written by this version or an earlier one."""
        given = dict(document)
        if given.get("format", 1) > FORMAT:
            raise UserError(f"the manifest {where} was written by a newer version of assay; update this one to read it")
        if given.get("format", 1) == 1:
            given = _from_first_format(given)
        try:
            return cls(**given)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            raise UserError(
                f"the manifest {where} cannot be read ({name}: {first['msg'].lower()}); run the study again"
            ) from None

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @property
    def seeds_used(self) -> int:
        """How many different seeds the units have; an arm or a setting may have fewer."""
        return len({seed for unit in self.units for seed in unit.seeds})

    @property
    def whole(self) -> bool:
        """Whether it ran all of its preset as the preset is: no parameter changed, no arm, point or seed left out."""
        everything = not self.asked_arms or all(w.strip().startswith("+") for w in self.asked_arms.split(","))
        seeds = self.first_seed == 0 and (self.seeds is None or self.seeds >= self.preset_seeds)
        return self.kind == "run" and everything and seeds and not self.set and not self.point

    @property
    def preset_words(self) -> str:
        """The preset of a run, and the parameters that it had instead."""
        changed = ", ".join(f"{name}={value}" for name, value in self.set.items())
        return f"preset {self.preset}{f' with {changed}' if changed else ''}"

    @property
    def request_words(self) -> str:
        """What the run had that its preset does not say, as options of ``assay run``."""
        words = [f"--set {name}={value}" for name, value in self.set.items()]
        words += [f"--arms {self.asked_arms}"] if self.asked_arms else []
        words += [f"--point {name}={value}" for name, value in self.point.items()]
        words += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        words += [f"--first-seed {self.first_seed}"] if self.first_seed else []
        return " ".join(words)

    @property
    def heading(self) -> str:
        """A run in words: its study and preset, the data sets it read, and whatever it had that the preset does not
        say."""
        request = self.model_copy(update={"set": {}}).request_words
        on = f"on {' and '.join(self.data)}" if self.data else ""
        return " ".join(part for part in (f"{self.study}, {self.preset_words}", on, request) if part)


def check_run_name(name: str) -> None:
    if name and not re.fullmatch(r"[A-Za-z][\w.-]*", name):
        raise UserError(f"a run cannot be called '{name}': a name begins with a letter and has letters, digits, . - _")


def _from_first_format(given: dict[str, Any]) -> dict[str, Any]:
    """The first format had one code version for all arms, and at its beginning no record of what was asked for: such a
    run counts as one of the arms that it has, and so as a part of its preset."""
    asked = given.get("seeds") if "preset_seeds" in given else None
    code = given.get("code") or ""
    return {
        **given,
        "format": FORMAT,
        "seeds": asked,
        "preset_seeds": given.get("preset_seeds", given.get("seeds") or 1),
        "asked_arms": given.get("asked_arms", ",".join(given.get("arms", ()))),
        "code": dict.fromkeys(given.get("arms", ()), code) if isinstance(code, str) else code,
    }
