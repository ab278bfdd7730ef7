"""The API reference, a page per room made from its ``__all__``: ``python -m assay.report.api docs/api``.

A name's example is the one under it in ``examples/<room>.txt``, else what its docstring shows behind ``>>>``.
Pages are the same on every machine and Python.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOMS = ("lab", "methods", "probes", "training", "networks", "evaluation", "data")
_EXAMPLES = Path(__file__).parent / "examples"
_WIDTH = 100


def pages(guides: Path | None = None) -> dict[str, str]:
    """File name -> text of every page. ``guides`` is the folder of the methods' pages, to link each name to its own."""
    rooms = {room: importlib.import_module(f"assay.{room}") for room in ROOMS}
    index = ["# API reference", "", "Made by `make docs` from what each room exports.", "", "| room | |", "| - | - |"]
    index += [f"| [assay.{room}]({room}.md) | {_text(module).splitlines()[0]} |" for room, module in rooms.items()]
    made = {"index.md": "\n".join(index) + "\n"}
    return made | {f"{room}.md": _page(room, module, _guides(guides)) for room, module in rooms.items()}


class Example(NamedTuple):
    """Lines of a session that show some names, and the package beyond the core that they need."""

    names: tuple[str, ...]
    needs: str
    text: str


def examples(room: str) -> list[Example]:
    """The examples kept for a room. A line ``# Name other (needs package)`` starts one."""
    path = _EXAMPLES / f"{room}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r"^# ([\w ]+?)(?: \(needs (\w+)\))?\n", text, flags=re.M)
    found = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return [Example(tuple(names.split()), needs or "", lines.strip()) for names, needs, lines in found]


def _page(room: str, module: Any, guides: dict[str, str]) -> str:
    names: list[str] = list(module.__all__)
    things = {name: getattr(module, name) for name in names}
    kept = {name: each for each in examples(room) for name in each.names}
    lines = [f"# assay.{room}", "", _text(module), ""]
    lines += ["| name | |", "| --- | --- |"]
    lines += [f"| [`{name}`](#{name.lower()}) | {_first_sentence(things[name])} |" for name in names] + [""]
    for name, thing in things.items():
        lines += _entry(name, thing, "##")
        if name in guides:
            lines += [f"Guide: [{guides[name]}](../methods/{guides[name]}.md).", ""]
        first = kept[name].names[0] if name in kept else name
        if first != name:
            lines += [f"Example: [`{first}`](#{first.lower()}).", ""]
        elif shown := kept[name].text if name in kept else _session(thing):
            lines += ["```pycon", shown, "```", ""]
    if returned := _returned(things):
        lines += ["## What they return", ""]
        for name, thing in sorted(returned.items()):
            lines += _entry(name, thing, "###", thing.__module__)
    page = "\n".join(lines).rstrip() + "\n"
    if found := re.search(r" at 0x[0-9a-f]+", page):
        raise ValueError(f"the page of assay.{room} shows an address of memory, '{found[0].strip()}'")
    return page


def _entry(name: str, thing: Any, level: str, home: str = "") -> list[str]:
    lines = [f"{level} {name}", "", "```text", _call(name, thing), "```", "", _text(thing), ""]
    lines += [f"In `{home}`.", ""] if home else []
    members = list(_members(thing)) if inspect.isclass(thing) else []
    return lines + members + ([""] if members else [])


def _members(kind: type) -> Iterator[str]:
    """Public methods and properties with a docstring, those of the class itself and of its parents in the package."""
    seen: set[str] = set()
    for parent in kind.__mro__:
        if not parent.__module__.startswith("assay."):
            continue
        for name, member in vars(parent).items():
            inside = getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))
            if name.startswith("_") or name in seen or not inspect.isfunction(inspect.unwrap(inside)):
                continue
            seen.add(name)
            read = isinstance(member, (property, cached_property))
            shown = name if read else _call(name, inside, skip=0 if isinstance(member, staticmethod) else 1, wrap=False)
            if said := _text(inside).partition("\n\n")[0].replace("\n", " "):
                yield f"- `.{shown}`: {said}"


def _call(name: str, thing: Any, *, skip: int = 0, wrap: bool = True) -> str:
    """``name(parameters) -> what it returns``, over several lines where one is too long; ``skip`` leaves out self."""
    if inspect.isclass(thing) and not _has_own_init(thing):
        parents = [each.__name__ for each in thing.__bases__ if each is not object]
        return f"class {name}({', '.join(parents)})" if parents else f"class {name}"
    signature = inspect.signature(thing)
    parameters = list(signature.parameters.values())[skip:]
    parts: list[str] = []
    for place, each in enumerate(parameters):
        starred = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        if each.kind is each.KEYWORD_ONLY and not any(
            before.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL) for before in parameters[:place]
        ):
            parts.append("*")
        annotation = "" if each.annotation is each.empty else f": {_annotation(each.annotation)}"
        sign = " = " if annotation else "="
        default = "" if each.default is each.empty else f"{sign}{_default(each.default)}"
        parts.append(f"{starred}{each.name}{annotation}{default}")
        if each.kind is each.POSITIONAL_ONLY and all(
            after.kind is not each.POSITIONAL_ONLY for after in parameters[place + 1 :]
        ):
            parts.append("/")
    is_class = inspect.isclass(thing) or signature.return_annotation is inspect.Signature.empty
    end = "" if is_class else f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){end}"
    return line if len(line) <= _WIDTH or not wrap else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){end}"


def _has_own_init(kind: type) -> bool:
    """Whether the package wrote how the class is made; what a library derives differs between its releases."""
    home = next(each for each in kind.__mro__ if "__init__" in vars(each))
    return home.__module__.startswith("assay.") and "__pydantic_fields__" not in vars(kind)


def _annotation(given: Any) -> str:
    return given.strip("'\"") if isinstance(given, str) else inspect.formatannotation(given)


def _default(value: Any) -> str:
    if isinstance(value, Path):
        return f"Path({value.as_posix()!r})"
    return getattr(value, "__name__", None) or repr(value)


def _text(thing: Any) -> str:
    """The docstring as Markdown, without its session; a dataclass without one is given its signature by Python."""
    doc = inspect.cleandoc(thing.__doc__ or "")
    if inspect.isclass(thing) and doc.startswith(f"{thing.__name__}("):
        return ""
    doc = re.sub(r"^>>> .*?(?=\n\n|\Z)", "", doc, flags=re.M | re.S).strip()
    return re.sub(r":\w+:(`[^`]+`)", r"\1", doc.replace("``", "`"))


def _first_sentence(thing: Any) -> str:
    line = _text(thing).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.?!]) (?=[A-Z`])", line)[0].replace("|", "\\|")


def _session(thing: Any) -> str:
    found = re.search(r"^>>> .*?(?=\n\n|\Z)", inspect.cleandoc(thing.__doc__ or ""), re.M | re.S)
    return found[0].strip() if found else ""


def _returned(things: dict[str, Any]) -> dict[str, type]:
    """Classes of the package that the room's names return and it does not export: people meet them all the same."""
    found: dict[str, type] = {}
    waiting = list(things.values())
    while waiting:
        thing = waiting.pop()
        words = " ".join(_hints(thing))
        module = vars(sys.modules[thing.__module__])
        for word in re.findall(r"\b[A-Z]\w+", words):
            kind = module.get(word)
            if not inspect.isclass(kind) or not kind.__module__.startswith("assay.") or kind in things.values():
                continue
            if word not in found and _text(kind):
                found[word] = kind
                waiting.append(kind)
    return found


def _hints(thing: Any) -> Iterator[str]:
    """What a function returns, or what the methods of a class do, and the types of its fields."""
    if not inspect.isclass(thing):
        yield str(getattr(inspect.unwrap(thing), "__annotations__", {}).get("return", ""))
        return
    yield from (str(hint) for name, hint in inspect.get_annotations(thing).items() if not name.startswith("_"))
    for name, member in vars(thing).items():
        inside = getattr(member, "__func__", getattr(member, "fget", member))
        if not name.startswith("_") and inspect.isfunction(inspect.unwrap(inside)):
            yield str(inspect.unwrap(inside).__annotations__.get("return", ""))


def _guides(folder: Path | None) -> dict[str, str]:
    """Name -> the page of the methods whose snippet imports it."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")) if folder and folder.is_dir() else []:
        imported = re.findall(
            r"^from assay\.(?:methods|probes|evaluation)[\w.]* import (\([^)]*\)|.*)$", path.read_text(), re.M
        )
        found |= {name: path.stem for name in re.findall(r"\w+", " ".join(imported)) if name not in found}
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(folder.parent / "methods")
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
