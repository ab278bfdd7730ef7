"""The commands, gathered: every module of this package that has a ``register``, in the order that it states, and behind
them those that other packages announce under the entry point ``assay.commands``."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Annotated

import typer
from typer.main import get_command_name

import assay
from assay import cli
from assay.cli.options import say

ENTRY_POINT = "assay.commands"

app = typer.Typer(
    help="Assay: a laboratory for feature learning. Run a study, read its verdicts, look at its report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assay {assay.__version__}")
        raise typer.Exit


@app.callback()
def _front(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


def _groups() -> list[ModuleType]:
    names = [each.name for each in pkgutil.iter_modules(cli.__path__) if each.name not in ("__main__", "app")]
    modules = [importlib.import_module(f"{cli.__name__}.{name}") for name in names]
    return sorted((module for module in modules if hasattr(module, "register")), key=lambda module: module.ORDER)


def add_outside(app: typer.Typer, point: EntryPoint) -> None:
    """The commands of another package, which names a module with a ``register`` or such a function. One that cannot be
    loaded, or that would hide a command, is left out with a sentence: the other commands do not need it."""
    own = typer.Typer()
    try:
        found = point.load()
        getattr(found, "register", found)(own)
        if taken := sorted(_commands(own) & _commands(app)):
            raise ValueError(f"there is a command '{taken[0]}' already")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        say(f"the commands of '{point.name}' ({point.value}) are left out: {reason}")
        return
    app.registered_commands += own.registered_commands
    app.registered_groups += own.registered_groups


def _commands(app: typer.Typer) -> set[str]:
    names = [each.name or get_command_name(each.callback.__name__) for each in app.registered_commands if each.callback]
    return {*names, *(str(each.name) for each in app.registered_groups)}


for group in _groups():
    group.register(app)
for point in sorted(entry_points(group=ENTRY_POINT), key=lambda point: point.name):
    add_outside(app, point)
