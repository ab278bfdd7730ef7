"""What the source prints of DomainBed, kept as data: no run here has these images."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements

from .study import Params, study

SETS = ("VLCS", "PACS", "OfficeHome", "TerraInc", "DomainNet")
PAIRS = {"ERM": "ERM-NU", "Mixup": "Mixup-NU", "SWAD": "SWAD-NU"}
BY_DOMAIN = ("Table E.1", "Table E.2", "Table E.3", "Table E.4", "Table E.5")


def _gains(m: Measurements[Params]) -> pl.DataFrame:
    """The printed accuracy with the nuclear norm minus that without it, by data set and domain. The error is that of
    a difference of two independent means."""
    frame = m.paper.filter(pl.col("where").is_in(BY_DOMAIN)).select(
        "data", "method", "domain", "value", pl.col("error").cast(pl.Float64, strict=False)
    )
    parts = []
    for base, other in PAIRS.items():
        with_it, without = (frame.filter(pl.col("method") == name).drop("method") for name in (other, base))
        both = with_it.join(without, on=["data", "domain"], suffix="_base")
        parts.append(
            both.select(
                "data",
                "domain",
                method=pl.lit(other),
                gain=pl.col("value") - pl.col("value_base"),
                error=(pl.col("error") ** 2 + pl.col("error_base") ** 2).sqrt(),
            )
        )
    return pl.concat(parts)


@study.figure(
    "domainbed-gains",
    caption="The source's numbers, not measured here: accuracy on DomainBed with the nuclear norm minus without it, in "
    "percent, for every domain left out (points, with the standard error of the difference) and on average (bars). All "
    "averages rise; of the domains 4 of 22 fall with ERM, 6 with Mixup and 1 with SWAD.",
)
def domainbed_gains(m: Measurements[Params]) -> Any:
    gains = _gains(m)
    colour = alt.Color("method:N", title=None, sort=list(PAIRS.values()))
    offset = alt.XOffset("method:N", sort=list(PAIRS.values()))
    place = alt.X("data:N", title=None, sort=list(SETS), axis=alt.Axis(labelAngle=0))
    averages = alt.Chart(gains.filter(pl.col("domain") == "average"), width=520, height=260).mark_bar(opacity=0.45)
    domains = gains.filter(pl.col("domain") != "average").with_columns(
        low=pl.col("gain") - pl.col("error"), high=pl.col("gain") + pl.col("error")
    )
    points = alt.Chart(domains).mark_point(filled=True, size=35)
    bars = alt.Chart(domains).mark_rule(opacity=0.5)
    height = alt.Y("gain:Q", title="gain in accuracy, percent")
    return alt.layer(
        averages.encode(x=place, y=height, color=colour, xOffset=offset),
        bars.encode(x=place, y="low:Q", y2="high:Q", color=colour, xOffset=offset),
        points.encode(x=place, y=height, color=colour, xOffset=offset, tooltip=["data", "domain", "method", "gain"]),
    )


@study.table(
    "domainbed",
    caption="Table 6.1 as printed: accuracy on DomainBed, in percent, by data set. Rows of other methods are quoted "
    "there from other papers with other tuning budgets.",
)
def domainbed(m: Measurements[Params]) -> pl.DataFrame:
    frame = m.paper.filter(pl.col("where") == "Table 6.1").select("method", "data", "value")
    return frame.pivot(on="data", index="method").sort("average")


@study.table(
    "domainbed-domains",
    caption="Tables E.1 to E.5 as printed: accuracy of ERM, Mixup and SWAD with and without the nuclear norm on every "
    "domain left out, and the gain in percent. Falls are part of the table.",
)
def domainbed_domains(m: Measurements[Params]) -> pl.DataFrame:
    wide = _gains(m).with_columns(pl.col("gain").round(1)).select("data", "domain", "method", "gain")
    return wide.pivot(on="method", index=["data", "domain"])


@study.table(
    "domainbed-swad",
    caption="Regularisers on top of SWAD as printed: the main text's average over three data sets (Table 6.3), where "
    "the nuclear norm leads, and over all five (Table E.6), where MIRO does.",
)
def domainbed_swad(m: Measurements[Params]) -> pl.DataFrame:
    three = m.paper.filter(pl.col("where") == "Table 6.3").select("method", pl.col("value").alias("three data sets"))
    five = m.paper.filter((pl.col("where") == "Table E.6") & (pl.col("data") == "average"))
    return three.join(five.select("method", pl.col("value").alias("all five")), on="method")
