"""Validated parameters, presets and named settings of a study."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

import pydantic
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from .errors import UserError, unknown

PRESETS = ("smoke", "laptop", "paper")


class Params(BaseModel):
    """Base of every study's parameters: frozen, no unknown names, every number finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


# The parameters of one study, or of one part. What reads them is given a study whose parameters are these or derived.
P = TypeVar("P", bound=Params, covariant=True, default=Params)


@dataclass(frozen=True, init=False)
class PartPreset:
    """What a preset means for one part of a study: parameter values, given by name.

    ``fewer`` gives a smaller number of seeds to a setting or arm by name; ``settings`` adds values to a named
    setting under this preset; ``arms`` are optional arms that this preset runs as well; ``skip`` leaves arms out.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fewer: Mapping[str, int] = field(default_factory=dict)
    arms: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        fewer: Mapping[str, int] | None = None,
        arms: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        **values: Any,
    ) -> None:
        if none := [name for name, count in (fewer or {}).items() if count < 1]:
            raise ValueError(f"a preset's fewer= leaves '{none[0]}' without any seed; skip= leaves an arm out")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "settings", settings or {})
        object.__setattr__(self, "fewer", fewer or {})
        object.__setattr__(self, "arms", tuple(arms))
        object.__setattr__(self, "skip", tuple(skip))


@dataclass(frozen=True, init=False)
class Preset(PartPreset):
    """A named bundle of parameter values with its number of seeds and stated cost, for a whole study.

    ``fewer`` gives a smaller number of seeds to a setting or arm by name; ``settings`` adds values to a named
    setting under this preset; ``arms`` are optional arms that this preset runs as well; ``skip`` leaves arms out.
    """

    seeds: int = 0
    cost: str = ""

    def __init__(
        self,
        *,
        seeds: int,
        cost: str,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        fewer: Mapping[str, int] | None = None,
        arms: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        **values: Any,
    ) -> None:
        if seeds < 1:
            raise ValueError("a preset needs at least one seed")
        super().__init__(settings=settings, fewer=fewer, arms=arms, skip=skip, **values)
        object.__setattr__(self, "seeds", seeds)
        object.__setattr__(self, "cost", cost)
        _ = self.seconds  # a cost that is no time is refused here, not when a run first asks for it

    @property
    def seconds(self) -> float:
        """The stated cost in seconds: '10 s', '5 min', '2 h'."""
        match = re.match(r"\s*(?:about )?(\d+(?:\.\d+)?)\s*(s|min|h)\b", self.cost)
        if match is None:
            raise ValueError(f"cost '{self.cost}' does not start with a number and s, min or h")
        return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2]]


class ParamsView:
    """The parameters that an arm declared in ``uses``; any other name is refused.

    An arm's stored results are addressed by the parameters it uses, so reading one that it did not declare would
    let a stale result pass for a fresh one.
    """

    def __init__(self, params: Params, uses: tuple[str, ...] | None) -> None:
        self._params = params
        self._uses = frozenset(uses if uses is not None else type(params).model_fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        model = type(self._params)
        if name in model.model_fields:
            if name not in self._uses:
                raise AttributeError(f"the arm reads the parameter '{name}' without naming it in uses=")
            return getattr(self._params, name)
        # Properties and methods read parameters too, and those are held to the same: they see this view.
        code = inspect.getattr_static(model, name, None)
        if isinstance(code, (property, functools.cached_property)):
            getter = code.fget if isinstance(code, property) else code.func
            assert getter is not None
            return getter(self)
        if inspect.isfunction(code) and not hasattr(BaseModel, name):
            return types.MethodType(code, self)
        if hasattr(BaseModel, name):
            raise AttributeError(
                f"an arm is handed the parameters in uses= one by one, and '{name}' is about all of them"
            )
        return getattr(self._params, name)

    def used(self) -> dict[str, Any]:
        """The declared parameters and their values, JSON-ready and in a fixed order."""
        dump = self._params.model_dump(mode="json")
        return {name: dump[name] for name in sorted(self._uses)}


def build(model: type[P], *layers: Mapping[str, Any]) -> P:
    """Validate the union of ``layers``, later ones winning; a bad value becomes one sentence."""
    merged = _merge(layers)
    for name in merged:
        if name not in model.model_fields:
            raise unknown("parameter", name, model.model_fields)
    try:
        return _validated(model, merged)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "parameters"
        message = first["msg"].removeprefix("Value error, ")
        if not first["loc"]:
            raise UserError(f"these parameters do not go together: {message}") from None
        message = message[0].lower() + message[1:]
        raise UserError(f"parameter {name} = {first['input']!r} is not allowed: {message}") from None
    except UserError:
        raise
    except Exception as error:
        # A validator that was not written for such a value, which is no less bad input for that.
        words = " ".join(f"{type(error).__name__}: {error}".split())
        guilty = _culprit(model, layers)
        what = f"parameter {guilty} = {merged[guilty]!r} is" if guilty else "these parameters are"
        raise UserError(f"{what} not allowed: {words}") from error


def _merge(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for layer in layers for name, value in layer.items()}


def _validated(model: type[P], merged: Mapping[str, Any]) -> P:
    return model(**{name: _read(value, model.model_fields[name].annotation) for name, value in merged.items()})


def _culprit(model: type[Params], layers: Sequence[Mapping[str, Any]]) -> str | None:
    """The parameter without whose newest value all is well; None when no single one is to blame."""
    for at in reversed(range(len(layers))):
        for name in layers[at]:
            rest = {other: value for other, value in layers[at].items() if other != name}
            try:
                _validated(model, _merge([*layers[:at], rest, *layers[at + 1 :]]))
            except Exception:
                continue
            return name
    return None


def _read(value: Any, kind: Any) -> Any:
    """A value typed on the command line: 'a,b' or '[a,b]' for a parameter that takes several, 'none' where None is
    allowed."""
    if not isinstance(value, str):
        return value
    if get_origin(kind) in (tuple, list):
        inner = value.strip()
        if (inner[:1], inner[-1:]) in (("[", "]"), ("(", ")")):
            inner = inner[1:-1]
        return [part.strip().strip("'\"") for part in inner.split(",") if part.strip()]
    return None if value.lower() == "none" and type(None) in get_args(kind) else value


def parse_assignments(texts: list[str], option: str) -> dict[str, str]:
    """``["dim=40", "interval.width=20"]`` to a mapping; values are validated later by the parameter's type."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} takes name=value, and '{text}' is not of that form")
        found[name.strip()] = value.strip()
    return found
