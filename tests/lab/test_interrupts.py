"""Signals that come at a bad moment."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from assay.lab.interrupts import interrupts_stay, interrupts_wait

#: An interrupt at the first call of numpy's own Python code, which Polars makes to find its arrays.
FIRST_ARRAY = """
import signal, sys
import polars as pl
from assay.lab.interrupts import arrays_ready

def interrupt(frame, event, argument):
    if "numpy" in frame.f_code.co_filename:
        sys.settrace(None)
        signal.raise_signal(signal.SIGINT)

sys.settrace(interrupt)
try:
    {call}
    print("nothing came")
except BaseException as error:
    print(type(error).__name__)
"""


def answer(call):
    words = [sys.executable, "-c", FIRST_ARRAY.format(call=call)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120).stdout.strip()


def test_an_interrupt_while_polars_finds_numpy_is_an_interrupt():
    if answer("pl.Series([0.0]).to_numpy()") != "PanicException":
        pytest.skip("this release of Polars does not panic")
    assert answer("arrays_ready()") == "KeyboardInterrupt"


@pytest.fixture
def pythons_own_handler():
    """An interrupt is a KeyboardInterrupt, whatever another test of this process imported."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own_handler")
def test_an_interrupt_that_waited_comes_at_the_end():
    seen = []

    def work():
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            seen.append("inside")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["inside"]


def test_a_handler_that_is_not_pythons_is_left_alone(monkeypatch):
    set_to = []
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda *asked: set_to.append(asked))
    with interrupts_wait():
        pass
    assert set_to == []


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_package_that_takes_interrupts_over_does_not_keep_them():
    with interrupts_stay():
        signal.signal(signal.SIGINT, lambda *_: sys.exit())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_sending_jobs_to_slurm_leaves_an_interrupt_an_interrupt():
    pytest.importorskip("dask", reason="dask is not installed: it is in the extra cluster")
    script = (
        "import contextlib, os, signal\n"
        "from assay.lab import clusters\n"
        "with contextlib.suppress(Exception):\n"  # there is no Slurm here
        "    clusters._slurm(1, 'cpu')\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)\n"
        "os._exit(0)\n"  # without waiting for the scheduler's end
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert answer.stdout.split()[-1:] == ["True"], answer.stderr


#: An interrupt when torch has been loaded as far as its layers; its optimizers come later.
AMID_TORCH = """
import signal, sys
from assay.lab.interrupts import torch_ready

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "torch.nn":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
try:
    {call}
except KeyboardInterrupt:
    print("whole" if "torch.optim" in sys.modules else "in pieces")
"""


@pytest.mark.parametrize(("call", "said"), [("torch_ready()", "whole"), ("import torch", "in pieces")])
def test_an_interrupt_waits_until_torch_is_loaded(call, said):
    """Here it comes in Python's own code, and leaves torch in pieces; in C++ it would end the process."""
    command = [sys.executable, "-c", AMID_TORCH.format(call=call)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.stdout.strip() == said, found.stderr
