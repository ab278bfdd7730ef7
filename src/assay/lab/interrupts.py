"""Being told to stop: Ctrl-C, and the signal by which Slurm, systemd and `kill` ask a process to end."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM: it stops as after an interrupt."""


def exit_status(stop: KeyboardInterrupt) -> int:
    """What a shell expects of a process that a signal ended: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


@contextlib.contextmanager
def termination_interrupts() -> Iterator[None]:
    """Inside the block SIGTERM is an interrupt, so that workers are stopped and what is finished is kept. Somebody
    else's handler stays, and so does a signal that is ignored."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def raise_terminated(number: int, frame: object) -> None:
    raise Terminated


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Hold Ctrl-C back inside the block, and SIGTERM where it is an interrupt, and let them through at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Where SIGTERM is not heard here, nobody would take down a worker that is deaf to it.
    held = [each for each in (signal.SIGINT, signal.SIGTERM) if each == signal.SIGINT or _heard(each)]
    waiting: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    # A signal that this thread blocks goes to any other that does not, and Python hands it to the main thread.
    # One that was set outside Python could not be set again.
    ours = [each for each in held if main and signal.getsignal(each) is not None]
    handlers = {each: signal.signal(each, lambda number, frame: waiting.append(number)) for each in ours}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for each, handler in handlers.items():
            signal.signal(each, handler)
    if waiting:
        signal.raise_signal(waiting[0])


@contextlib.contextmanager
def workers_start() -> Iterator[None]:
    """As ``interrupts_wait``, and a process that is started inside never gets the signals: who started it takes it
    down, and it prints no traceback of its own."""
    _start_trackers()
    with interrupts_wait():
        yield


def arrays_ready() -> None:
    """Let Polars find numpy's arrays now. It does so at the first array it meets, and an interrupt in the midst of that
    is no KeyboardInterrupt but a panic in Rust."""
    import polars as pl

    with interrupts_wait():
        pl.Series([0.0]).to_numpy()


@contextlib.contextmanager
def interrupts_stay() -> Iterator[None]:
    """Whatever happens inside the block, Ctrl-C means afterwards what it meant before: some packages take it over when
    they are imported."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _heard(number: int) -> bool:
    return callable(signal.getsignal(number))


def _start_trackers() -> None:
    """Start the processes that keep track of shared memory for Python and for loky. One that starts by itself, among
    the first workers, lets interrupts through again for those that follow."""
    with contextlib.suppress(Exception):
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as lokys

        resource_tracker.ensure_running()
        lokys.ensure_running()


def torch_ready() -> None:
    """Let torch be loaded now, where a study has not done so. An interrupt in the midst of that is no KeyboardInterrupt
    but ends the process from C++."""
    if "torch.nn" not in sys.modules:
        with interrupts_wait():
            import torch  # noqa: F401
