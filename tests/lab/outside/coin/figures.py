import altair as alt

from .study import study


@study.figure("share", caption="Share of heads per seed.")
def share(m):
    return alt.Chart(m.rows("share")).mark_point().encode(x="setting:N", y="value:Q")


@study.table("share", caption="Share of heads.")
def table(m):
    return m.rows("share").select("setting", "seed", "value")
