import altair as alt

from .study import study


@study.figure("heights", caption="Heights of the points.", shows=("C1", "C2"))
def heights(m):
    return alt.Chart(m.rows("height", arm="walk")).mark_line().encode(x="step:Q", y="mean(value):Q")
