"""Tables of the source's sizes and of the constructed networks."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements
from assay.methods.modular_margin import max_margin, required_width

from .arms import Params, part
from .theory import circle


@part.table(
    "sizes",
    caption="The source's sizes: all inputs, the neurons of the three constructions, the maximum margin γ* at norm 1, "
    "and the width that the source prints.",
    shows=("C1a", "C3c", "C3g"),
)
def sizes(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for use, k, p in m.paper.filter(pl.col("k").is_not_null()).select("use", "k", "p").iter_rows():
        row = {
            "use": use,
            "k": k,
            "p": p,
            "inputs": p**k,
            "2^(2k−2)(p−1)": required_width(p, k),
            "3^k(p−1)/2": required_width(p, k, "thirds"),
            "3^(k−1)(p−1)": circle(k)[1] * (p - 1) // 2,
            "γ*": f"{max_margin(p, k):.6e}",
            "paper neurons": m.paper_value(use=use, k=k, p=p, metric="neurons"),
        }
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "constructions",
    caption="Constructed networks on all p^k inputs: deviation of the smallest margin from γ* and of the logits from "
    "γ*(1[c = Σa] − 1/p), spread of its frequencies (f̂(j, ..., j, −j) from γ*p^k); the margin ratio without the first "
    "frequency, and how far the mean margin J is then from its bound; the margin ratio with weights perturbed by 1 % "
    "and with the outputs read backwards (c for −c). The largest over seeds.",
    shows=("C1a", "C1b", "C3c", "C3d", "C3e", "C3g", "N2", "N3"),
)
def constructions(m: Measurements[Params]) -> pl.DataFrame:
    frame = m.rows(arm="construction").pivot(
        "metric", index=["construction", "p", "k", "neurons", "seed"], values="value", aggregate_function="first"
    )
    return frame.group_by("construction", "p", "k", "neurons", maintain_order=True).agg(
        (pl.col("margin_ratio") - 1).abs().max().alias("|margin/γ* − 1|"),
        pl.col("logit_deviation").max().alias("logits, over γ*"),
        pl.col("diagonal_deviation").max().alias("|f̂/(γ*p^k) − 1|"),
        pl.col("dropped_margin").max().round(3).alias("margin/γ* without ζ = 1"),
        (pl.col("dropped_alignment") - 1).abs().max().alias("|J/bound − 1| without ζ = 1"),
        pl.col("perturbed_ratio").max().round(4).alias("margin/γ* perturbed by 1 %"),
        pl.col("reversed_ratio").max().round(4).alias("margin/γ* backwards"),
    )
