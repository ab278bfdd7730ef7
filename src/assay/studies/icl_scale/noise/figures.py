"""What noise costs: the gap against the noise, and the best rank."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .claims import gap_of


@part.figure(
    "gap-by-noise",
    caption="How much larger the error of a larger rank is than that of the task's own rank, against the variance of "
    "the label noise: networks trained on sampled prompts (points with 95 % intervals) and the exact sum (lines). "
    "Left all directions occur in pretraining, right those of the task alone, where the gap vanishes.",
    shows=("C3a", "C3b", "C8a", "X2a"),
)
def gap_by_noise(m: Measurements[Params]) -> alt.FacetChart:
    least = len(m.params.useful)
    keys = ["spectrum", "noise", "seed"]
    rows = m.rows(["error", "optimum"], arm="noise", task="useful", length=m.params.prompt)
    small = rows.filter(pl.col("rank") == least).select(*keys, "metric", base="value")
    gaps = rows.filter(pl.col("rank") > least).join(small, on=[*keys, "metric"])
    gaps = gaps.with_columns(value=pl.col("value") - pl.col("base"))
    columns = ("spectrum", "rank", "noise")
    trained = charts.summarise(gaps.filter(metric="error"), *columns)
    exact = gaps.filter(metric="optimum").group_by(columns).agg(exact=pl.col("value").mean())
    frame = trained.join(exact, on=columns).with_columns(
        pretraining=pl.col("spectrum").replace_strict({"all": "all directions", "important": "the task's directions"})
    )
    base = alt.Chart(frame, width=280, height=260).encode(
        x=alt.X("noise:Q", title="label noise σ²"),
        color=alt.Color("rank:O", title=f"rank (task: {least})", scale=alt.Scale(scheme="viridis")),
    )
    layers = alt.layer(
        base.mark_line().encode(y=alt.Y("exact:Q", title="error − error of the task's rank")),
        base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_circle(size=45).encode(y="mean:Q"),
    )
    return layers.facet(column=alt.Column("pretraining:N", title="pretraining tokens vary in"))


@part.figure(
    "best-rank",
    caption="The error on a task that uses all directions, against rank: trained networks (points, mean over seeds) "
    "and the closed form (lines), for prompts of several lengths. More noise or fewer examples move the best rank, "
    "circled in red, to the left.",
    shows=("X2b", "X2c", "C2b", "C2c"),
)
def best_rank(m: Measurements[Params]) -> alt.FacetChart:
    where = {"arm": "noise", "spectrum": "all", "task": "curve", "length": list(m.params.lengths)}
    rows = m.rows(["error", "optimum"], **where)
    frame = rows.group_by("length", "noise", "rank", "metric").agg(pl.col("value").mean())
    frame = frame.pivot("metric", index=["length", "noise", "rank"], values="value")
    frame = frame.with_columns(best=pl.col("error") == pl.col("error").min().over("length", "noise"))
    frame = frame.sort("length", "noise", "rank")
    base = alt.Chart(frame, width=210, height=260).encode(
        x=alt.X("rank:O", axis=alt.Axis(labelAngle=0)),
        color=alt.Color("noise:O", title="σ²", scale=alt.Scale(scheme="viridis")),
    )
    axis = alt.Y("optimum:Q", title="mean squared error", scale=alt.Scale(type="log", nice=False))
    rings = base.transform_filter("datum.best").mark_point(size=130, color="crimson", strokeWidth=1.5)
    layers = alt.layer(
        base.mark_line().encode(y=axis),
        base.mark_circle(size=30).encode(y="error:Q"),
        rings.encode(y="error:Q", color=alt.value("crimson")),
    )
    return layers.facet(column=alt.Column("length:O", title="examples M in the prompt"))


@part.table(
    "flipped-linear",
    caption="Share of right signs of the answer of linear attention against the share of flipped labels in its prompt. "
    "The answer is linear in the labels: every rank follows them, and none has a prior to fall back on.",
    shows=("X2d",),
)
def flipped_linear(m: Measurements[Params]) -> pl.DataFrame:
    rows = m.rows("accuracy", arm="sampled-noise")
    shares = sorted(rows["flipped"].unique().to_list())
    return pl.DataFrame(
        [
            {"rank": r}
            | {
                f"{share:.0%} flipped": charts.plus_minus(
                    m.final("accuracy", arm="sampled-noise", flipped=share, rank=r)
                )
                for share in shares
            }
            for r in m.params.ranks
        ]
    )


@part.table(
    "gap",
    caption="The price of a larger rank on the task within the top directions, in trained networks: its rise with the "
    "label noise over the exact sum and over the printed approximation, and what is left of it at the largest noise "
    "when noise and sampling are taken away (long prompts), or the other directions (tokens of the task's alone).",
    shows=("C3b", "C3c", "C8a", "C8b", "X2a"),
)
def gap_table(m: Measurements[Params]) -> pl.DataFrame:
    noise, least = m.params.noises[-1], len(m.params.useful)
    rows = []
    for rank in range(least + 1, m.params.dim + 1):
        rise = (gap_of(m, rank, noise=noise) - gap_of(m, rank, noise=m.params.noises[0])) / (noise - m.params.noises[0])
        whole = gap_of(m, rank, noise=noise).array.mean()
        left = {
            "long prompts": gap_of(m, rank, noise=m.params.noises[0], length=m.params.long_prompt) / whole,
            "task's directions": gap_of(m, rank, noise=noise, spectrum="important") / whole,
        }
        cells = {
            f"rise/{words}": charts.plus_minus(rise / m.final(name, arm="noise", spectrum="all", rank=rank))
            for name, words in (("predicted_slope", "exact"), ("long_pretraining_slope", "printed"))
        }
        rows.append({"rank": rank, **cells, **{f"left: {words}": charts.plus_minus(v) for words, v in left.items()}})
    return pl.DataFrame(rows)


@part.table(
    "sampled-noise",
    caption="The mean squared error of rank-limited linear attention on sampled prompts over its closed form, by rank "
    "and variance σ² of the label noise (mean and half of the 95 % interval over seeds); 1 where the formula is exact.",
    shows=("C2a",),
)
def sampled_noise(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for r in m.params.ranks:
        cells = {}
        for noise in m.params.noises:
            where = {"arm": "sampled-noise", "noise": float(noise), "rank": r}
            cells[f"σ² = {noise:g}"] = charts.plus_minus(m.final("error", **where) / m.final("optimum", **where))
        rows.append({"rank": r, **cells})
    return pl.DataFrame(rows)
