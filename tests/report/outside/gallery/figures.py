import altair as alt
import polars as pl

from .study import study


@study.figure("values", caption="Values <of> each setting.", shows=("C1",))
def values(m):
    return alt.Chart(m.rows("value", arm="drawn")).mark_point().encode(x="setting:N", y="value:Q")


@study.figure("holes", caption="A curve of which nothing is finite.")
def holes(m):
    rows = m.rows("missing", setting="usual", k=1)
    return alt.Chart(rows).mark_line().encode(x="step:Q", y="value:Q").configure_axis(gridColor="red")


@study.figure("large", caption="More rows than Altair takes by default.")
def large(m):
    rows = pl.DataFrame({"x": range(6000), "y": [i / 7 for i in range(6000)]})
    return alt.Chart(rows).mark_line().encode(x="x:Q", y="y:Q")


@study.figure("side-by-side", caption="Wider than a telephone.", shows=("C2",))
def side_by_side(m):
    chart = alt.Chart(m.rows("value", arm="drawn")).mark_point(color="black").encode(x="setting:N", y="value:Q")
    return chart.properties(width=420) | chart.properties(width=420)


@study.figure("absent", caption="The extra arm.")
def absent(m):
    return alt.Chart(m.rows("value", arm="extra")).mark_point().encode(x="seed:N", y="value:Q")


@study.table("methods", caption="Ours and theirs.")
def methods(m):
    rows = m.rows("value", arm="drawn", seed=0).select("setting", "k", "value")
    return rows.with_columns(paper=pl.Series([0.5, None, 0.98, 1.0]), parts=pl.Series([[1, 2]] * 4))


@study.table("long", caption="Too long for a page.")
def long(m):
    return pl.DataFrame({"row": range(500)})


@study.table("nothing", caption="Of an arm that did not run.")
def nothing(m):
    return m.rows("value", arm="extra")
