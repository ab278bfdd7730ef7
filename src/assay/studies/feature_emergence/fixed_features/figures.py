"""How the comparators were tuned, and what the theory says of fixed features at these sizes."""

from __future__ import annotations

import altair as alt
import polars as pl
import torch

from assay.lab import Measurements, charts

from ..first_steps.theory import gradient_error_scale
from . import theory
from .arms import Params, part

NAMES = {"network": "network", "ntk": "NTK", "random-features": "random features"}


def references(m: Measurements[Params]) -> dict[str, float]:
    """What a predictor reaches that counts the relevant patterns, or that solves the structured half alone."""
    problem = m.params_of("parity").problem()
    labels = problem.labels_of(torch.arange(problem.relevant + 1))
    return {
        "best count threshold": theory.count_threshold_accuracy(problem.count_law, labels),
        "structured half only": theory.structured_part_accuracy(problem.background),
    }


@part.figure(
    "tuning",
    caption="How the comparators were tuned: validation accuracy of every optimizer and rate on seeds kept for tuning. "
    "Rings mark the choice.",
    shows=("N3", "N4", "N5", "N6"),
)
def tuning(m: Measurements[Params]) -> alt.ConcatChart:
    rows = m.rows("validation_accuracy", arm="tuning").with_columns(
        optimizer=pl.col("candidate").str.split(" ").list.get(0),
        rate=pl.col("candidate").str.split(" ").list.get(1).cast(pl.Float64),
    )
    frame = charts.summarise(rows, "setting", "comparator", "optimizer", "rate", "candidate")
    parts = []
    for (setting, comparator), group in frame.group_by("setting", "comparator", maintain_order=True):
        params = m.params_of(str(setting))
        chosen = params.ntk if comparator == "ntk" else params.random_features
        base = alt.Chart(group, width=190, height=180, title=f"{NAMES[str(comparator)]}, {setting}").encode(
            x=alt.X("rate:Q", scale=alt.Scale(type="log"), title="rate"),
            y=alt.Y("mean:Q", title="validation accuracy", scale=alt.Scale(domain=[0.4, 1.0])),
            color=alt.Color("optimizer:N", title=None),
        )
        picked = base.transform_filter(alt.datum.candidate == chosen)
        star = picked.mark_point(shape="circle", size=220, filled=False, strokeWidth=2)
        parts.append(base.mark_line(point=True) + star)
    return alt.concat(*parts, columns=4)


@part.table(
    "bounds",
    caption="What the theory says at these sizes: reference accuracies, the fixed-feature bound as printed (vacuous "
    "when negative) and as sharpened, and the queries needed without structure.",
    shows=("C5d", "C6l"),
)
def bounds(m: Measurements[Params]) -> pl.DataFrame:
    params = m.params_of("parity")
    problem = params.problem()
    N, k, D, p = 2 * params.half_width, problem.relevant, problem.patterns, problem.background
    where = {"arm": "random-features", "setting": "parity", "inputs": "structured"}
    norm = float(m.final("head_norm", **where).array.mean())
    printed = theory.fixed_feature_bound(p, N, norm, k, D) if k % 2 and 3 < k <= D / 16 else None
    values = {
        **references(m),
        "norm B of the random-feature head": norm,
        "its hinge loss": float(m.final("hinge_loss", **where).array.mean()),
        "loss bound as printed, at B": printed,
        "loss bound by Bessel, at B": theory.bessel_bound(p, N, norm, k, D),
        "queries needed without structure": theory.query_bound(D, k),
        "step-one error scale ε_e of the lemma": gradient_error_scale(
            k, D, params.half_width, problem.background_deviation, problem.scale
        ),
    }
    return pl.DataFrame({"quantity": list(values), "value": list(values.values())})
