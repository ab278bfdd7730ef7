"""A part of a study: one experiment with parameters, settings, presets and arms of its own, in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .params import PRESETS, P, PartPreset, Preset
from .registry import Registry, refuse_second

if TYPE_CHECKING:
    from .study import Study

T = TypeVar("T")


class Part(Registry[P]):
    """One experiment of a study. It is made in the part's ``arms.py``, and ``study.py`` names it::

        # images/arms.py
        class Params(lab.Params): ...
        part = lab.Part("images", params=Params, presets={"smoke": lab.PartPreset(images="digits")})

        # study.py
        study = lab.Study(..., params=Params, parts=(patches.part, images.part))

    Its ``claims.py`` and ``figures.py`` are found beside the arms and register with the part.
    """

    def __init__(
        self,
        name: str,
        *,
        params: type[P],
        presets: Mapping[str, PartPreset] | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(params)
        self.name = self.part = name
        self.presets = dict(presets or {})
        self.settings = {key: dict(value) for key, value in (settings or {}).items()}
        self.package = str(sys._getframe(1).f_globals.get("__name__", "")).rpartition(".")[0]
        for preset in self.presets:
            if preset not in PRESETS:
                raise ValueError(f"part {name} has a preset {preset}; there are {', '.join(PRESETS)}")

    def join(self, study: Study[Any]) -> None:
        """Hand over what was registered, and register with the study from now on."""
        if not issubclass(study.model, self.model):
            raise ValueError(f"the parameters of study {study.name} do not derive from those of its part {self.name}")
        _check_validators(study)
        _hand_over(self.arms, study.arms, "arm")
        _hand_over(self.claims, study.claims, "claim")
        _hand_over(self.phases, study.phases, "phase")
        _hand_over(self.boundaries, study.boundaries, "boundary of claim")
        _hand_over(self._figures, study._figures, "figure")
        _hand_over(self._tables, study._tables, "table")
        self.arms, self.claims = study.arms, study.claims
        self.phases, self.boundaries = study.phases, study.boundaries
        self._figures, self._tables = study._figures, study._tables


def _hand_over(own: Mapping[str, T], shelf: dict[str, T], kind: str) -> None:
    for name, registered in own.items():
        refuse_second(shelf, name, kind)
        shelf[name] = registered


def _check_validators(study: Study[Any]) -> None:
    """Refuse parts whose validators have one name: of two in different bases pydantic would keep one."""
    seen: dict[str, type[Any]] = {}
    for base in study.model.__mro__:
        decorators = base.__dict__.get("__pydantic_decorators__")
        for kind in ("field_validators", "model_validators", "validators", "root_validators"):
            for name in getattr(decorators, kind, {}):
                if name not in base.__dict__:
                    continue
                other = seen.setdefault(name, base)
                if not issubclass(other, base):
                    raise ValueError(
                        f"study {study.name}: the parameters in {other.__module__} and in {base.__module__} both have "
                        f"a validator {name}, of which one would be lost"
                    )


def merge_presets(presets: Mapping[str, Preset], parts: Sequence[Part[Any]]) -> dict[str, Preset]:
    """The study's presets with what every part adds to them; the study's own values go before its parts'."""
    merged: dict[str, Preset] = {}
    for name, preset in presets.items():
        shares = [part.presets[name] for part in parts if name in part.presets] + [preset]
        settings: dict[str, dict[str, Any]] = {}
        for share in shares:
            for setting, values in share.settings.items():
                settings.setdefault(setting, {}).update(values)
        merged[name] = Preset(
            seeds=preset.seeds,
            cost=preset.cost,
            settings=settings,
            fewer={key: count for share in shares for key, count in share.fewer.items()},
            arms=tuple(arm for share in shares for arm in share.arms),
            skip=tuple(arm for share in shares for arm in share.skip),
            **{key: value for share in shares for key, value in share.values.items()},
        )
    return merged


def merge_settings(settings: Mapping[str, Mapping[str, Any]], parts: Sequence[Part[Any]]) -> dict[str, dict[str, Any]]:
    """The named settings of a study and its parts; parts may share one, each with values for its own parameters."""
    merged: dict[str, dict[str, Any]] = {}
    for share in (*(part.settings for part in parts), settings):
        for name, values in share.items():
            merged.setdefault(name, {}).update(values)
    return merged
