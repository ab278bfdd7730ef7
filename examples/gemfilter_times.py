"""What `assay bench gemfilter --save` measured, as a picture: the time to read a prompt, and the memory it takes.

Full attention, SnapKV and GemFilter at the shape of LLaMA 3.1 8B on one GPU, from the summary in results/.

Run: python examples/gemfilter_times.py [FIGURE.svg]
"""

import json
import sys
from pathlib import Path

import altair as alt
import polars as pl

NAMES = {"full": "full attention", "snapkv": "SnapKV", "gemfilter": "GemFilter"}
summary = json.loads((Path(__file__).parents[1] / "results/bench.gemfilter.cuda.json").read_text())
found = pl.DataFrame(
    {"tokens": row["tokens"], "method": name, "seconds": row[f"{key} prefill s"], "GiB": row[f"{key} GiB"]}
    for row in summary["rows"]
    for key, name in NAMES.items()
)


def panel(column, title):
    tokens = alt.X("tokens:Q", title="tokens of the prompt", axis=alt.Axis(format=",d", tickCount=4))
    colour = alt.Color("method:N", sort=list(NAMES.values()), title=None)
    lines = alt.Chart(found).mark_line(point=True)
    return lines.encode(x=tokens, y=alt.Y(f"{column}:Q", title=title), color=colour).properties(width=260, height=160)


print(f"{summary['machine']}, layer {summary['layer']} of {summary['layers']}, {summary['keep']} tokens kept")
print(found.pivot("method", index="tokens", values="seconds"))
if len(sys.argv) > 1:
    (panel("seconds", "seconds to read it") | panel("GiB", "GiB at the peak")).save(sys.argv[1])
