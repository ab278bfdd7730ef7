"""A study: parameters with presets and settings, arms, claims, figures and tables, each registered by decoration."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from .errors import BrokenQuery, NotMeasured, UserError, position, position_of, unknown
from .findings import Claim, Finding, among_all
from .manifest import Manifest
from .measurements import Measurements
from .params import PRESETS, P, Params, Preset, build
from .part import Part, merge_presets, merge_settings
from .registry import Exhibit, Registry
from .verdicts import Judgement, looked, not_run


class Study(Registry[P]):
    """One question from the literature, made runnable. See docs/write_your_own_study.md.

    ``parts`` are its experiments, where it has several: each brings parameters, settings, its share of every preset,
    and arms; ``params`` derives from the parameters of all of them.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        question: str,
        source: str,
        params: type[P],
        presets: Mapping[str, Preset],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        parts: Sequence[Part[Any]] = (),
    ) -> None:
        super().__init__(params)
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or name in ("all", "index"):
            raise ValueError(f"a study's name is a word in small letters, digits and hyphens, not '{name}'")
        self.name = name
        self.title = title
        self.question = question
        self.source = source
        if missing := [preset for preset in PRESETS if preset not in presets]:
            raise ValueError(f"study {name} has no preset {', '.join(missing)}")
        self.presets = merge_presets(presets, parts)
        self.settings = merge_settings(settings or {}, parts)
        self._draw: Callable[[], object] | None = None
        self.folder: Path | None = None
        self.module = ""
        self.parts = tuple(parts)
        for part in parts:
            part.join(self)

    def draw_with(self, load: Callable[[], object]) -> None:
        """Have figures and tables registered by ``load`` when somebody first asks for one."""
        self._draw = load

    def draw_like(self, other: Study[Any]) -> None:
        """Take over the figures and tables of another, which is the same study loaded anew."""
        self._figures.update(other.figures)
        self._tables.update(other.tables)

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
                for exhibit in (*self._figures.values(), *self._tables.values()):
                    self._check_names(exhibit.shows, self.claims, f"shows= of '{exhibit.name}'")
            except BaseException:
                self._draw = load  # the next one who asks hears of it too
                self._figures.clear()
                self._tables.clear()
                raise

    def preset(self, name: str) -> Preset:
        if name not in self.presets:
            raise unknown("preset", name, self.presets)
        return self.presets[name]

    def usual_arms(self, preset: str) -> set[str]:
        """The arms that a preset runs when nobody chooses: all but the optional ones it does not ask for."""
        chosen = self.preset(preset)
        return {n for n, arm in self.arms.items() if not arm.optional or n in chosen.arms} - set(chosen.skip)

    def resolve(self, preset: str, overrides: Mapping[str, Any], setting: str | None = None) -> P:
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
            named, before = arm.data(params), arm.data(usual)
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
        self._check_boundaries()
        self._check_needs()
        _ = self.paper

    def _check_boundaries(self) -> None:
        self._check_names(self.boundaries, {**self.claims, **self.phases}, "a boundary")
        self._check_names(self.phases, self.boundaries, "a phase, which needs a boundary")
        for boundary in self.boundaries.values():
            self._check_names(boundary.arms, self.arms, f"arms= of the boundary of {boundary.claim}")

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

    def ordered_claims(self) -> list[Claim]:
        """Claims by number and then the controls, whatever part each is in."""
        return sorted(self.claims.values(), key=lambda claim: claim.order)

    def judge(
        self, measurements: Measurements[Any], manifest: Manifest | None = None, *, looks: int = 1
    ) -> list[Finding]:
        """Every claim's verdict on one run's measurements. ``looks`` tells how often the run was judged while seeds
        were added to it."""
        run = (manifest.preset, manifest.set, manifest.id) if manifest is not None else ("", {}, "")
        ordered = self.ordered_claims()
        with looked(looks):
            judged = {claim.id: judge_claim(claim, measurements) for claim in ordered}
        judged = among_all(judged, [claim.id for claim in ordered if claim.headline])
        return [Finding(self.name, claim, judged[claim.id], *run) for claim in ordered]


def judge_claim(claim: Claim, measurements: Measurements[Any]) -> Judgement:
    """The verdict of one claim by itself."""
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
