"""The command line: one front door to studies, verdicts, reports, benchmarks and methods."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from assay._extras import needs
from assay.lab.interrupts import exit_status, termination_interrupts

_EXTRA = ("altair", "filelock", "jinja2", "joblib", "polars", "pydantic", "rich", "scipy", "sklearn", "threadpoolctl")


def main() -> None:
    """Run the command line; bad input gets one sentence and status 2, an interrupt status 130, SIGTERM 143."""
    before = _leave_at_once()
    try:
        _run()
    except KeyboardInterrupt as stop:
        print("assay: stopped", file=sys.stderr)
        sys.exit(exit_status(stop))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (*_EXTRA, "typer"):
            raise
        print(f"assay: {needs('the command line', 'lab')}; there is no module {error.name}", file=sys.stderr)
        sys.exit(2)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _leave_at_once() -> Any:
    """Let Ctrl-C end the process there and then. While modules are imported Python may catch the exception that stands
    for it, print a traceback and go on; there is nothing to put in order yet. Returns the handler from before."""
    if threading.current_thread() is not threading.main_thread():
        return None
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        return None  # ignored, or somebody else's
    signal.signal(signal.SIGINT, _leave)
    return before


def _leave(number: int, frame: object) -> None:
    os.write(2, b"assay: stopped\n")
    os._exit(130)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """For work that puts things in order when it is interrupted: Ctrl-C and SIGTERM are a KeyboardInterrupt inside the
    block."""
    ours = signal.getsignal(signal.SIGINT) is _leave
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with termination_interrupts():
            yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, _leave)


def _run() -> None:
    from assay.cli.app import app
    from assay.lab.errors import UserError

    try:
        status = app(standalone_mode=False)
        if status == 130:  # the parser's answer to an interrupt, which says nothing
            raise KeyboardInterrupt
        sys.exit(status)
    except UserError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        # A usage error of the parser (an unknown option, a number that is none), known by its shape: the parser's
        # own classes moved between releases. Called without arguments, its message is the help text.
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        context = getattr(error, "ctx", None)
        if message.lstrip().startswith("Usage") or not message:
            print(message or (context.get_help() if context else ""), file=sys.stderr)
        else:
            where = f"; see '{context.command_path} --help'" if context else ""
            print(f"assay: {message.rstrip('.')}{where}", file=sys.stderr)
        sys.exit(2)
