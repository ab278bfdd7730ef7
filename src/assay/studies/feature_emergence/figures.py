"""The figures of the source, redrawn from the measurements, and the tables beside its numbers."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl
import torch

from assay.lab import Measurements, NotMeasured, charts

from . import theory
from .setup import problem_of
from .study import SETTINGS, study

_COMPARED = {"network": "network", "ntk": "NTK", "random-features": "random features"}
_INPUTS = {"structured": "structured inputs", "uniform": "no structure"}


@study.figure(
    "accuracy",
    caption="Test accuracy over training with structured inputs and without (mean and 95 % interval over seeds). "
    "What to look for: on parity the network should reach 100 % and the fixed-feature arms stay near two reference "
    "lines, the best threshold on the count of relevant patterns and a predictor that solves the structured half "
    "alone; without structure nothing should be learned. On interval labels the NTK should catch up.",
)
def accuracy(m: Measurements) -> alt.HConcatChart:
    rows = m.rows("test_accuracy", arm=list(_COMPARED), setting=["parity", "interval"], inputs=list(_INPUTS))
    shown = rows.with_columns(
        compared=pl.col("arm").replace_strict(_COMPARED), structure=pl.col("inputs").replace_strict(_INPUTS)
    )
    frame = charts.summarise(shown, "setting", "compared", "structure", "step")
    parts = []
    for setting, reference in (("parity", _references(m)), ("interval", {})):
        chart: Any = charts.band(
            frame.filter(setting=setting),
            x="step",
            y="test accuracy",
            colour="compared",
            dash="structure",
            domain=(0.4, 1.02),
            title=f"{setting} labels",
        )
        parts.append(chart + charts.rules(reference) if reference else chart)
    return alt.hconcat(*parts)


def _references(m: Measurements) -> dict[str, float]:
    problem = problem_of(m.params_of("parity"))
    labels = problem.labels_of(torch.arange(problem.relevant + 1))
    return {
        "best count threshold": theory.count_threshold_accuracy(problem.count_law, labels),
        "structured half only": theory.structured_part_accuracy(problem.background),
    }


_STAR = "M0,-1L0.25,-0.3L1,-0.3L0.4,0.15L0.6,0.9L0,0.45L-0.6,0.9L-0.4,0.15L-1,-0.3L-0.25,-0.3Z"


def _map_frame(m: Measurements, step: int) -> pl.DataFrame:
    points = m.array("map", step=step, arm="emergence", setting="parity", inputs="structured")[0]
    kinds = ["neuron"] * (len(points) - 2) + ["truth"] * 2
    return pl.DataFrame({"x": points[:, 0], "y": points[:, 1], "kind": kinds, "step": [step] * len(points)})


def _map_chart(frame: pl.DataFrame, size: int, title: str = "", only: str | None = None) -> Any:
    """Neurons as dots over the two stars of the truth."""
    scale = alt.Scale(domain=[-1.15, 1.15])
    base = alt.Chart(frame, width=size, height=size, title=title).encode(
        x=alt.X("x:Q", scale=scale, title=None), y=alt.Y("y:Q", scale=scale, title=None)
    )
    base = base.transform_filter(only) if only else base
    stars = base.transform_filter("datum.kind == 'truth'").mark_point(
        shape=_STAR, size=500, filled=True, color="#e0a030", opacity=0.9
    )
    return alt.layer(stars, base.transform_filter("datum.kind == 'neuron'").mark_circle(size=28, opacity=0.55))


@study.figure(
    "neurons",
    caption="Where the neurons point (one plane for all steps: classical multidimensional scaling of 2 − 2 cos, seed "
    "0). Move the slider: at initialisation they point everywhere; after one step, and tighter after two, they sit on "
    "the stars, ± the sum of the relevant patterns.",
)
def neurons(m: Measurements) -> Any:
    slider = alt.param("shown", value=0, bind=alt.binding_range(min=0, max=2, step=1, name="step "))
    frame = pl.concat([_map_frame(m, step) for step in range(3)])
    return _map_chart(frame, 380, only="datum.step == shown").add_params(slider)


@study.figure(
    "neurons-by-step",
    caption="The same map at initialisation, after one and after two steps, side by side.",
)
def neurons_by_step(m: Measurements) -> alt.HConcatChart:
    titles = ("initialisation", "after one step", "after two steps")
    return alt.hconcat(*(_map_chart(_map_frame(m, step), 220, title) for step, title in enumerate(titles)))


@study.figure(
    "components",
    caption="The gradient's component on relevant patterns for every neuron of seed 0, against the prediction βγ/σ̃ "
    "(line). Step one: β is the chance that the background leaves the gate open; step two: only the bias counts.",
)
def components(m: Measurements) -> alt.HConcatChart:
    problem = problem_of(m.params_of("parity"))
    factor = problem.class_gap / problem.scale
    parts = []
    for step in (1, 2):
        where = {"arm": "emergence", "setting": "parity", "inputs": "structured", "step": step}
        gate, signal = m.array("gate", **where)[0], m.array("signal", **where)[0]
        frame = pl.DataFrame({"predicted": gate * factor, "measured": signal})
        line = pl.DataFrame({"predicted": [frame["predicted"].min(), frame["predicted"].max()]})
        axis = alt.Scale(zero=False)
        dots = (
            alt.Chart(frame, width=300, height=260, title=f"step {step}")
            .mark_circle(opacity=0.6)
            .encode(
                x=alt.X("predicted:Q", scale=axis, title="predicted"),
                y=alt.Y("measured:Q", scale=axis, title="measured"),
            )
        )
        parts.append(dots + alt.Chart(line).mark_line(color="#777").encode(x="predicted:Q", y="predicted:Q"))
    return alt.hconcat(*parts)


@study.figure(
    "alignment",
    caption="Median |cos| of the neurons with the sum of the relevant patterns at initialisation, after one and after "
    "two steps, in every setting (mean and interval over seeds). Shuffled labels and uniform inputs find nothing.",
)
def alignment(m: Measurements) -> alt.LayerChart:
    rows = m.rows("median_cosine", arm="emergence").with_columns(
        case=pl.when(pl.col("inputs") == "structured")
        .then(pl.col("setting"))
        .otherwise(pl.col("setting") + ", " + pl.col("inputs")),
        after=pl.col("step").replace_strict({0: "initialisation", 1: "one step", 2: "two steps"}),
    )
    frame = charts.summarise(rows, "case", "after")
    order = [*SETTINGS, "parity, uniform", "parity, shuffled"]
    base = alt.Chart(frame, width=420, height=300).encode(
        y=alt.Y("case:N", sort=order, title=None), color=alt.Color("after:N", title=None)
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="median |cos|", scale=alt.Scale(domain=[0, 1], clamp=True)), x2="high:Q"
    )
    return alt.layer(bars, base.mark_point(filled=True, size=60).encode(x="mean:Q"))


@study.figure(
    "tuning",
    caption="How the comparators were tuned: validation accuracy of every optimizer and rate on seeds kept for tuning. "
    "Rings mark the choice.",
)
def tuning(m: Measurements) -> alt.HConcatChart:
    rows = m.rows("validation_accuracy", arm="tuning").with_columns(
        optimizer=pl.col("candidate").str.split(" ").list.get(0),
        rate=pl.col("candidate").str.split(" ").list.get(1).cast(pl.Float64),
    )
    frame = charts.summarise(rows, "setting", "comparator", "optimizer", "rate", "candidate")
    parts = []
    for (setting, comparator), group in frame.group_by("setting", "comparator", maintain_order=True):
        params: Any = m.params_of(str(setting))
        chosen = params.ntk if comparator == "ntk" else params.random_features
        base = alt.Chart(group, width=190, height=180, title=f"{_COMPARED[str(comparator)]}, {setting}").encode(
            x=alt.X("rate:Q", scale=alt.Scale(type="log"), title="rate"),
            y=alt.Y("mean:Q", title="validation accuracy", scale=alt.Scale(domain=[0.4, 1.0])),
            color=alt.Color("optimizer:N", title=None),
        )
        picked = base.transform_filter(alt.datum.candidate == chosen)
        star = picked.mark_point(shape="circle", size=220, filled=False, strokeWidth=2)
        parts.append(base.mark_line(point=True) + star)
    return alt.concat(*parts, columns=4)


@study.figure(
    "mixture",
    caption="Gaussian clusters on the vertices of a cube: the cosine of every cluster centre with its nearest neuron "
    "before and after ordinary training (all seeds).",
)
def mixture(m: Measurements) -> alt.Chart:
    frames = []
    for (name,), rows in m.rows("worst_centre_cosine", arm="mixture").group_by("mixture", maintain_order=True):
        for step in (0, int(rows["step"].max())):  # type: ignore[arg-type]
            values = m.array("centre_cosines", step=step, arm="mixture", mixture=name).reshape(-1)
            label = f"d = {str(name).split('-')[0]}, k = {str(name).split('-')[1]}"
            when = "initialisation" if step == 0 else "trained"
            frames.append(pl.DataFrame({"mixture": [label] * len(values), "when": [when] * len(values), "cos": values}))
    return (
        alt.Chart(pl.concat(frames), width=150, height=240)
        .mark_tick(thickness=1.5, opacity=0.5)
        .encode(
            x=alt.X("when:N", title=None),
            y=alt.Y("cos:Q", title="cos of centre and nearest neuron", scale=alt.Scale(zero=False)),
            color=alt.Color("when:N", legend=None),
            column=alt.Column("mixture:N", title=None),
        )
    )


@study.figure(
    "image-weights",
    caption="First-layer weights of networks trained on two image classes (seed 0, each in its own best plane), from a "
    "standard and from a ten times smaller Gaussian start. The clusters are clear only from the small start.",
)
def image_weights(m: Measurements) -> alt.HConcatChart:
    parts = []
    for start in ("standard", "small"):
        points = m.array("weight_map", arm="image-weights", start=start)[0]
        frame = pl.DataFrame({"x": points[:, 0], "y": points[:, 1]})
        scale = alt.Scale(domain=[-1.6, 1.6])
        chart = alt.Chart(frame, width=240, height=240, title=f"{start} start").mark_circle(size=50, opacity=0.6)
        parts.append(chart.encode(x=alt.X("x:Q", scale=scale, title=None), y=alt.Y("y:Q", scale=scale, title=None)))
    return alt.hconcat(*parts)


@study.figure(
    "movement",
    caption="How far the first layer moves in each epoch on two image classes, as a share of its initial norm.",
)
def movement(m: Measurements) -> alt.LayerChart:
    frame = charts.summarise(m.rows("movement", arm="image-weights").filter(pl.col("step") > 0), "start", "step")
    return charts.band(
        frame.rename({"step": "epoch"}), x="epoch", y="movement in the epoch", colour="start", scale="log"
    )


@study.figure(
    "injected-inputs",
    caption="Students of a labelling teacher: agreement with it on the images, on the Gaussian inputs that "
    "replace half of them, on the mixture, and on images when nothing was replaced.",
)
def injected_inputs(m: Measurements) -> alt.HConcatChart:
    rows = m.rows("part_accuracy", arm="injected-inputs", fraction=[0.0, 0.5]).with_columns(
        curve=pl.when(pl.col("fraction") == 0)
        .then(pl.lit("original only"))
        .otherwise(pl.col("part").replace({"original": "original part", "injected": "injected part"}))
    )
    frame = charts.summarise(rows, "width", "curve", "step")
    return alt.hconcat(
        *(
            charts.band(
                group, x="step", y="agreement with teacher", colour="curve", title=f"student FC({width})", width=280
            )
            for (width,), group in frame.group_by("width", maintain_order=True)
        )
    )


@study.figure(
    "double-descent",
    caption="Test loss over width: networks on images, and on Gaussian inputs labelled by teachers of several sizes.",
)
def double_descent(m: Measurements) -> alt.LayerChart:
    rows = m.rows("test_loss", arm="double-descent").with_columns(labels=pl.col("labelled_by"))
    frame = charts.summarise(rows, "labels", "width")
    chart = charts.band(frame, x="width", y="test loss", colour="labels", scale="log")
    return chart.encode(x=alt.X("width:Q", scale=alt.Scale(type="log")))


_ROWS = (
    ("network", "structured", {}),
    ("ntk", "structured", {}),
    ("random-features", "structured", {}),
    ("one-step", "structured", {"head": "raw"}),
    ("one-step", "structured", {"head": "rescaled"}),
    ("one-step", "structured", {"head": "standardised"}),
    ("two-step", "structured", {"head": "raw"}),
    ("network", "uniform", {}),
)


@study.table(
    "compared",
    caption="Accuracy in percent (95 % interval over seeds) and largest cosine of the compared arms in every "
    "setting, with the source's numbers beside ours. Sizes differ from the source's in the laptop preset. The NTK and "
    "random features were tuned on balanced parity and on interval labels, and use those rates in the other settings. "
    "The source has one kind of one-step head, the raw one.",
)
def compared(m: Measurements) -> pl.DataFrame:
    rows = []
    for setting in SETTINGS:
        for arm, inputs, extra in _ROWS:
            where = {"arm": arm, "setting": setting, **extra}
            if arm not in ("one-step", "two-step"):
                where["inputs"] = inputs
            try:
                test, train = m.final("test_accuracy", **where), m.final("train_accuracy", **where)
            except NotMeasured:
                continue
            head = extra.get("head", "")
            printed = {"setting": setting, "arm": arm, "inputs": inputs} if head in ("", "raw") else {"arm": "none"}
            rows.append(
                {
                    "setting": setting,
                    "arm": f"{arm} ({head})" if arm == "one-step" else arm,
                    "inputs": inputs,
                    "train %": charts.plus_minus(train, 1, 100),
                    "paper train": m.paper_value(metric="train", **printed),
                    "test %": charts.plus_minus(test, 1, 100),
                    "paper test": m.paper_value(metric="test", **printed),
                    "balanced %": charts.plus_minus(m.final("balanced_accuracy", **where), 1, 100),
                    "cos": _cosine(m, arm, setting, inputs),
                    "paper cos": m.paper_value(metric="cosine", **printed),
                    "seeds": len(test.by_seed),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _cosine(m: Measurements, arm: str, setting: str, inputs: str) -> float | None:
    """Largest cosine of the features an arm uses: trained (network), at initialisation, after one or two steps."""
    steps = {"random-features": 0, "one-step": 1, "two-step": 2}
    try:
        if arm == "network":
            values = m.final("largest_cosine", arm=arm, setting=setting, inputs=inputs)
        elif arm in steps:
            values = m.at("largest_cosine", steps[arm], arm="emergence", setting=setting, inputs=inputs)
        else:
            return None
    except NotMeasured:
        return None
    return round(float(values.array.mean()), 3)


@study.table(
    "bounds",
    caption="What the theory says at these sizes: reference accuracies, the fixed-feature bound as printed (vacuous "
    "when negative) and as sharpened, and the queries needed without structure.",
)
def bounds(m: Measurements) -> pl.DataFrame:
    problem: Any = problem_of(m.params_of("parity"))
    params: Any = m.params_of("parity")
    N, k, D, p = 2 * params.half_width, problem.relevant, problem.patterns, problem.background
    where = {"arm": "random-features", "setting": "parity", "inputs": "structured"}
    norm = float(m.final("head_norm", **where).array.mean())
    printed = theory.fixed_feature_bound(p, N, norm, k, D) if k % 2 and 3 < k <= D / 16 else None
    values = {
        **_references(m),
        "norm B of the random-feature head": norm,
        "its hinge loss": float(m.final("hinge_loss", **where).array.mean()),
        "loss bound as printed, at B": printed,
        "loss bound by Bessel, at B": theory.bessel_bound(p, N, norm, k, D),
        "queries needed without structure": theory.query_bound(D, k),
        "step-one error scale ε_e of the lemma": theory.gradient_error_scale(
            k, D, params.half_width, problem.background_deviation, problem.scale
        ),
    }
    return pl.DataFrame({"quantity": list(values), "value": list(values.values())})
