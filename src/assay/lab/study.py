"""A study: parameters with presets and settings, arms, claims, figures and tables, each registered by decoration."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from .claims import Claim, Finding, Judgement, not_run
from .errors import NotMeasured, unknown
from .measurements import Measurements
from .params import Params, Preset, build
from .recorder import RESERVED

F = TypeVar("F", bound=Callable[..., Any])
Axes = Mapping[str, Sequence[Any] | Callable[[Any], Sequence[Any]]]
Grid = Axes | Sequence[Mapping[str, Any]]
PRESETS = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Arm:
    """One condition of a study. ``over`` spans its grid: axes whose product is taken, or a list of points. The
    column ``setting`` takes named bundles of parameters.

    ``uses`` names the parameters that the arm reads (all, when None). ``working_set(params)`` gives the bytes that
    one seed touches in a step, from which the plan sizes chunks. ``needs`` lists what must be there: ``gpu``,
    ``extra:llm``, ``data:mnist``, or a function of the parameters that returns such a list. ``tolerance`` is the
    relative difference that company in a chunk may make to a seed's numbers (batched kernels round differently).
    """

    name: str
    function: Callable[..., None]
    over: Grid = field(default_factory=dict)
    uses: tuple[str, ...] | None = None
    optional: bool = False
    needs: tuple[str, ...] | Callable[[Any], Iterable[str]] = ()
    working_set: Callable[[Any], float] | None = None
    dtype: str = "float32"
    tolerance: float = 1e-4
    description: str = ""

    def requirements(self, params: Params) -> tuple[str, ...]:
        return tuple(self.needs(params)) if callable(self.needs) else self.needs

    def points(self, params: Params) -> list[dict[str, Any]]:
        """Every point of the arm's grid under these parameters."""
        if not isinstance(self.over, Mapping):
            return [dict(point) for point in self.over]
        axes = {name: list(values(params) if callable(values) else values) for name, values in self.over.items()}
        return [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]


@dataclass(frozen=True)
class Exhibit:
    """A figure (an Altair chart) or a table (a frame) made from the measurements."""

    name: str
    caption: str
    make: Callable[[Measurements], Any]


class Study:
    """One question from the literature, made runnable. See docs/write_your_own_study.md."""

    def __init__(
        self,
        name: str,
        *,
        title: str,
        question: str,
        source: str,
        params: type[Params],
        presets: Mapping[str, Preset],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or name in ("all", "index"):
            raise ValueError(f"a study's name is a word in small letters, digits and hyphens, not '{name}'")
        self.name = name
        self.title = title
        self.question = question
        self.source = source
        self.model = params
        self.presets = dict(presets)
        self.settings = {key: dict(value) for key, value in (settings or {}).items()}
        self.arms: dict[str, Arm] = {}
        self.claims: dict[str, Claim] = {}
        self.figures: dict[str, Exhibit] = {}
        self.tables: dict[str, Exhibit] = {}
        self.folder: Path | None = None
        self.module = ""
        if missing := [preset for preset in PRESETS if preset not in self.presets]:
            raise ValueError(f"study {name} has no preset {', '.join(missing)}")

    def arm(self, name: str, **options: Any) -> Callable[[F], F]:
        """Register ``function(params, seeds, record, **grid_point)`` as an arm."""

        def register(function: F) -> F:
            _new(self.arms, name, "arm")
            description = (function.__doc__ or "").strip().split("\n")[0]
            arm = Arm(name, function, description=description, **options)
            for used in arm.uses or ():
                if used not in self.model.model_fields:
                    raise ValueError(f"arm {name} uses the parameter {used}, which the study does not have")
            points = [arm.over] if isinstance(arm.over, Mapping) else arm.over
            if taken := [column for point in points for column in point if column in RESERVED]:
                raise ValueError(f"arm {name} spans '{taken[0]}', and that column is already taken")
            self.arms[name] = arm
            return function

        return register

    def claim(
        self,
        id: str,
        statement: str,
        *,
        source: str,
        when: Mapping[str, Callable[[Any], bool]] | None = None,
        setting: str | None = None,
        printed: str | None = None,
        paper: float | str | None = None,
    ) -> Callable[[Callable[[Measurements], Judgement]], Callable[[Measurements], Judgement]]:
        """Register ``function(measurements) -> Judgement``. ``when`` maps a description of the claim's domain to a
        predicate on the parameters, those of ``setting`` when the claim is about one. ``printed`` carries the source's
        wrong statement where ours corrects it."""

        def register(function: Callable[[Measurements], Judgement]) -> Callable[[Measurements], Judgement]:
            _new(self.claims, id, "claim")
            self.claims[id] = Claim(id, statement, source, function, when or {}, setting, printed, paper)
            return function

        return register

    def figure(self, name: str, *, caption: str) -> Callable[[F], F]:
        return self._exhibit(self.figures, name, caption, "figure")

    def table(self, name: str, *, caption: str) -> Callable[[F], F]:
        return self._exhibit(self.tables, name, caption, "table")

    def _exhibit(self, shelf: dict[str, Exhibit], name: str, caption: str, kind: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            _new(shelf, name, kind)
            shelf[name] = Exhibit(name, caption, function)
            return function

        return register

    def preset(self, name: str) -> Preset:
        if name not in self.presets:
            raise unknown("preset", name, self.presets)
        return self.presets[name]

    def usual_arms(self, preset: str) -> set[str]:
        """The arms that a preset runs when nobody chooses: all but the optional ones it does not ask for."""
        chosen = self.preset(preset)
        return {n for n, arm in self.arms.items() if not arm.optional or n in chosen.arms} - set(chosen.skip)

    def resolve(self, preset: str, overrides: Mapping[str, Any], setting: str | None = None) -> Params:
        """The parameters under a preset, ``--set`` overrides and, when given, a named setting.

        A plain override changes the study's base; what a named setting itself fixes stays fixed, unless the
        override addresses it (``interval.width=20``).
        """
        base = {name: value for name, value in overrides.items() if "." not in name}
        for name in overrides:
            prefix = name.partition(".")[0]
            if "." in name and prefix not in self.settings:
                raise unknown("setting", prefix, self.settings)
        chosen = self.preset(preset)
        if setting is None:
            return build(self.model, chosen.values, base)
        if setting not in self.settings:
            raise unknown("setting", setting, self.settings)
        own = {n.partition(".")[2]: v for n, v in overrides.items() if n.startswith(f"{setting}.")}
        return build(self.model, chosen.values, base, self.settings[setting], chosen.settings.get(setting, {}), own)

    @cached_property
    def paper(self) -> pl.DataFrame:
        """The numbers that the source prints, from paper.csv."""
        path = self.folder / "paper.csv" if self.folder else None
        return pl.read_csv(path, comment_prefix="#") if path and path.exists() else pl.DataFrame()

    def judge(self, measurements: Measurements, *, preset: str, overrides: Mapping[str, Any]) -> list[Finding]:
        """Every claim's verdict on one run's measurements, claims by number and then the controls."""
        ordered = sorted(self.claims.values(), key=lambda claim: claim.order)
        return [Finding(self.name, claim, _judge(claim, measurements), preset, overrides) for claim in ordered]


def _judge(claim: Claim, measurements: Measurements) -> Judgement:
    try:
        params = measurements.params_of(claim.setting) if claim.setting else measurements.params
        for domain, predicate in claim.when.items():
            if not predicate(params):
                return not_run(f"the claim is about {domain}")
        return claim.judge(measurements)
    except NotMeasured as error:
        return not_run(str(error))
    except Exception as error:
        # One claim that cannot be judged must not take the verdicts of all the others with it.
        return not_run(f"it could not be judged: {type(error).__name__}: {error}")


def _new(shelf: Mapping[str, Any], name: str, kind: str) -> None:
    if name in shelf:
        raise ValueError(f"the study already has a {kind} {name}")
