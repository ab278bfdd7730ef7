"""Parity accuracy against prompt length and against flipped labels."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

TASKS = {"important": "important task", "alike": "rare tasks alike in the small network's bit"}


@part.figure(
    "parity-accuracy",
    caption="Accuracy of parity networks against the number of examples in the prompt (mean and 95 % interval over "
    "seeds), two important signs. The small network wins on the important task and is at chance on rare tasks that "
    "agree in its bit; four heads that cover all tasks are the worst.",
    shows=("C5a", "C5c", "C5d", "X5a"),
)
def parity_accuracy(m: Measurements[Params]) -> Any:
    rows = m.rows("accuracy", arm="parity", important_bits=1, flipped=0.0)
    frame = charts.summarise(rows, "tasks", "network", "length")
    parts = [
        _curves(frame.filter(tasks=tasks), "length", "examples M in the prompt", title, "log")
        for tasks, title in TASKS.items()
    ]
    return alt.hconcat(*parts).resolve_scale(y="shared")


@part.figure(
    "parity-flips",
    caption="Accuracy of parity networks on the important task against the share of flipped labels, at the prompt "
    "length nearest to 1,024: the networks are even in the labels, so that flipping all of them changes nothing.",
    shows=("X5b", "N2", "C5h"),
)
def parity_flips(m: Measurements[Params]) -> Any:
    length = min(m.params.parity_lengths, key=lambda n: abs(n - 1024))
    rows = m.rows("accuracy", arm="parity", important_bits=1, tasks="important", length=length)
    frame = charts.summarise(rows, "network", "flipped")
    return _curves(frame, "flipped", "share of flipped labels", f"important task, M = {length}", "linear")


def _curves(frame: pl.DataFrame, x: str, label: str, title: str, scale: Any) -> Any:
    values = sorted(frame[x].unique().to_list())
    base = alt.Chart(frame, width=310, height=260, title=title).encode(
        x=alt.X(
            f"{x}:Q", title=label, scale=alt.Scale(type=scale, nice=False, padding=12), axis=alt.Axis(values=values)
        ),
        color=alt.Color("network:N", title=None, sort=["small", "large", "four heads"]),
    )
    extent = alt.Scale(domain=[0.4, 1])
    axis = alt.Y("mean:Q", title="accuracy", scale=extent)
    return alt.layer(
        base.mark_rule(strokeWidth=2, clip=True).encode(y=alt.Y("low:Q", scale=extent), y2="high:Q"),
        base.mark_line(point=True).encode(y=axis, tooltip=["network:N", f"{x}:Q", alt.Tooltip("mean:Q", format=".3f")]),
    )


@part.table(
    "parity-noise",
    caption="What reaches the heads of the small and the large parity network: the energy of the noise times the "
    "prompt length (theory: ν + 1), the mean margin and the deviation of the output.",
    shows=("C5e", "C5f", "C5g"),
)
def parity_noise(m: Measurements[Params]) -> pl.DataFrame:
    names = {"noise_energy": "M·noise energy", "mean_margin": "mean margin", "output_deviation": "deviation"}
    rows: list[dict[str, Any]] = []
    for bits in (1, 2):
        for network in ("small", "large"):
            for length in m.params.parity_lengths:
                where = {"arm": "parity", "important_bits": bits, "network": network, "length": length}
                cells = {words: charts.plus_minus(m.final(name, **where), 2) for name, words in names.items()}
                used = bits if network == "small" else m.params.parity_bits
                rows.append({"k": 2**bits, "network": network, "M": length, "ν + 1": used + 1, **cells})
    return pl.DataFrame(rows)


@part.table(
    "parity-accuracy",
    caption="Accuracy of the small, the large and the four-head parity network on the important task, by the number of "
    "important signs k and of examples M, without and with a fifth of the labels flipped.",
    shows=("C5a", "C5b", "C5h", "X5a"),
)
def parity_table(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for bits in (1, 2):
        for length in m.params.parity_lengths:
            where = {"arm": "parity", "important_bits": bits, "length": length, "tasks": "important"}
            cells = {
                f"{network}{words}": charts.plus_minus(m.final("accuracy", network=network, flipped=flipped, **where))
                for flipped, words in ((0.0, ""), (0.2, ", a fifth flipped"))
                for network in ("small", "large", "four heads")
            }
            rows.append({"k": 2**bits, "M": length, **cells})
    return pl.DataFrame(rows)
