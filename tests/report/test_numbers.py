"""Numbers as a reader sees them."""

from __future__ import annotations

import math

import pytest

from assay.report import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-12.5, "−12.5"),
        (0.99312, "0.9931"),
        (123456.7, "123457"),
        (1e-4, "10⁻⁴"),
        (-3.21e-7, "−3.21×10⁻⁷"),
        (4.435e7, "4.44×10⁷"),
        (math.nan, "NaN"),
        (-math.inf, "−∞"),
    ],
)
def test_number(value, text):
    assert numbers.number(value) == text


@pytest.mark.parametrize(
    ("triple", "text"),
    [
        ((1.0, 0.99892, 1.00108), "1.0000  [0.9989, 1.0011]"),
        ((-0.0216, -0.29, 0.247), "−0.02  [−0.29, 0.25]"),
        ((-0.001, -0.29, 0.247), "0.00  [−0.29, 0.25]"),
        ((1.0, 1.0, 1.0), "1  [1, 1]"),
        ((1.0, 1 - 1e-12, 1.0), "1  [1, 1]"),
        ((2e-9, 1e-9, 3e-9), "2×10⁻⁹  [10⁻⁹, 3×10⁻⁹]"),
    ],
)
def test_measured(triple, text):
    assert numbers.measured(*triple) == text


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([1.0, 0.99841, None], ["1.0000", "0.9984", ""]),
        ([0.1, 0.2], ["0.1", "0.2"]),
        ([10.0, 2000.0], ["10", "2000"]),
        ([1e-9, 0.5], ["10⁻⁹", "0.5"]),
        ([0.25, math.nan], ["0.25", "NaN"]),
        ([1, -2], ["1", "−2"]),
        ([True, False], ["yes", "no"]),
        (["a", "b"], ["a", "b"]),
        ([], []),
    ],
)
def test_column(values, cells):
    assert numbers.column(values) == cells


def test_a_printed_number_keeps_its_digits():
    assert numbers.column([0.9, 0.875, 1.0], as_printed=True) == ["0.9", "0.875", "1"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.01, "under 0.1 s"), (3.21, "3.2 s"), (250, "4 min 10 s"), (3900, "1 h 5 min")]
)
def test_duration(seconds, text):
    assert numbers.duration(seconds) == text


def test_names():
    assert numbers.slug("a/b: c") == "a-b-c"
    assert numbers.slug("..") == "unnamed"
    assert numbers.title("test-accuracy_map") == "Test accuracy map"
    assert numbers.date("2025-03-01T12:30:00+02:00") == "1 March 2025, 10:30 UTC"
    assert numbers.value({"a": [1, 0.5], "b": None}) == "a = 1, 0.5, b = "
