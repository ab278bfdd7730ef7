"""Charts as files: small, and with every word as the chart has it."""

from __future__ import annotations

import re

import altair as alt
import polars as pl

from assay.report import charts, theme


def drawn():
    frame = pl.DataFrame({"d": [50, 100, 800], "share": [0.0112, 0.0048, 0.0007], "p": ["p = 0.003"] * 3})
    y = alt.Y("share:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=[0.001, 0.002, 0.005, 0.01]))
    return charts.drawing(theme.spec(alt.Chart(frame).mark_line().encode(x="d:Q", y=y, color="p:N")))


def test_small_numbers_keep_their_decimals_in_words_and_lose_them_in_coordinates():
    svg = drawn()
    words = re.findall(r">([^<>]+)<", svg)
    assert {"0.001", "0.002", "0.005", "p = 0.003"} <= set(words)
    assert re.search(r"\d\.\d{3,}", re.sub(r">[^<>]+<", "><", svg)) is None


def test_slim_rounds_and_never_carries_over():
    assert charts.slim('<path d="M1.23456,0.9996L-3.995001,2.5"/>') == '<path d="M1.23,0.99L-3.99,2.5"/>'
    assert charts.slim("<text>0.12345</text>") == "<text>0.12345</text>"
