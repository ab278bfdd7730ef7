"""What a study is told by decoration: arms, claims, figures and tables, of its own or of one of its parts."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from .errors import UserError
from .findings import Claim
from .measurements import Measurements
from .params import P, Params
from .recorder import RESERVED
from .verdicts import Judgement

F = TypeVar("F", bound=Callable[..., Any])
Axes = Mapping[str, Sequence[Any] | Callable[[Any], Sequence[Any]]]
Grid = Axes | Sequence[Mapping[str, Any]]
_OF_ONE_CLAIM = ("when", "setting", "paper", "headline")  # options of a claim in which members of a family may differ


@dataclass(frozen=True)
class Arm:
    """One condition of a study. ``over`` spans its grid: axes whose product is taken, or a list of points. The
    column ``setting`` takes named bundles of parameters.

    ``uses`` names the parameters that the arm reads (all of its study or part, when None). ``working_set(params)``
    gives the bytes that one seed touches in a step, from which the plan sizes chunks; ``chunk`` is their size where the
    author knows it (1: units of one seed, which run side by side). ``needs`` lists what must be there: ``gpu``,
    ``extra:llm``, ``data:mnist``, ``text:FOLDER`` (text enough to hide facts in), or a function of the parameters that
    returns such a list. ``reads`` names the files that the arm reads, relative to the study's folder, or is a function
    of the parameters that does: their contents count like code. ``tolerance`` is the relative difference that company
    in a chunk may make to a seed's numbers (batched kernels round differently).
    ``magnitude`` is the size of the numbers whose differences the arm records: a difference below a small multiple of
    the machine epsilon of ``dtype`` times this size is rounding, not company. ``timed`` names the metrics that were
    read off a clock: no two runs agree on them, so that nothing holds their values to be the same.
    """

    name: str
    function: Callable[..., None]
    over: Grid = field(default_factory=dict)
    uses: tuple[str, ...] | None = None
    optional: bool = False
    needs: tuple[str, ...] | Callable[[Any], Iterable[str]] = ()
    reads: tuple[str, ...] | Callable[[Any], Iterable[str]] = ()
    working_set: Callable[[Any], float] | None = None
    chunk: int | None = None
    dtype: str = "float32"
    tolerance: float = 1e-4
    magnitude: float = 1.0
    timed: tuple[str, ...] = ()
    description: str = ""
    home: str = ""  # the module in which it was registered
    model: type[Params] = Params  # the parameters of the study or part that it was registered with
    part: str = ""  # the name of that part; empty where it is the study itself

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the parameters that the arm may read."""
        return tuple(self.model.model_fields) if self.uses is None else self.uses

    def requirements(self, params: Params) -> tuple[str, ...]:
        needs = self.needs(params) if callable(self.needs) else self.needs
        return (needs,) if isinstance(needs, str) else tuple(needs)

    def data(self, params: Params) -> list[str]:
        """The names of the data sets that it reads."""
        return [need.removeprefix("data:") for need in self.requirements(params) if need.startswith("data:")]

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
    make: Callable[[Measurements[Any]], Any]
    shows: tuple[str, ...] = ()  # the claims that it shows


@dataclass(frozen=True)
class Boundary:
    """What the theory predicts about a claim at any parameters: ``side`` is positive where it should hold. ``arms`` and
    ``point`` are what a map of it runs, where they are named."""

    claim: str
    says: str
    side: Callable[[Any], float]
    arms: tuple[str, ...] = ()
    point: Mapping[str, str] = field(default_factory=dict)


class Registry(Generic[P]):
    """The arms, claims, figures and tables that were registered with a study, or with one of its parts."""

    part = ""

    def __init__(self, params: type[P]) -> None:
        self.model = params
        self.arms: dict[str, Arm] = {}
        self.claims: dict[str, Claim] = {}
        self.phases: dict[str, Claim] = {}  # for maps alone
        self.boundaries: dict[str, Boundary] = {}
        self._figures: dict[str, Exhibit] = {}
        self._tables: dict[str, Exhibit] = {}

    def arm(self, name: str, **options: Any) -> Callable[[F], F]:
        """Register ``function(params, seeds, record, **grid_point)`` as an arm."""
        home = sys._getframe(1).f_globals.get("__name__", "")

        def register(function: F) -> F:
            refuse_second(self.arms, name, "arm")
            description = (function.__doc__ or "").strip().split("\n")[0]
            arm = Arm(name, function, description=description, home=home, model=self.model, part=self.part, **options)
            if arm.chunk is not None and (arm.chunk < 1 or arm.working_set is not None):
                raise ValueError(
                    f"arm {name}: chunk= is a number of seeds from 1 on, and stands instead of working_set="
                )
            if arm.working_set is not None:
                arm = replace(arm, working_set=_sizing(name, arm.working_set))
            for used in arm.uses or ():
                if used not in self.model.model_fields:
                    raise ValueError(
                        f"arm {name} uses the parameter {used}, which is not among those of its study or part"
                    )
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
    ) -> Callable[[Callable[[Measurements[P]], Judgement]], Callable[[Measurements[P]], Judgement]]:
        """Register ``function(measurements) -> Judgement``. ``when`` maps a description of the claim's domain to a
        predicate on the parameters, those of ``setting`` when the claim is about one. ``printed`` carries the source's
        wrong statement where ours corrects it; ``headline`` marks the few claims that tell the study's story."""

        def register(function: Callable[[Measurements[P]], Judgement]) -> Callable[[Measurements[P]], Judgement]:
            refuse_second(self.claims, id, "claim")
            self.claims[id] = Claim(id, statement, source, function, when or {}, setting, printed, paper, headline)
            return function

        return register

    def claims_over(
        self,
        family: Mapping[str, Mapping[str, Any]],
        *,
        statement: str,
        source: str,
        printed: str | None = None,
        **options: Any,
    ) -> Callable[[Callable[..., Judgement]], Callable[..., Judgement]]:
        """Register one claim for each identifier of a family, which differ in a few words and numbers.

        >>> @study.claims_over({"C2a": {"k": 4}, "C2b": {"k": 8}}, statement="With {k} classes ...", source="Table 1")
        ... def error(m, *, k): ...

        The words fill the braces of ``statement``, ``source`` and ``printed``; the function is handed those that it
        names as arguments. The other ``options`` are those of ``claim``; among the words, ``when``, ``setting``,
        ``paper`` and ``headline`` are such options of one member.
        """

        def register(function: Callable[..., Judgement]) -> Callable[..., Judgement]:
            named = set(inspect.signature(function).parameters)
            for id, words in family.items():
                given = {name: value for name, value in words.items() if name in named}
                judge = functools.wraps(function)(functools.partial(function, **given))
                own = options | {name: words[name] for name in _OF_ONE_CLAIM if name in words}
                if printed is not None:
                    own["printed"] = printed.format(**words)
                self.claim(id, statement.format(**words), source=source.format(**words), **own)(judge)
            return function

        return register

    def boundary(
        self, claim: str, *, says: str, arms: Sequence[str] = (), point: Mapping[str, str] | None = None
    ) -> Callable[[F], F]:
        """Register ``function(params) -> float`` as the theory's prediction for a claim or phase: positive where it
        should hold, zero on the boundary. ``says`` is a sentence; ``arms`` and ``point`` are what a map runs.
        ``assay sweep`` draws the boundary and counts the cells that agree."""

        def register(function: F) -> F:
            refuse_second(self.boundaries, claim, "boundary of claim")
            self.boundaries[claim] = Boundary(claim, says, function, tuple(arms), dict(point or {}))
            return function

        return register

    def phase(
        self, id: str, statement: str, *, source: str, setting: str | None = None
    ) -> Callable[[Callable[[Measurements[P]], Judgement]], Callable[[Measurements[P]], Judgement]]:
        """Register ``function(measurements) -> Judgement`` for maps alone: a statement that is true at some parameters
        and false at others, and so no claim about any one run. Its identifier starts with P, for phase."""
        if not id.startswith("P"):
            raise ValueError(f"the identifier of a phase starts with P, and '{id}' does not")

        def register(function: Callable[[Measurements[P]], Judgement]) -> Callable[[Measurements[P]], Judgement]:
            refuse_second(self.phases, id, "phase")
            self.phases[id] = Claim(id, statement, source, function, {}, setting)
            return function

        return register

    def figure(self, name: str, *, caption: str, shows: Sequence[str] = ()) -> Callable[[F], F]:
        """Register ``function(measurements)``, which draws an Altair chart; ``shows`` are the claims seen in it."""
        return self._exhibit(self._figures, name, caption, shows, "figure")

    def table(self, name: str, *, caption: str, shows: Sequence[str] = ()) -> Callable[[F], F]:
        """Register ``function(measurements)``, which makes a Polars frame."""
        return self._exhibit(self._tables, name, caption, shows, "table")

    def _exhibit(
        self, shelf: dict[str, Exhibit], name: str, caption: str, shows: Sequence[str], kind: str
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            refuse_second(shelf, name, kind)
            shelf[name] = Exhibit(name, caption, function, tuple(shows))
            return function

        return register


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


def refuse_second(shelf: Mapping[str, Any], name: str, kind: str) -> None:
    """Refuse a name that the shelf has already."""
    if name in shelf:
        raise ValueError(f"the study already has the {kind} {name}")
