"""Figures and tables of both label spaces at work."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from . import image_figures, theory  # noqa: F401 (the figures on images register themselves)
from .claims import slope_over_constant
from .dynamics import problem_of
from .study import SETTINGS, study
from .twins import TWINS

_LABELS = {"coarse": "coarse labels", "fine": "fine labels"}
_DASH = alt.Scale(domain=["easy samples", "hard samples"], range=[[1, 0], [6, 5]])


def _log_steps(title: str = "updates") -> Any:
    return alt.X("step:Q", title=title, scale=alt.Scale(type="log", nice=False))


@study.figure(
    "errors",
    caption="Error on easy samples (common feature present) and on hard ones (common feature missing, faint copies of"
    " the other superclass' one) over training, mean and interval over seeds. By the theory coarse labels solve "
    "the easy samples at once and never the hard ones; fine labels, read out by the maximum over subclasses, "
    "solve both. The line marks T0.",
)
def errors(m: Measurements) -> alt.HConcatChart:
    parts = []
    for arm, title in _LABELS.items():
        rows = m.rows(["easy_error", "hard_error"], arm=arm, setting="exact").filter(pl.col("step") >= 1)
        rows = rows.with_columns(
            samples=pl.col("metric").replace_strict({"easy_error": "easy samples", "hard_error": "hard samples"})
        )
        frame = charts.summarise(rows, "samples", "step")
        base = alt.Chart(frame, width=320, height=250, title=title).encode(
            x=_log_steps(),
            color=alt.Color("samples:N", title=None),
            strokeDash=alt.StrokeDash("samples:N", legend=None, scale=_DASH),
        )
        y = alt.Y("mean:Q", title="error", scale=alt.Scale(domain=[0, 1], clamp=True))
        band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="error"), y2="high:Q")
        layers = [band, base.mark_line(strokeWidth=3).encode(y=y)]
        if arm == "fine":
            reached = pl.DataFrame({"step": [float(m.final("t0", arm="fine", setting="exact").array.mean())]})
            layers.append(alt.Chart(reached).mark_rule(strokeDash=[3, 3], color="#777").encode(x="step:Q"))
        parts.append(alt.layer(*layers))
    return alt.hconcat(*parts)


@study.figure(
    "responses",
    caption="Top: the response relu(⟨w, v⟩ + b) of one detector of the common and of a subclass feature, mean over "
    "seeds. Bottom: the ratio of their growth (dots) and what the theory predicts (dashed): k at all times "
    "with coarse labels; k/(2k − 1) at first with fine labels, within [¼, ⅔] until T0 and falling afterwards.",
)
def responses(m: Measurements) -> alt.VConcatChart:
    k = m.params.subclasses
    top, bottom = [], []
    for arm, title in _LABELS.items():
        where = {"arm": arm, "setting": "exact"}
        rows = m.rows(["response_common", "response_subclass"], **where).with_columns(
            feature=pl.col("metric").replace_strict(
                {"response_common": "common feature", "response_subclass": "subclass feature"}
            )
        )
        frame = charts.summarise(rows, "feature", "step")
        top.append(
            alt.Chart(frame, width=320, height=200, title=title)
            .mark_line(strokeWidth=3)
            .encode(
                x=_log_steps(),
                y=alt.Y("mean:Q", title="response per detector"),
                color=alt.Color("feature:N", title=None),
            )
        )
        metric = "growth_ratio" if arm == "coarse" else "growth_per_step_ratio"
        ratio = charts.summarise(m.rows(metric, **where), "step")
        levels = {"k": float(k)} if arm == "coarse" else {"k/(2k − 1)": k / (2 * k - 1)}
        extent = [0, 1.25 * k] if arm == "coarse" else [0, 0.8]
        word = "growth" if arm == "coarse" else "growth per step"
        dots = (
            alt.Chart(ratio, width=320, height=170)
            .mark_point(filled=True, color="#444", opacity=0.6)
            .encode(x=_log_steps(), y=alt.Y("mean:Q", title=f"{word}, common/subclass", scale=alt.Scale(domain=extent)))
        )
        bottom.append(dots + charts.rules(levels, width=320))
    return alt.vconcat(alt.hconcat(*top), alt.hconcat(*bottom))


@study.figure(
    "sweep",
    caption="Error of the coarse network after training, against the number of subclasses k (mean and interval over "
    "seeds). Above k* = s*/(s†ᾱ†), where faint distractors outweigh the subclass features, hard samples are "
    "lost.",
)
def sweep(m: Measurements) -> alt.LayerChart:
    rows = m.rows(["easy_error", "hard_error"], arm="sweep").with_columns(
        samples=pl.col("metric").replace_strict({"easy_error": "easy samples", "hard_error": "hard samples"})
    )
    frame = charts.summarise(rows, "samples", "k")
    base = alt.Chart(frame, width=420, height=270).encode(
        x=alt.X(
            "k:Q",
            title="subclasses k",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=list(m.params.sweep)),
        ),
        color=alt.Color("samples:N", title=None),
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", title="error", scale=alt.Scale(domain=[0, 1], clamp=True)), y2="high:Q"
    )
    line = base.mark_line(point=True).encode(y="mean:Q")
    critical = theory.critical_subclasses(problem_of(m.params, distractors=m.params.sweep_distractors))
    mark = alt.Chart(pl.DataFrame({"k": [critical], "y": [1.0], "text": [f"k* = {critical:.3g}"]}))
    rule = mark.mark_rule(strokeDash=[4, 3], color="#777").encode(x="k:Q")
    word = mark.mark_text(align="right", dx=-4, baseline="top", color="#555").encode(x="k:Q", y="y:Q", text="text:N")
    return alt.layer(bars, line, rule, word)


@study.figure(
    "log-law",
    caption="exp of the right class' mean output on easy samples against time, coarse labels (dots: mean over seeds "
    "and superclasses). If the output grows as log(Ct + t0), this is a line of slope C. The corrected "
    "constant, counting the neurons that fire at the end, fits; counting those of the start is off; the "
    "printed one is far too small.",
)
def log_law(m: Measurements) -> alt.LayerChart:
    rows = m.rows("own_output", arm="coarse", setting="exact").filter(pl.col("step") % 10 == 0)
    frame = (
        rows.with_columns(value=pl.col("value").exp()).group_by("step", maintain_order=True).agg(pl.col("value").mean())
    )
    frame = frame.sort("step")
    first, last = frame.row(len(frame) // 4), frame.row(-1)
    p = m.params
    printed = theory.printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches)
    constants = {
        "corrected, firing neurons": _mean_constant(m, "firing"),
        "corrected, initial detectors": _mean_constant(m, "initial"),
        "printed": printed,
    }
    lines = pl.DataFrame(
        [
            (name, step, first[1] + c * (step - first[0]))
            for name, c in constants.items()
            for step in (first[0], last[0])
        ],
        schema=["constant", "step", "value"],
        orient="row",
    )
    dots = (
        alt.Chart(frame, width=440, height=290)
        .mark_point(filled=True, color="#444", opacity=0.7)
        .encode(x=alt.X("step:Q", title="updates t"), y=alt.Y("value:Q", title="exp of the mean output"))
    )
    line = (
        alt.Chart(lines)
        .mark_line(strokeWidth=2)
        .encode(x="step:Q", y="value:Q", color=alt.Color("constant:N", title="predicted slope", sort=list(constants)))
    )
    return dots + line


def _mean_constant(m: Measurements, counted: str) -> float:
    rows = m.rows("log_law_constant", arm="coarse", setting="exact", counted=counted)
    return float(rows["value"].mean())  # type: ignore[arg-type]


@study.figure(
    "initial",
    caption="How unequal the numbers of detectors of different dictionary vectors are before training, against "
    "neurons m per class. They are independent draws, so that their relative spread is 1/√λ (line) with λ the"
    " expected number; the source's 1 ± O(log⁻⁵d) needs far more neurons.",
)
def initial(m: Measurements) -> alt.LayerChart:
    frame = charts.summarise(m.rows("relative_spread", arm="initial"), "m")
    p = m.params
    expected = [(n, theory.expected_detectors(n, p.threshold, p.dim) ** -0.5) for n in p.initial_neurons]
    line = pl.DataFrame(expected, schema=["m", "mean"], orient="row")
    axis = alt.X("m:Q", title="neurons m per class", scale=alt.Scale(type="log"))
    y = alt.Y("mean:Q", title="relative spread of the counts", scale=alt.Scale(type="log"))
    predicted = alt.Chart(line, width=360, height=240).mark_line(color="#999").encode(x=axis, y=y)
    return predicted + alt.Chart(frame).mark_point(filled=True, size=70).encode(x=axis, y=y)


@study.figure(
    "strong-noise",
    caption="The second distractor: hard samples whose only disturbance is one patch of noise of deviation σ_ζ*. The "
    "coarse network begins to err near s*/k, the fine one near s*/√(2 log 2k) (dashed).",
)
def strong_noise(m: Measurements) -> alt.LayerChart:
    rows = m.rows("hard_error", arm="strong-noise").with_columns(network=pl.col("labels").replace_strict(_LABELS))
    frame = charts.summarise(rows, "network", "strong")
    p = m.params
    marks = theory.strong_noise_scales(p.subclasses, p.feature_patches)
    base = alt.Chart(frame, width=400, height=250).encode(
        x=alt.X("strong:Q", title="σ of the strong noise", scale=alt.Scale(type="log", nice=False)),
        color=alt.Color("network:N", title=None),
    )
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="error on hard samples"))
    rule = (
        alt.Chart(pl.DataFrame({"strong": list(marks)})).mark_rule(strokeDash=[3, 3], color="#777").encode(x="strong:Q")
    )
    return line + rule


@study.table(
    "theory",
    caption="The theory's quantities: errors at the end, growth ratio common/subclass, fitted over predicted slope of"
    " the logarithmic law (neurons that fire at the end, or detectors of the start), T0 and its prediction.",
)
def theory_table(m: Measurements) -> pl.DataFrame:
    rows = []
    for labels in ("coarse", "fine"):
        for setting in SETTINGS:
            where = {"arm": labels, "setting": setting}
            try:
                row: dict[str, Any] = {"labels": labels, "setting": setting}
                row |= {name: charts.plus_minus(m.final(f"{name}_error", **where)) for name in ("easy", "hard")}
            except NotMeasured:
                continue
            row["growth ratio"] = charts.plus_minus(m.final("growth_ratio", **where), 2)
            law, fine = labels == "coarse", labels == "fine"
            row["slope/C, firing"] = charts.plus_minus(slope_over_constant(m, "firing", setting)) if law else None
            row["slope/C, initial"] = charts.plus_minus(slope_over_constant(m, "initial", setting)) if law else None
            row["T0"] = charts.plus_minus(m.final("t0", **where), 1) if fine else None
            row["seeds that reach T0"] = int(m.final("t0_reached", **where).array.sum()) if fine else None
            row["T0 predicted"] = charts.plus_minus(m.final("predicted_t0", **where), 1) if fine else None
            row["fewest detectors"] = int(m.final("fewest_detectors", **where).array.min())
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "twins",
    caption="Labels on a finite set of hierarchical patches, read out by the maximum (a class counts for the "
    "superclass of most of its samples). Hard samples are saved as far as labels follow the true subclasses, which "
    "random classes drawn once within the superclasses of a small set do by chance, and those drawn anew do not.",
)
def twins(m: Measurements) -> pl.DataFrame:
    where = [{"arm": "twins", "labels": labels} for labels in TWINS]
    return pl.DataFrame([
        {"labels": w["labels"], "classes": int(m.final("classes", **w).array[0]),
         "easy error": charts.plus_minus(m.final("easy_error", **w)),
         "hard error": charts.plus_minus(m.final("hard_error", **w)),
         "purity": round(float(m.final("purity", **w).array.mean()), 3)}
        for w in where
    ])  # fmt: skip


@study.table(
    "regime",
    caption="The source's asymptotic regime with unit constants and polylog d = log d, against this run: out of reach"
    " at any size that can be simulated, which is why thresholds and widths are set directly.",
)
def regime(m: Measurements) -> pl.DataFrame:
    p = m.params
    found = theory.regime_report(problem_of(p), eta=p.rate, sigma0=p.scale, batch=2 * p.subclasses * p.per_subclass)
    return pl.DataFrame(
        [{"condition": c.condition, "asked": c.asked, "here": c.here, "met": str(c.met)} for c in found]
    )
