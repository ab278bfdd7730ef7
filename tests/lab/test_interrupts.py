"""Signals that come at a bad moment."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from assay.lab.interrupts import interrupts_wait

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
