"""How long prompts of up to a million tokens take to read: with full attention, by a filter layer, and in chunks.

The shape of LLaMA 3.1 8B on one GPU, from the summaries in results/: `assay bench gemfilter_chunks --save` from 122,880
tokens on, and `assay bench gemfilter --save`, another run on the same kind of GPU, below. Both axes are logarithmic: a
line of slope 1 is time linear in the length.

Run: python examples/gemfilter_chunk_times.py [FIGURE.svg]
"""

import json
import sys
from pathlib import Path

import altair as alt
import polars as pl

RESULTS = Path(__file__).parents[1] / "results"
long, short = (
    json.loads((RESULTS / f"bench.{name}.cuda.json").read_text()) for name in ("gemfilter_chunks", "gemfilter")
)
FULL, WHOLE, CHUNKS = "full attention", "GemFilter, whole prompt", f"GemFilter, chunks of {long['chunk']:,}"
LONG = {FULL: "full s", WHOLE: "whole s", CHUNKS: "chunks s"}
SHORT = {FULL: "full prefill s", WHOLE: "gemfilter prefill s"}

rows = [(row, LONG) for row in long["rows"]]
rows += [(row, SHORT) for row in short["rows"] if row["tokens"] < rows[0][0]["tokens"]]
found = pl.DataFrame(
    {"tokens": row["tokens"], "method": name, "seconds": row[key]}
    for row, keys in rows
    for name, key in keys.items()
    if row[key] is not None
).sort("tokens")

ticks = found["tokens"].unique().sort().to_list()
tokens = alt.X("tokens:Q", title="tokens of the prompt").scale(type="log", base=2, domain=[ticks[0], ticks[-1]])
seconds = alt.Y("seconds:Q", title="seconds to read it").scale(type="log", domain=[0.2, 50])
figure = alt.Chart(found, width=420, height=240).mark_line(point=True)
figure = figure.encode(
    x=tokens.axis(values=ticks, format=",d", labelAngle=-30),
    y=seconds.axis(values=[0.2, 0.5, 1, 2, 5, 10, 20, 50]),
    color=alt.Color("method:N", sort=list(LONG), title=None),
)

print(f"{long['machine']}, layer {long['layer']} of {long['layers']}, {long['keep']} tokens kept")
print(found.pivot("method", index="tokens", values="seconds"))
if len(sys.argv) > 1:
    figure.save(sys.argv[1])
