"""A study: parameters with presets and settings, arms, claims, figures and tables, each registered by decoration."""

from __future__ import annotations

import contextlib
import itertools
import math
import numbers
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from .errors import BrokenQuery, NotMeasured, UserError, position, position_of, unknown
from .manifest import Manifest
from .measurements import Measurements
from .params import PRESETS, Params, Preset, build
from .recorder import RESERVED
from .verdicts import Claim, Finding, Judgement, not_run

F = TypeVar("F", bound=Callable[..., Any])
Axes = Mapping[str, Sequence[Any] | Callable[[Any], Sequence[Any]]]
Grid = Axes | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Arm:
    """One condition of a study. ``over`` spans its grid: axes whose product is taken, or a list of points. The
    column ``setting`` takes named bundles of parameters.

    ``uses`` names the parameters that the arm reads (all, when None). ``working_set(params)`` gives the bytes that
    one seed touches in a step, from which the plan sizes chunks. ``needs`` lists what must be there: ``gpu``,
    ``extra:llm``, ``data:mnist``, or a function of the parameters that returns such a list. ``reads`` names the files
    that the arm reads, relative to the study's folder, or is a function of the parameters that does: their contents
    count like code. ``tolerance`` is the relative difference that company in a chunk may make to a seed's numbers
    (batched kernels round differently).
    ``magnitude`` is the size of the numbers whose differences the arm records: a difference below a small multiple of
    the machine epsilon of ``dtype`` times this size is rounding, not company.
    """

    name: str
    function: Callable[..., None]
    over: Grid = field(default_factory=dict)
    uses: tuple[str, ...] | None = None
    optional: bool = False
    needs: tuple[str, ...] | Callable[[Any], Iterable[str]] = ()
    reads: tuple[str, ...] | Callable[[Any], Iterable[str]] = ()
    working_set: Callable[[Any], float] | None = None
    dtype: str = "float32"
    tolerance: float = 1e-4
    magnitude: float = 1.0
    description: str = ""
    home: str = ""  # the module in which it was registered

    def requirements(self, params: Params) -> tuple[str, ...]:
        needs = self.needs(params) if callable(self.needs) else self.needs
        return (needs,) if isinstance(needs, str) else tuple(needs)

    def files(self, params: Params, folder: Path | None) -> dict[str, Path]:
        """The files that the arm says it reads, by the name it gives them."""
        given = self.reads(params) if callable(self.reads) else self.reads
        names = (given,) if isinstance(given, str | Path) else tuple(given)
        return {str(name): (folder or Path()) / Path(name).expanduser() for name in names}

    def points(self, params: Params) -> list[dict[str, Any]]:
        """Every point of the arm's grid under these parameters."""
        if not isinstance(self.over, Mapping):
            points = [dict(point) for point in self.over]
        else:
            axes = {name: list(values(params) if callable(values) else values) for name, values in self.over.items()}
            points = [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]
        # A number of numpy's or torch's stands in tables and addresses as the plain number it is.
        points = [{n: v.item() if hasattr(v, "item") else v for n, v in point.items()} for point in points]
        self._check_one_kind(points)
        return points

    def _check_one_kind(self, points: list[dict[str, Any]]) -> None:
        """A column of the tidy table has one type: beside the text 'all' a 1 would become a '1' that no query for the
        number finds."""
        for column in dict.fromkeys(name for point in points for name in point):
            values = [point[column] for point in points if point.get(column) is not None]
            if len({_kind(value) for value in values}) > 1:
                shown = ", ".join(dict.fromkeys(repr(value) for value in values))
                raise UserError(f"arm '{self.name}' spans '{column}' with values of different types ({shown})")


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
        self._figures: dict[str, Exhibit] = {}
        self._tables: dict[str, Exhibit] = {}
        self._draw: Callable[[], object] | None = None
        self.folder: Path | None = None
        self.module = ""
        if missing := [preset for preset in PRESETS if preset not in self.presets]:
            raise ValueError(f"study {name} has no preset {', '.join(missing)}")

    def arm(self, name: str, **options: Any) -> Callable[[F], F]:
        """Register ``function(params, seeds, record, **grid_point)`` as an arm."""
        home = sys._getframe(1).f_globals.get("__name__", "")

        def register(function: F) -> F:
            _new(self.arms, name, "arm")
            description = (function.__doc__ or "").strip().split("\n")[0]
            arm = Arm(name, function, description=description, home=home, **options)
            if arm.working_set is not None:
                arm = replace(arm, working_set=_sizing(name, arm.working_set))
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
        headline: bool = False,
    ) -> Callable[[Callable[[Measurements], Judgement]], Callable[[Measurements], Judgement]]:
        """Register ``function(measurements) -> Judgement``. ``when`` maps a description of the claim's domain to a
        predicate on the parameters, those of ``setting`` when the claim is about one. ``printed`` carries the source's
        wrong statement where ours corrects it; ``headline`` marks the few claims that tell the study's story."""

        def register(function: Callable[[Measurements], Judgement]) -> Callable[[Measurements], Judgement]:
            _new(self.claims, id, "claim")
            self.claims[id] = Claim(id, statement, source, function, when or {}, setting, printed, paper, headline)
            return function

        return register

    def figure(self, name: str, *, caption: str) -> Callable[[F], F]:
        return self._exhibit(self._figures, name, caption, "figure")

    def table(self, name: str, *, caption: str) -> Callable[[F], F]:
        return self._exhibit(self._tables, name, caption, "table")

    def draw_with(self, load: Callable[[], object]) -> None:
        """Have figures and tables registered by ``load`` when somebody first asks for one."""
        self._draw = load

    @property
    def figures(self) -> dict[str, Exhibit]:
        self._drawn()
        return self._figures

    @property
    def tables(self) -> dict[str, Exhibit]:
        self._drawn()
        return self._tables

    def _drawn(self) -> None:
        if self._draw is not None:
            load, self._draw = self._draw, None
            try:
                load()
            except BaseException:
                self._draw = load  # the next one who asks hears of it too
                self._figures.clear()
                self._tables.clear()
                raise

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
        layers = [chosen.values, base]
        if setting is not None:
            if setting not in self.settings:
                raise unknown("setting", setting, self.settings)
            own = {n.partition(".")[2]: v for n, v in overrides.items() if n.startswith(f"{setting}.")}
            layers += [self.settings[setting], chosen.settings.get(setting, {}), own]
        params = build(self.model, *layers)
        if overrides:
            self._check_data(params, self.resolve(preset, {}, setting))
        return params

    def _check_data(self, params: Params, usual: Params) -> None:
        """Refuse a data set that an override names and that nobody knows, or that is of another kind than the one in
        whose place it stands. A known one that is not here leaves its arms out with the reason; of a slip of the pen
        that would look like a whole run."""
        from assay.data import catalog

        for arm in self.arms.values():
            named, before = (
                [need.removeprefix("data:") for need in arm.requirements(values) if need.startswith("data:")]
                for values in (params, usual)
            )
            kinds = {entry.kind if (entry := catalog.find(name)) else None for name in before}
            kind = kinds.pop() if len(kinds) == 1 else None
            for name in named:
                if name not in before and (reason := catalog.unknown(name, kind)):
                    raise UserError(reason)

    def check(self) -> None:
        """Refuse, once everything is registered, what would otherwise be ignored or stop a run halfway: names that do
        not exist, needs of no known kind, and a paper.csv that cannot be read."""
        for name, preset in self.presets.items():
            for word, given, allowed in (
                ("fewer", preset.fewer, {**self.arms, **self.settings}),
                ("skip", preset.skip, self.arms),
                ("arms", preset.arms, self.arms),
                ("settings", preset.settings, self.settings),
            ):
                self._check_names(given, allowed, f"{word}= of the preset '{name}'")
            self._check_names(preset.values, self.model.model_fields, f"the preset '{name}'")
            for setting, values in preset.settings.items():
                self._check_names(values, self.model.model_fields, f"settings= of the preset '{name}' for '{setting}'")
        for setting, values in self.settings.items():
            self._check_names(values, self.model.model_fields, f"the setting '{setting}'")
        for claim in self.claims.values():
            self._check_names([claim.setting] if claim.setting else [], self.settings, f"claim {claim.id}")
        self._check_needs()
        _ = self.paper

    def _check_names(self, given: Iterable[str], allowed: Iterable[str], where: str) -> None:
        names = list(allowed)
        for name in given:
            if name not in names:
                raise UserError(f"study '{self.name}', {where}: {unknown('name', name, names)}")

    def _check_needs(self) -> None:
        from .requirements import missing_requirement

        usual: list[Params] = []
        for preset in self.presets:
            # Whether the values of a preset go together is said when it is asked for.
            with contextlib.suppress(UserError):
                usual.append(self.resolve(preset, {}))
        for arm in self.arms.values():
            for need in sorted({need for params in usual for need in arm.requirements(params)}):
                try:
                    if need.partition(":")[0] not in ("data", "model"):  # any name may be a set's or a model's
                        missing_requirement(need, "cpu")
                except ValueError as error:
                    raise UserError(f"study '{self.name}', arm '{arm.name}': {error}") from None

    @cached_property
    def paper(self) -> pl.DataFrame:
        """The numbers that the source prints, from paper.csv."""
        path = self.folder / "paper.csv" if self.folder else None
        if path is None or not path.exists():
            return pl.DataFrame()
        try:
            frame = pl.read_csv(path, comment_prefix="#")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise UserError(f"cannot read {path}: {str(error).strip().splitlines()[0]}") from None
        if "value" not in frame.columns or not frame["value"].dtype.is_numeric():
            raise UserError(f"cannot read {path}: it needs a column 'value' with a number in every row")
        return frame

    def judge(self, measurements: Measurements, manifest: Manifest | None = None) -> list[Finding]:
        """Every claim's verdict on one run's measurements, claims by number and then the controls."""
        ordered = sorted(self.claims.values(), key=lambda claim: claim.order)
        run = (manifest.preset, manifest.set, manifest.id) if manifest is not None else ("", {}, "")
        return [Finding(self.name, claim, _judge(claim, measurements), *run) for claim in ordered]


def _judge(claim: Claim, measurements: Measurements) -> Judgement:
    try:
        params = measurements.params_of(claim.setting) if claim.setting else measurements.params
        for domain, predicate in claim.when.items():
            if not predicate(params):
                return not_run(f"the claim is about {domain}")
        judgement = claim.judge(measurements)
        if not isinstance(judgement, Judgement):
            given = "nothing" if judgement is None else f"a {type(judgement).__name__}"
            return _broken(f"it returned {given} instead of a judgement (of .at_least() and the like)", claim)
        return judgement
    except BrokenQuery as error:
        return _broken(str(error), claim, error)
    except NotMeasured as error:
        return not_run(str(error))
    except Exception as error:
        # One claim that cannot be judged must not take the verdicts of all the others with it.
        return _broken(f"{type(error).__name__}: {error}", claim, error)


def _broken(what: str, claim: Claim, error: Exception | None = None) -> Judgement:
    """A claim whose code is broken is an error and no verdict; it says where."""
    where = position_of(error) if error else ""
    return not_run("it could not be judged", error=f"{what}{where or position(claim.judge)}")


def _sizing(name: str, working_set: Callable[[Any], float]) -> Callable[[Any], float]:
    """An arm's working set, whose errors are said in one sentence when a run is planned."""

    def sized(params: Any) -> float:
        try:
            size = float(working_set(params))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            if isinstance(error, AttributeError):
                what = f"{error} (it is a function of the parameters in uses=, and knows no point of the grid)"
            raise UserError(f"the working set of arm '{name}' cannot be computed: {what}") from error
        if not 0 < size < math.inf:
            raise UserError(f"the working set of arm '{name}' is {size:g} bytes, and must be a positive number")
        return size

    return sized


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, numbers.Real) else type(value).__name__


def _new(shelf: Mapping[str, Any], name: str, kind: str) -> None:
    if name in shelf:
        raise ValueError(f"the study already has a {kind} {name}")
