"""Pruning from the constructed state: coefficients over the steps and at the end; and from random weights on."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, Values, charts

from ..claims import power
from ..theory import pair_correlations, printed_rates
from .arms import Params, part
from .claims import LEVEL
from .theory import pruning_horizon

_BLUE = "#3366aa"


@part.figure(
    "pruning",
    caption="From a constructed stage-three state, at the smallest weight decay λ of the run: the rare feature's mean "
    "coefficient (solid) and that of the frequent ones (dashed), above, and the share of the rare feature's neurons "
    "among the pruned, below (a running mean over five looks, since it oscillates).",
    shows=("C5g", "C5h", "C5i", "C5l", "C6a", "C6b", "C6c", "C6e", "C6g", "N5"),
)
def pruning(m: Measurements[Params]) -> alt.VConcatChart:
    decay = m.params.pruned_decays[0]
    order = ["plain", "logit-masked", "straight-through"]
    rows = m.rows(["rare_coefficient", "frequent_coefficient"], arm="pruning", decay=decay).with_columns(
        kind=pl.when(pl.col("metric") == "rare_coefficient").then(pl.lit("rare")).otherwise(pl.lit("frequent"))
    )
    frame = charts.summarise(rows, "epsilon", "gradient", "kind", "step")
    share = charts.summarise(m.rows("pruned_rare_share", arm="pruning", decay=decay), "epsilon", "gradient", "step")
    share = share.sort("epsilon", "gradient", "step").with_columns(
        smooth=pl.col("mean").rolling_mean(5, min_samples=1).over("epsilon", "gradient")
    )
    colour = alt.Color("gradient:N", title=None, sort=order, scale=alt.Scale(domain=order))
    upper, lower = [], []
    for epsilon in m.params.pruned_rare:
        base = alt.Chart(frame.filter(epsilon=epsilon), width=210, height=200, title=f"ε = {epsilon:g}, λ = {decay:g}")
        dash = alt.StrokeDash("kind:N", title=None, sort=["rare", "frequent"], scale=alt.Scale(range=[[1, 0], [4, 3]]))
        y = alt.Y("mean:Q", title="mean coefficient")
        upper.append(base.mark_line().encode(x=alt.X("step:Q", title=None), y=y, color=colour, strokeDash=dash))
        below = alt.Chart(share.filter(epsilon=epsilon), width=210, height=110)
        y = alt.Y("smooth:Q", title="rare among pruned", scale=alt.Scale(domain=[0, 1]))
        lower.append(below.mark_line().encode(x=alt.X("step:Q", title="step"), y=y, color=colour))
    return alt.vconcat(alt.hconcat(*upper).resolve_scale(y="shared"), alt.hconcat(*lower))


@part.table(
    "pruning",
    caption="The constructed state at the end: rare and frequent coefficients and their ratio per frequency, weight "
    "decay and gradient (mean ± 95 % interval). Judge ratios: after equality all coefficients grow under pruning. Own "
    "neurons: those that have the rare feature and no other.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6h", "C6j"),
)
def pruning_table(m: Measurements[Params]) -> pl.DataFrame:
    columns = {
        "rare": "rare_coefficient",
        "frequent": "frequent_coefficient",
        "ratio": "ratio",
        "own neurons": "own_neurons",
    }
    kinds = ("plain", "logit-masked", "straight-through")
    rows = []
    for decay, epsilon, kind in product(m.params.pruned_decays, m.params.pruned_rare, kinds):
        where = dict(arm="pruning", decay=decay, epsilon=epsilon, gradient=kind)
        found = {title: charts.plus_minus(m.final(metric, **where)) for title, metric in columns.items()}
        rows.append({"λ": decay, "ε": epsilon, "gradient": kind, **found})
    return pl.DataFrame(rows)


@part.table(
    "pruning-horizon",
    caption="Steps that pruning takes from the constructed state until the rare coefficient is level with the frequent "
    "ones (90 % of them; λ the smallest of the run), and the horizon that the proof of Theorem 3.2 prints for each "
    "seed's own gap, with constant 1 (mean over seeds with its 95 % interval). Exponent: of ε in the steps, from the "
    "row above to this one; printed −2.",
    shows=("C6f", "C6g"),
)
def pruning_horizon_table(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    seen: list[tuple[float, float]] = []
    for epsilon in m.params.pruned_rare:
        steps, horizon = _steps_to_level(m, epsilon), _horizon(m, epsilon)
        seen.append((epsilon, float(steps.array.mean())))
        exponent = f"{power(*np.array(seen[-2:]).T):.2f}" if len(seen) > 1 else ""
        found = {"steps": charts.measured(steps), "horizon": charts.measured(horizon)}
        ratio = {"steps/horizon": charts.measured(steps / horizon)}
        rows.append({"ε": epsilon, **found, **ratio, "exponent": exponent})
    return pl.DataFrame(rows)


def _steps_to_level(m: Measurements[Params], epsilon: float) -> Values:
    """The first step looked at in which the rare coefficient is level with the frequent ones; NaN where none is."""
    where = dict(arm="pruning", gradient="logit-masked", decay=m.params.pruned_decays[0], epsilon=epsilon)

    def first(curve: pl.DataFrame) -> float:
        reached = curve.filter(pl.col("value") >= LEVEL)["step"]
        return float(reached[0]) if len(reached) else math.nan

    return m.per_seed(m.curve("ratio", **where), first, "steps to equality")


def _horizon(m: Measurements[Params], epsilon: float) -> Values:
    """The steps from each seed's first ratio to a level one at the printed rate."""
    params, problem = m.params, m.params.pruned_problem
    strength = problem.features * float(pair_correlations(problem, 1.0).max())
    rate, _ = printed_rates(epsilon, params.alpha, problem.features, params.rate / params.temperature, strength)
    where = dict(arm="pruning", gradient="logit-masked", decay=params.pruned_decays[0], epsilon=epsilon)
    return m.at("ratio", 0, **where).map(lambda ratio: pruning_horizon(LEVEL / ratio, rate))


@part.figure(
    "pruning-random",
    caption="Pruning from random weights on, where small neurons are nobody's, at each frequency ε of the rare feature "
    "(mean and 95 % interval over seeds). Left: neurons that have the rare feature and no other at the end. Theorem "
    "3.2 ends with m/d or more (dashed); they are kept where the constructed state of stage three has them, but from "
    "random weights fewer come, with pruning as without. Right: what pruning adds to the rare feature's coefficient; "
    "at the smallest ε less than 2 % (dashed).",
    shows=("C6h", "C6i", "N4"),
)
def pruning_random(m: Measurements[Params]) -> alt.HConcatChart:
    chart: alt.HConcatChart = alt.hconcat(_own_neurons(m), _gain(m), spacing=30)
    return chart


def _own_neurons(m: Measurements[Params]) -> alt.LayerChart:
    """Neurons of the rare feature alone at the end, from either start."""
    where = dict(arm="pruning", decay=m.params.pruned_decays[0])
    kinds: dict[str, dict[str, Any]] = {
        "random weights, plain": dict(arm="pruning-random", pruned=False),
        "random weights, pruned": dict(arm="pruning-random", pruned=True),
        "constructed state, plain": where | dict(gradient="plain"),
        "constructed state, pruned": where | dict(gradient="logit-masked"),
    }
    rows = [
        m.rows("own_neurons", **query).select("epsilon", "seed", "value", kind=pl.lit(kind))
        for kind, query in kinds.items()
    ]
    order = list(kinds)
    frame = charts.summarise(pl.concat(rows), "kind", "epsilon")
    base = alt.Chart(frame, width=330, height=220).encode(
        x=alt.X("epsilon:O", title="ε", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("kind:N", sort=order),
        color=alt.Color("kind:N", title=None, sort=order, legend=alt.Legend(orient="top", columns=2)),
    )
    scale = alt.Scale(domain=[0, max(1.2 * m.params.per_feature, *frame["high"])], clamp=True, nice=False)
    y = alt.Y("low:Q", title="neurons of the rare feature alone", scale=scale, axis=alt.Axis(tickMinStep=1))
    bars = base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(y="mean:Q")
    return alt.LayerChart(layer=[charts.rules({"m/d": m.params.per_feature}, width=330), bars, dots])


def _gain(m: Measurements[Params]) -> alt.LayerChart:
    """By how much pruning from random weights on raises the rare coefficient."""
    rows = []
    for epsilon in m.params.pruned_rare:
        pruned, plain = (
            m.final("rare_energy", arm="pruning-random", epsilon=epsilon, pruned=on) for on in (True, False)
        )
        rows += [(epsilon, seed, 100 * (ratio - 1)) for seed, ratio in (pruned / plain).by_seed.items()]
    frame = charts.summarise(pl.DataFrame(rows, schema=["epsilon", "seed", "value"], orient="row"), "epsilon")
    base = alt.Chart(frame, width=200, height=220).encode(x=alt.X("epsilon:O", title="ε", axis=alt.Axis(labelAngle=0)))
    bars = base.mark_rule(strokeWidth=2, color=_BLUE).encode(
        y=alt.Y("low:Q", title="gain of the rare coefficient, %"), y2="high:Q"
    )
    dots = base.mark_point(filled=True, size=60, opacity=1, color=_BLUE).encode(y="mean:Q")
    return alt.LayerChart(layer=[charts.rules({"2 %": 2.0}, width=200), bars, dots])
