"""An author's tests of a study: what a run would not notice, each with its file and line."""

from __future__ import annotations

import ast
import contextlib
import inspect
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from . import discovery, folders
from .agreement import disagreements
from .backends import one_thread
from .errors import BrokenQuery, NotMeasured, UserError, plain, position_of
from .execute import measure
from .planning import make_plan
from .recorder import Recorder
from .study import Study
from .trying import assembled
from .units import Request, Unit

_SEEDS = (0, 1, 2)
_LEANING = re.compile(
    r"(and|but|or|nor|so|also|too|then|there(?! (?:is|are|was|were))|here|hence|thus|therefore|likewise|otherwise|"
    r"instead|again|still|yet|it|its|they|their|them|this|that|these|those|such|neither|whereas|the same|as many|"
    r"as few)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Problem:
    """Something an author should mend. ``kind`` is seeds, randomness, arm, claim, figure, table, parameter or
    statement."""

    kind: str
    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.what}"


def check(
    study: str | Study,
    *,
    arms: str | None = None,
    studies: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> list[Problem]:
    """What is wrong with a study, at its preset ``smoke``: seeds that depend on each other, randomness that no seed
    owns, arms that raise, claims and figures that are broken, parameters that nothing reads, statements that cannot be
    read alone. Nothing is stored.

    >>> lab.check("coin", studies="my_studies")
    []
    """
    found = study if isinstance(study, Study) else discovery.find(study, folders.studies_folder(studies))
    plan = make_plan(found, Request("smoke", seeds=len(_SEEDS), arms=arms))
    for arm, reason in plan.skipped.items():
        say(f"arm '{arm}' is left out: {reason}")
    units = _whole_units(plan.units)
    problems: list[Problem] = []
    measured: list[tuple[Unit, Recorder]] = []
    with one_thread(), _randomness_restored():
        for unit in units:
            say(f"{unit.label}")
            problems += _of_unit(found, unit, measured)
    problems += _of_claims_and_figures(found, measured, plan.request)
    problems += [*unquotable(found), *_unread(found)]
    return sorted(_grouped(problems), key=lambda problem: (problem.file, problem.line))


def _grouped(problems: Iterable[Problem]) -> Iterator[Problem]:
    """One for each mistake: an arm is wrong in one place, however many points show it."""
    same: dict[tuple[str, str, int, str], list[Problem]] = {}
    for problem in problems:
        who = problem.what.partition(" at ")[0] if problem.kind in ("seeds", "randomness", "arm") else problem.what
        same.setdefault((problem.kind, problem.file, problem.line, who), []).append(problem)
    for found in same.values():
        more = f" (and at {len(found) - 1} more points)" if len(found) > 1 else ""
        yield replace(found[0], what=found[0].what + more)


def _whole_units(units: Iterable[Unit]) -> list[Unit]:
    """One unit per point, with all seeds in it: whether they keep out of each other's way is the question."""
    points = {f"{unit.arm} {unit.address}": unit for unit in units}
    return [replace(unit, seeds=_SEEDS, takes=_SEEDS) for unit in points.values()]


def _of_unit(study: Study, unit: Unit, measured: list[tuple[Unit, Recorder]]) -> Iterator[Problem]:
    arm = study.arms[unit.arm]
    where = _place(arm.function)
    at = " ".join(f"{name}={value}" for name, value in unit.point.items())
    label = f"arm '{unit.arm}'{f' at {at}' if at else ''}"
    try:
        first, again = (_measured_with(study, unit, salt) for salt in (1, 2))
        alone = _measured_with(study, replace(unit, seeds=_SEEDS[1:2], takes=_SEEDS[1:2]), 1)
    except Exception as error:
        yield Problem("arm", f"{label} raises {type(error).__name__}: {error}", *_position(error, where))
        return
    measured.append((unit, first))
    if random_metrics := _different(first.frame(), again.frame(), arm.timed):
        yield Problem(
            "randomness",
            f"{label} gives other numbers when it is run again ({', '.join(random_metrics)}): it draws from a global "
            "generator (torch's, numpy's or Python's), or looks at a clock without naming the metric in timed=; draw "
            "from seeds.normal(...) and its kin",
            *where,
        )
    else:
        apart = disagreements(alone.frame(), first.frame(), arm)
        if lost := [each.metric for each in apart if each.difference == float("inf")]:
            what = f"the steps or rows of {', '.join(lost)} are others"
        else:
            what = ", ".join(f"{each.metric} changes by {each.difference:.2g}" for each in apart[:3])
        if apart:
            allowed = min(each.allowed for each in apart)
            yield Problem(
                "seeds",
                f"{label}: {what} with the seeds that run beside a seed (tolerance and rounding allow {allowed:.1g}): "
                "something is averaged, normalised, clipped or drawn over the seeds",
                *where,
            )


def _measured_with(study: Study, unit: Unit, salt: int) -> Recorder:
    """The unit's measurements with the global generators in a state that no arm may notice."""
    import numpy as np
    import torch

    random.seed(salt)
    np.random.seed(salt)
    torch.manual_seed(salt)
    return measure(study, unit)


def _different(a: pl.DataFrame, b: pl.DataFrame, timed: Collection[str]) -> list[str]:
    """The metrics that are not the same, bit for bit; of those that were timed the values are left aside."""
    labels = [column for column in a.columns if column != "value"]
    if a.columns != b.columns or not a.select(labels).equals(b.select(labels), null_equal=True):
        return sorted({*a["metric"], *b["metric"]})
    apart = ~a["value"].eq_missing(b["value"]) & ~(a["value"].is_nan() & b["value"].is_nan())
    return sorted(set(a.filter(apart)["metric"]) - set(timed))


@contextlib.contextmanager
def _randomness_restored() -> Iterator[None]:
    import numpy as np
    import torch

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


def _of_claims_and_figures(study: Study, measured: list[tuple[Unit, Recorder]], request: Request) -> Iterator[Problem]:
    if not measured:
        return
    results = assembled(study, measured, request)
    for finding in study.judge(results):
        if finding.judgement.error:
            what, _, where = finding.judgement.error.rpartition(" (")
            found = re.fullmatch(r"(.+), line (\d+)\)", where)
            place = (found[1], int(found[2])) if found else _place(finding.claim.judge)
            yield Problem("claim", f"{finding.claim.id}: {what}", *place)
    try:
        shown = [("figure", each) for each in study.figures.values()]
        shown += [("table", each) for each in study.tables.values()]
    except UserError as error:
        yield Problem("figure", str(error), str((study.folder or Path()) / "figures.py"), 1)
        return
    for kind, exhibit in shown:
        try:
            made = exhibit.make(results)
            if kind == "figure" and not hasattr(made, "to_dict"):
                raise TypeError(f"a figure is an Altair chart, not {type(made).__name__}")
            if kind == "figure":
                made.to_dict()
            elif not isinstance(made, pl.DataFrame):
                raise TypeError(f"a table is a Polars frame, not {type(made).__name__}")
        except Exception as error:
            if isinstance(error, NotMeasured) and not isinstance(error, BrokenQuery):
                continue
            name = "" if isinstance(error, BrokenQuery) else f"{type(error).__name__}: "
            yield Problem(kind, f"'{exhibit.name}': {name}{error}", *_position(error, _place(exhibit.make)))


def unquotable(study: Study) -> Iterator[Problem]:
    """Statements that are no whole sentence, or that lean on the row above."""
    for claim in study.ordered_claims():
        leaning = _LEANING.match(claim.statement.strip())
        if not leaning and not _is_sentence(claim.statement):
            yield Problem(
                "statement",
                f'{claim.id} is no whole sentence, from its first letter to its full stop: "{claim.statement}"',
                *_place(claim.judge),
            )
        if leaning:
            yield Problem(
                "statement",
                f"{claim.id} begins with '{leaning[0]}' and leans on the row above: \"{claim.statement}\"",
                *_place(claim.judge),
            )


def _is_sentence(statement: str) -> bool:
    text = statement.strip()
    return text.endswith(".") and not text[:1].islower() and " " in text


def _unread(study: Study) -> Iterator[Problem]:
    """Parameters whose name no file of the study asks for: a run under another value would be the same run."""
    read: set[str] = set()
    for path in study.folder.rglob("*.py") if study.folder else ():
        with contextlib.suppress(SyntaxError):  # figures.py is not loaded until it is drawn from
            read |= set(_asked_for(ast.parse(path.read_bytes())))
    patterns = [name for name in read if "*" in name]
    for name in study.model.model_fields:
        if name in read or any(re.fullmatch(p.replace("*", ".*"), name) for p in patterns):
            continue
        yield Problem("parameter", f"nothing reads '{name}'", *_field_place(study, name))


def _asked_for(tree: ast.AST) -> Iterator[str]:
    """Names that are asked of an object: ``x.name``, ``getattr(x, "name")`` and ``getattr(x, f"{side}_name")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
            asked = node.args[1]
            if isinstance(asked, ast.Constant):
                yield str(asked.value)
            elif isinstance(asked, ast.JoinedStr):
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "*" for p in asked.values)
            else:
                yield "*"


def _field_place(study: Study, name: str) -> tuple[str, int]:
    for base in study.model.__mro__:
        with contextlib.suppress(OSError, TypeError):
            lines, start = inspect.getsourcelines(base)
            for offset, line in enumerate(lines):
                if re.match(rf"\s+{re.escape(name)}\s*:", line):
                    return inspect.getsourcefile(base) or "", start + offset
    return str(study.folder or ""), 1


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    code = getattr(plain(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _position(error: BaseException, otherwise: tuple[str, int]) -> tuple[str, int]:
    match = re.fullmatch(r" \((.+), line (\d+)\)", position_of(error))
    return (match[1], int(match[2])) if match else otherwise
