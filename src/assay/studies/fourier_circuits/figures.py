"""Figures 4.1 to 4.4 and C.1 to C.6 redrawn from our runs, margins over training, the role of λ; tables."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, charts
from assay.probes.attention_fourier import score_spectrum
from assay.probes.fourier import fourier_probe

from . import theory
from .study import GROKKING, HEADS, study
from .transformer_claims import STRONG

_SHOWN = 4  # neurons or heads of a figure
_DOTS, _WAVE = "#c0392b", "#9db8d9"
_BLUE, _RED = "#3366aa", "#c0392b"


def _words(m: Measurements, setting: str) -> str:
    params = m.params_of(setting)
    decay = f", weight decay {params.decay:g}" if setting.endswith("strong") else ""
    return f"k = {params.terms}, p = {params.modulus}{decay}"


@study.figure(
    "neurons",
    caption="Figures 4.1, C.1 and C.3: weights u_1(a) of random live neurons after training (dots), the trigonometric "
    "polynomial through them (line), and beside it the power at every frequency, as a share. Most are one cosine; the "
    "others are smaller neurons that training has not sorted or is switching off.",
)
def neurons(m: Measurements) -> alt.HConcatChart:
    return alt.hconcat(*(_neurons(m, setting) for setting in m.params.networks), spacing=40)


def _neurons(m: Measurements, setting: str) -> alt.VConcatChart:
    import torch

    steps = m.params_of(setting).steps
    where = {"arm": "network", "setting": setting}
    weights, norm = m.array("inputs", **where)[0], m.array("norm", step=steps, **where)[0]
    alive = np.flatnonzero(norm > 0.1 * norm.max())
    chosen = np.random.default_rng(0).choice(alive, min(_SHOWN, len(alive)), replace=False)
    rows = []
    for row, neuron in enumerate(chosen):
        u = weights[:, neuron].astype(float)
        fine = np.linspace(0, len(u) - 1, 8 * len(u))
        wave = pl.DataFrame({"a": fine, "u": theory.trigonometric_interpolation(u, fine)})
        dots = pl.DataFrame({"a": np.arange(len(u)), "u": u})
        share = fourier_probe(torch.from_numpy(u)).normalised.numpy()
        power = pl.DataFrame({"frequency": np.arange(1, len(share) + 1), "power": share})
        last = row == len(chosen) - 1
        line = alt.Chart(wave, width=230, height=70).mark_line(color=_WAVE).encode(x="a:Q", y="u:Q")
        points = alt.Chart(dots).mark_point(filled=True, size=14, color=_DOTS, opacity=1)
        points = points.encode(x=alt.X("a:Q", title="a" if last else None), y=alt.Y("u:Q", title="u"))
        bars = alt.Chart(power, width=130, height=70).mark_bar(color=_BLUE)
        bars = bars.encode(
            x=alt.X("frequency:Q", title="frequency" if last else None),
            y=alt.Y("power:Q", title="power", scale=alt.Scale(domain=[0, 1])),
        )
        rows.append(alt.hconcat(line + points, bars, spacing=8))
    return alt.vconcat(*rows, title=_words(m, setting), spacing=4)


@study.figure(
    "frequencies",
    caption="Figures 4.2, C.2 and C.4, all seeds together. Left: share of each frequency in Σ‖θ_i‖^{k+1} (line: even). "
    "Right: the largest normalised power of every neuron, folded and without the constant, at the start and after "
    "training; neurons whose norm fell below 10 % of the largest are drawn apart.",
)
def frequencies(m: Measurements) -> alt.VConcatChart:
    return alt.vconcat(*(_frequencies(m, setting) for setting in m.params.networks)).resolve_scale(color="shared")


def _frequencies(m: Measurements, setting: str) -> alt.HConcatChart:
    params = m.params_of(setting)
    where = {"arm": "network", "setting": setting}
    norm, power, found = (m.array(name, step=params.steps, **where) for name in ("norm", "power", "frequency"))
    half = (params.modulus - 1) // 2
    weight = norm.astype(float) ** (params.terms + 1)
    share = [float(weight[found == j].sum() / weight.sum()) for j in range(1, half + 1)]
    bars = alt.Chart(pl.DataFrame({"frequency": np.arange(1, half + 1), "share": share}), width=260, height=170)
    bars = bars.mark_bar(color=_BLUE).encode(
        x=alt.X("frequency:O", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("share:Q", title="share of weight"),
    )
    even = alt.Chart(pl.DataFrame({"y": [1 / half]})).mark_rule(strokeDash=[3, 3], color="#555").encode(y="y:Q")
    live = norm > 0.1 * norm.max(1, keepdims=True)
    groups = {
        "at the start": m.array("power", step=0, **where).ravel(),
        "after, live": power[live],
        "after, dead": power[~live],
    }
    edges = np.linspace(0, 1, 41)
    frames = [
        pl.DataFrame(
            {"low": edges[:-1], "high": edges[1:], "share": np.histogram(x, edges)[0] / norm.size, "neurons": name}
        )
        for name, x in groups.items()
    ]
    order = list(groups)
    shades = alt.Color(
        "neurons:N", title=None, sort=order, scale=alt.Scale(domain=order, range=["#999", _RED, "#e8b4ae"])
    )
    hist = alt.Chart(pl.concat(frames), width=300, height=170).mark_bar(opacity=0.75)
    hist = hist.encode(
        x=alt.X("low:Q", bin="binned", title="largest normalised power", scale=alt.Scale(domain=[0, 1])), x2="high:Q",
        y=alt.Y("share:Q", title="share of neurons", stack=None), color=shades,
    )  # fmt: skip
    return alt.hconcat(bars + even, hist, title=_words(m, setting))


@study.figure(
    "heads",
    caption="Figures 4.3, C.5 and C.6: E W^K W^{Qᵀ} Eᵀ of heads of the first layer on the number tokens, "
    "centred (keys up, queries across), and below it the power of its modes. Left: before training. Then heads after "
    "training with strong weight decay (k = 2; at the source's sizes k = 3), the last with the source's.",
)
def heads(m: Measurements) -> alt.HConcatChart:
    arm, strong, weak = "grokking", STRONG, "sum-of-2"
    if "attention" in m.frame["arm"]:
        arm, strong, weak = "attention", "heads-3-strong", "heads-3"
    tables = [("untrained", m.array("untrained heads", arm=arm, setting=strong)[0, 0])]
    trained = m.array("heads", arm=arm, setting=strong)[0]
    tables += [(f"head {i + 1}", trained[i]) for i in range(min(2, len(trained)))]
    tables.append((f"decay {m.params_of(weak).decay:g}", m.array("heads", arm=arm, setting=weak)[0, 0]))
    return alt.hconcat(*(_head(title, table) for title, table in tables)).resolve_scale(color="independent")


def _head(title: str, table: np.ndarray) -> alt.VConcatChart:
    import torch

    spectrum = score_spectrum(torch.from_numpy(table).double())
    image = _image(spectrum.scores.numpy(), "redblue", title, "query", "key", 0)
    power = (spectrum.power / spectrum.power.sum()).numpy()
    modes = _image(power, "greys", "", "query frequency", "key frequency", 1)
    return alt.vconcat(image, modes).resolve_scale(color="independent")


def _image(values: np.ndarray, scheme: str, title: str, x: str, y: str, first: int) -> alt.Chart:
    rows, columns = np.indices(values.shape)
    frame = pl.DataFrame({"x": columns.ravel() + first, "y": rows.ravel() + first, "v": values.ravel().round(5)})
    largest = float(np.abs(values).max())
    domain = [-largest, largest] if scheme == "redblue" else [0, largest]
    axis = alt.Axis(values=[first, len(values) - 1 + first], labelAngle=0, ticks=False)
    return (
        alt.Chart(frame, width=165, height=165, title=title)
        .mark_rect(stroke=None)
        .encode(
            x=alt.X("x:O", title=x, axis=axis),
            y=alt.Y("y:O", title=y, axis=axis, sort="descending"),
            color=alt.Color("v:Q", legend=None, scale=alt.Scale(scheme=scheme, domain=domain)),
        )
    )


@study.figure(
    "grokking",
    caption="Figure 4.4: training (blue) and validation accuracy (red) with 95 % intervals over seeds, on half of all "
    "inputs. Grey spans the mean steps at which they reach 0.99; a run that never does counts with its last step, "
    "which ≥ tells. The last panel has the same p and number of training inputs for both k.",
)
def grokking(m: Measurements) -> alt.VConcatChart:
    panels = [_grokking(m, setting) for setting in GROKKING] + [_equal(m)]
    return alt.vconcat(alt.hconcat(*panels[:3]), alt.hconcat(*panels[3:]))


def _grokking(m: Measurements, setting: str) -> alt.LayerChart:
    rows = m.rows(["train_accuracy", "validation_accuracy"], arm="grokking", setting=setting)
    names = {"train_accuracy": "training", "validation_accuracy": "validation"}
    frame = charts.summarise(rows.with_columns(curve=pl.col("metric").replace_strict(names)), "curve", "step")
    ends = [
        float(m.final(f"{name}_step", arm="grokking", setting=setting).array.mean()) for name in ("train", "validation")
    ]
    span = alt.Chart(pl.DataFrame({"from": [ends[0]], "to": [ends[1]]})).mark_rect(color="#bbb", opacity=0.35)
    title = _words(m, setting) + _delay_words(m, setting)
    lines = charts.band(
        frame, x="step", y="accuracy", colour="curve", domain=(0, 1), width=210, height=150, title=title
    )
    lines = lines.encode(color=alt.Color("curve:N", title=None, scale=alt.Scale(range=[_BLUE, _RED])))
    return alt.layer(span.encode(x="from:Q", x2="to:Q"), lines)


def _delay_words(m: Measurements, setting: str) -> str:
    """The geometric mean of validation over training step, as '×3.1' or '×≥ 3.1'; nothing where training never fits."""
    where = {"arm": "grokking", "setting": setting}
    ratio = m.final("log_ratio", **where).array
    if not np.isfinite(ratio).all():
        return ""
    least = "≥ " if m.final("generalised", **where).array.min() < 1 else ""
    return f": ×{least}{10 ** ratio.mean():.1f}"


def _equal(m: Measurements) -> alt.LayerChart:
    rows = m.rows(["train_accuracy", "validation_accuracy"], arm="equal-counts").with_columns(
        curve=pl.col("metric").replace_strict({"train_accuracy": "training", "validation_accuracy": "validation"}),
        k=pl.col("setting").str.replace("equal-", "k = "),
    )
    frame = charts.summarise(rows, "curve", "k", "step")
    params = m.params_of("equal-3")
    title = f"p = {params.modulus}, {params.train_count} training inputs"
    chart = charts.band(
        frame, x="step", y="accuracy", colour="curve", dash="k", domain=(0, 1), width=210, height=150, title=title
    )
    return chart.encode(color=alt.Color("curve:N", title=None, scale=alt.Scale(range=[_BLUE, _RED])))


_MARGINS = {"margin_ratio": "smallest margin", "mean_margin_ratio": "mean margin", "alignment_ratio": "bound J"}


@study.figure(
    "margins",
    caption="Normalised margins over training as shares of γ*, the largest possible: smallest and mean margin over the "
    "training inputs (at most 4,096) and the closed form J that bounds them on all inputs. Mean and 95 % interval.",
)
def margins(m: Measurements) -> alt.VConcatChart:
    settings = [("full-data", s) for s in ("full-k3", "full-k2", "full-norm")] + [
        ("network", s) for s in m.params.networks
    ]
    panels = [_margins(m, arm, setting) for arm, setting in settings]
    return alt.vconcat(*(alt.hconcat(*panels[i : i + 3]) for i in range(0, len(panels), 3)))


def _margins(m: Measurements, arm: str, setting: str) -> alt.LayerChart:
    rows = m.rows(list(_MARGINS), arm=arm, setting=setting).with_columns(
        curve=pl.col("metric").replace_strict(_MARGINS)
    )
    frame = charts.summarise(rows, "curve", "step")
    title = f"{_words(m, setting)}, {'all' if arm == 'full-data' else 'half of the'} data"
    lines = charts.band(
        frame, x="step", y="share of γ*", colour="curve", domain=(-0.25, 1.05), width=210, height=150, title=title
    )
    return alt.layer(charts.rules({"γ*": 1.0}, width=210), lines)


@study.figure(
    "regularisation",
    caption="All inputs (setting full-k3), penalty λΣ‖θ_i‖^{k+1}. Left: normalised margin of the trained network, per "
    "seed, over γ*; theory has 1 at every λ left of the dashed line, γ*(p−1)/p, and the zero network right of it (at "
    "0). "
    "Right: the objective reached (dots) and its global minimum in closed form (line).",
)
def regularisation(m: Measurements) -> alt.HConcatChart:
    params = m.params_of("full-k3")
    limit = theory.vanishing_penalty(params.modulus, params.terms)
    rows = m.rows(["full_margin_ratio", "objective"], arm="regularisation").select(
        "strength", "seed", "metric", "value"
    )
    rows = rows.with_columns(
        value=pl.when((pl.col("strength") >= limit) & (pl.col("metric") == "full_margin_ratio"))
        .then(0.0)
        .otherwise("value")
    )
    fine = np.geomspace(min(m.params.strengths), max(m.params.strengths), 200)
    best = [theory.regularised_optimum(params.modulus, params.terms, s) for s in fine]
    x = alt.X("strength:Q", title="λ", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=5))
    parts = []
    for metric, title in (("full_margin_ratio", "smallest margin/γ*"), ("objective", "objective")):
        scale = alt.Scale(domain=[0, 1.05]) if metric != "objective" else alt.Scale()
        dots = alt.Chart(rows.filter(metric=metric), width=290, height=210).mark_point(
            filled=True, opacity=0.6, color=_RED
        )
        chart = dots.encode(x=x, y=alt.Y("value:Q", title=title, scale=scale))
        if metric == "objective":
            line = alt.Chart(pl.DataFrame({"strength": fine, "value": best})).mark_line(color="#555")
            chart = line.encode(x=x, y="value:Q") + chart
        rule = alt.Chart(pl.DataFrame({"strength": [limit]})).mark_rule(strokeDash=[4, 3], color="#777").encode(x=x)
        parts.append(rule + chart)
    return alt.hconcat(*parts)


@study.table(
    "sizes",
    caption="The source's sizes: all inputs, the neurons of both constructions, the maximum margin γ* at norm 1, and "
    "the width that the source prints.",
)
def sizes(m: Measurements) -> pl.DataFrame:
    rows = []
    for use, k, p in m.paper.filter(pl.col("k").is_not_null()).select("use", "k", "p").iter_rows():
        rows.append(
            {"use": use, "k": k, "p": p, "inputs": p**k, "2^(2k−2)(p−1)": theory.required_width(p, k),
             "3^k(p−1)/2": theory.required_width(p, k, "thirds"), "γ*": f"{theory.max_margin(p, k):.6e}",
             "paper neurons": m.paper_value(use=use, k=k, p=p, metric="neurons")}
        )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "constructions",
    caption="Constructed networks on all p^k inputs: deviation of the smallest margin from γ* and of the logits from "
    "γ*(1[c = Σa] − 1/p), and the margin ratio without the first frequency; the largest over seeds.",
)
def constructions(m: Measurements) -> pl.DataFrame:
    frame = m.rows(arm="construction").pivot(
        "metric", index=["construction", "p", "k", "neurons", "seed"], values="value", aggregate_function="first"
    )
    return frame.group_by("construction", "p", "k", "neurons", maintain_order=True).agg(
        (pl.col("margin_ratio") - 1).abs().max().alias("|margin/γ* − 1|"),
        pl.col("logit_deviation").max().alias("logits, over γ*"),
        pl.col("dropped_margin").max().round(3).alias("margin/γ* without ζ = 1"),
        pl.col("perturbed_ratio").max().round(4).alias("margin/γ* perturbed by 1 %"),
    )


_COLUMNS = {
    "test_accuracy": "test", "power_median": "median share", "power_weighted": "weighted by norm^(k+1)",
    "power_by_norm": "by norm", "power_mean": "plain mean", "frequencies": "frequencies", "frequency_ratio": "max/min",
    "phase_residual": "|Σθ − θ_w|", "alive": "live", "margin_ratio": "smallest margin",
    "mean_margin_ratio": "mean margin", "alignment_ratio": "J",
}  # fmt: skip


@study.table(
    "networks",
    caption="Trained networks, means and 95 % intervals over seeds: share of one frequency by several averages, "
    "frequencies present, phases, and margins on training inputs and on all inputs as shares of γ*. Last rows: weight "
    "decay in place of the penalty, and shuffled labels.",
)
def networks(m: Measurements) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    every = [("full-data", s) for s in ("full-k3", "full-k2", "full-norm")] + [
        ("network", s) for s in m.params.networks
    ]
    for arm, setting in [*every, ("weight-decay", "k3-decay"), ("shuffled", "full-k2")]:
        where = {"arm": arm, "setting": setting}
        try:
            steps = m.params_of(setting).steps
            found = {name: charts.plus_minus(m.at(metric, steps, **where)) for metric, name in _COLUMNS.items()}
            start = charts.plus_minus(m.at("power_mean", 0, **where))
            least = charts.plus_minus(m.final("full_margin_ratio", **where))
        except NotMeasured:
            continue
        rows.append({"arm": arm, "network": _words(m, setting), "share at the start": start, **found,
                     "smallest margin, all inputs": least})  # fmt: skip
    return pl.DataFrame(rows)


@study.table(
    "transformers",
    caption="Transformers: mean steps to 0.99 (validation: at least, where some seeds never got there), the delay, and "
    "the share of two modes in the median head, untrained, trained, and with the key-query weights of the start under "
    "the trained embeddings. Weight decay as in the source unless said.",
)
def transformers(m: Measurements) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    every = [("grokking", s) for s in GROKKING] + [("equal-counts", s) for s in ("equal-3", "equal-4")]
    for arm, setting in every + [("attention", s) for s in HEADS]:
        where = {"arm": arm, "setting": setting}
        try:
            generalised = m.final("generalised", **where).array
        except NotMeasured:
            continue
        params = m.params_of(setting)
        shares = {
            name: charts.plus_minus(m.final(f"top2_{name}", **where)) for name in ("untrained", "trained", "embedding")
        }
        row = {
            "arm": arm,
            "task": _words(m, setting),
            "training inputs": params.train_count or params.modulus**params.terms // 2,
            "train ≥ .99": float(m.final("train_step", **where).array.mean()),
            "validation ≥ .99": float(m.final("validation_step", **where).array.mean()),
            "generalised": f"{int(generalised.sum())} of {len(generalised)}",
            "log10 ratio": charts.plus_minus(m.final("log_ratio", **where), 2),
            "validation at the end": charts.plus_minus(m.final("validation_accuracy", **where)),
        }
        rows.append(row | shares)
    return pl.DataFrame(rows)
