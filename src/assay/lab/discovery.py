"""Finding studies, and loading them as their files are now."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from .code_version import ArmCode, arm_codes, check_arm_places, study_sources
from .errors import UserError, position_of, unknown
from .outline import Outline, fingerprint, judging_mark, remember, remembered
from .places import OUTSIDE, Place, places
from .study import Study

# The rooms of this package that studies are made from: they import each other, so they are loaded anew together.
_SHARED = ("data", "networks", "probes", "training", "methods", "evaluation")


def studies(outside: str | None = None) -> dict[str, Study]:
    """All studies by name, sorted. ``outside`` is a folder with one folder per study."""
    found: dict[str, Study] = {}
    for place in places(outside):
        study = _load(place)
        if study.name in found:
            raise _twice(study.name)
        found[study.name] = study
    return dict(sorted(found.items()))


def find(name: str, outside: str | None = None) -> Study:
    """One study by its name. Others are loaded only when it is not where its name says, so that one which cannot be
    loaded stands in nobody else's way."""
    everywhere = list(places(outside))
    likely = [place for place in everywhere if place.may_hold(name)]
    found = [study for study in map(_load, likely) if study.name == name]
    known, broken = [study.name for study in found], []
    for place in [] if found else everywhere:
        try:
            study = _load(place)
        except UserError as error:
            broken.append(str(error))
        else:
            known.append(study.name)
            found += [study] if study.name == name else []
    if len(found) > 1:
        raise _twice(name)
    if not found:
        raise UserError("; and ".join([str(unknown("study", name, sorted(known))), *broken]))
    return found[0]


def outlines(outside: str | None = None) -> list[Outline]:
    """All studies in outline, by name. One whose files are as they were last time is not imported."""
    found: list[Outline] = []
    for place in places(outside):
        file = place.path()
        mark = fingerprint(file.parent) if file else ""
        known = remembered(mark) if mark else None
        if known is None:
            known = Outline.of(_load(place))
            if mark:
                remember(mark, known)
        if known.name in {other.name for other in found}:
            raise _twice(known.name)
        found.append(known)
    return sorted(found, key=lambda outline: outline.name)


def may_hold(name: str, outside: str | None = None) -> bool:
    """Whether a study of this name is likely to exist; nothing is imported to find out."""
    return any(place.may_hold(name) for place in places(outside))


def check_name(name: str, outside: str | None = None) -> None:
    """Refuse a name that no study has."""
    if not may_hold(name, outside):
        find(name, outside)


def mark_of(name: str, outside: str | None = None) -> str | None:
    """A hash over all that may change a study's verdicts, without loading it; None when it is not clear which files
    are its own."""
    likely = [place for place in places(outside) if place.may_hold(name)]
    file = likely[0].path() if len(likely) == 1 else None
    return judging_mark(likely[0].package, file.parent) if file else None


def _twice(name: str) -> UserError:
    return UserError(f"two studies are called '{name}'; rename one of them")


@dataclass(frozen=True)
class _Loaded:
    """A study in memory, and the contents of the files that it was made from."""

    study: Study
    sources: dict[str, tuple[Path, str]]
    codes: dict[str, ArmCode] = field(default_factory=dict)

    def current(self) -> bool:
        here = set(self._folder().rglob("*.py")) if self._folder().is_dir() else set()
        known = {path for path, _ in self.sources.values()}
        return here <= known and all(_digest(path) == digest for path, digest in self.sources.values())

    def _folder(self) -> Path:
        assert self.study.folder is not None
        return self.study.folder


_LOADING = threading.RLock()
_ATTEMPTS = 5
# What is in memory already, by package. An entry is good for as long as its files are what they were.
_LOADED: dict[str, _Loaded] = {}


def _load(place: Place) -> Study:
    """The study as its files are now: what was loaded before is used again only if no file has changed since, so that a
    process that lives for weeks sees edits."""
    with _LOADING:
        known = _LOADED.get(place.package)
        if known is not None and known.current():
            return known.study
        if known is not None:
            _forget(place, known)
        for _ in range(_ATTEMPTS):
            before = _sources(place)
            try:
                study = _loaded(place)
            except BaseException:
                # What was half loaded would be in the way of a second attempt, whose claims would be registered twice.
                _drop_study(place)
                raise
            sources = _sources(place, study)
            if not before or before == sources:
                _LOADED[place.package] = _Loaded(study, sources)
                return study
            # A file was saved meanwhile: which of its two texts is in memory, nobody can tell.
            _drop_study(place)
        raise UserError(f"{place.title} cannot be loaded: its files change faster than they can be read")


def codes_of(study: Study, arms: Iterable[str]) -> dict[str, ArmCode]:
    """The code of arms, remembered for a study whose files have not changed since it was loaded."""
    wanted = list(arms)
    known = next((each for each in _LOADED.values() if each.study is study), None)
    if known is None or not known.current():
        return arm_codes(study, wanted)
    known.codes.update(arm_codes(study, [arm for arm in wanted if arm not in known.codes]))
    return {arm: known.codes[arm] for arm in wanted}


def _sources(place: Place, study: Study | None = None) -> dict[str, tuple[Path, str]]:
    """The files that a study is made of, each with a hash of its contents; nothing where they cannot be found yet."""
    file = place.path()
    folder = study.folder if study is not None else file.parent if file is not None else None
    found = study_sources(place.package, folder) if folder is not None else {}
    return {module: (path, _digest(path)) for module, path in found.items()}


def _drop_study(place: Place) -> None:
    _drop([name for name in sys.modules if name.startswith(f"{place.package}.")])


def _forget(place: Place, known: _Loaded) -> None:
    """Take a study out of memory. Where code outside its folder has changed, all that may hold on to the old goes too:
    every loaded study, and the whole package or room in which the change is."""
    own = f"{place.package}."
    changed = [module for module, (path, digest) in known.sources.items() if _digest(path) != digest]
    gone = [own]
    if any(not module.startswith(own) for module in changed):
        gone += [f"{package}." for package in _LOADED]
        gone += [f"assay.{room}." for room in _SHARED if any(module.startswith("assay.") for module in changed)]
        gone += [f"{module.partition('.')[0]}." for module in changed if not module.startswith("assay.")]
        _LOADED.clear()
    _LOADED.pop(place.package, None)
    keep = f"{place.package.partition('.')[0]}." if place.package.startswith(OUTSIDE) else ""
    registered = {name for name in sys.modules if keep and f"{name}.".startswith(keep) and _is_registered(name)}
    _drop(name for name in list(sys.modules) if f"{name}.".startswith(tuple(gone)) and name not in registered)


def _is_registered(name: str) -> bool:
    """Whether a package was made by hand for a folder of studies: it has no code that could have changed."""
    module = sys.modules[name]
    return getattr(module, "__spec__", None) is None and hasattr(module, "__path__")


def _drop(modules: Iterable[str]) -> None:
    importlib.invalidate_caches()
    for name in list(modules):
        module = sys.modules.pop(name, None)
        parent, _, last = name.rpartition(".")
        if module is not None and getattr(sys.modules.get(parent), last, None) is module:
            delattr(sys.modules[parent], last)


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()
    except OSError:
        return ""


def _loaded(place: Place) -> Study:
    module = _import(place, "study")
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        raise UserError(f"{module.__file__} does not define a lab.Study called 'study'")
    assert module.__file__ is not None
    study.module, study.folder = module.__name__, Path(module.__file__).parent
    for part in study.parts:
        if not f"{part.package}.".startswith(f"{place.package}."):
            raise UserError(
                f"study '{study.name}': its part '{part.name}' is made in {part.package}, outside its folder"
            )
    for room in _rooms(place, study, "claims"):
        _import(place, room)
    # Drawing needs libraries that take long to load, and most questions need no drawing.
    study.draw_with(lambda: _draw(place, study))
    check_arm_places(study)
    study.check()
    return study


def _rooms(place: Place, study: Study, room: str) -> list[str]:
    """The modules of one kind that a study has, its own before its parts': ``figures``, ``images.figures``."""
    assert study.folder is not None
    parts = [part.package.removeprefix(place.package).lstrip(".") for part in study.parts]
    places = [f"{part}.{room}" if part else room for part in dict.fromkeys(("", *parts))]
    return [name for name in places if (study.folder / f"{name.replace('.', '/')}.py").exists()]


def _draw(place: Place, study: Study) -> None:
    current = _load(place)
    if current is not study:
        # Its files were loaded anew meanwhile: figures would register with the new one, and are taken from there.
        study.draw_like(current)
        return
    rooms = _rooms(place, study, "figures")
    try:
        for room in rooms:
            _import(place, room)
    except BaseException:
        _drop(f"{place.package}.{room}" for room in rooms)  # all are to register again
        raise
    check_arm_places(study)


def _import(place: Place, room: str) -> ModuleType:
    # Compiled files are known by the second in which their source was written: of two edits in one second the first
    # would be run. Studies outside the package are edited while they are tried.
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = before or place.package.startswith(OUTSIDE)
    try:
        return importlib.import_module(f"{place.package}.{room}")
    except Exception as error:
        if isinstance(error, SyntaxError):
            what, where = error.msg, f" ({error.filename}, line {error.lineno})"
        else:
            what, where = " ".join(str(error).split()) or type(error).__name__, position_of(error)
        raise UserError(f"{place.title} cannot be loaded: {what}{where}") from error
    finally:
        sys.dont_write_bytecode = before
