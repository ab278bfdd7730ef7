"""Tables: images, neuron sets, specialists, one masked step and the pruning experiment, what planning says."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from . import theory
from .pruning_claims import power
from .study import problem_of, study


@study.table(
    "images",
    caption="Table 2 in small: probe accuracy and Δ₂₀ in percent (95 % interval over seeds), with the source's "
    "CIFAR-10-LT numbers at the same ρ beside them. Data, network and epochs differ from the source's.",
)
def images_table(m: Measurements) -> pl.DataFrame:
    rows = []
    for imbalance, pruning in product(m.params.image_ratios, ("none", "logit-masked", "self-competitor")):
        where = dict(arm="images", pruning=pruning, imbalance=imbalance)
        # The source has two conditions; the self-competitor has no row in its table.
        kind = {"none": "none", "logit-masked": "pruned"}.get(pruning, "no row")
        printed = dict(data="CIFAR10-LT", imbalance=int(imbalance), pruning=kind)
        rows.append(
            {
                "images": m.params.images,
                "ρ": f"{imbalance:g}",
                "pruning": pruning,
                "training images": round(float(m.final("images", **where).array.mean())),
                "accuracy %": charts.plus_minus(m.final("accuracy", **where), 2, 100),
                "paper accuracy": m.paper_value(metric="accuracy", **printed),
                "Δ₂₀ %": charts.plus_minus(m.final("gap", **where), 2, 100),
                "paper Δ₂₀": m.paper_value(metric="gap", **printed),
                "untrained %": charts.plus_minus(m.final("untrained_accuracy", **where), 2, 100),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "neuron-sets",
    caption="Shares of random neurons in 𝓜_j and 𝓜*_j (γ = 0.1): counted, exact, for 𝓜*_j also as if features were "
    "independent, and the printed orders. Under imbalance the printed lucky bound is too large by orders of magnitude. "
    "Width: neurons needed for one lucky neuron per feature, exact and printed.",
)
def neuron_sets(m: Measurements) -> pl.DataFrame:
    columns = {"𝓜 counted": "ordinary", "𝓜 exact": "exact_ordinary", "𝓜 printed": "printed_ordinary",
               "𝓜* counted": "lucky", "𝓜* exact": "exact_lucky", "𝓜* independent": "independent_lucky",
               "𝓜* printed": "printed_lucky", "features per neuron": "features_per_neuron"}  # fmt: skip
    rows = []
    points = m.rows("ordinary", arm="neuron-sets").select("features", "ratio").unique().sort("features", "ratio")
    for d, r in points.iter_rows():
        where = dict(arm="neuron-sets", features=d, ratio=r)
        found = {name: float(m.final(metric, **where).array.mean()) for name, metric in columns.items()}
        found |= {"width": theory.required_width(d, r), "printed width": theory.required_width(d, r, exact=False)}
        rows.append({"d": d, "r": r, **{name: float(f"{value:.3g}") for name, value in found.items()}})
    return pl.DataFrame(rows)


@study.table(
    "specialists",
    caption="Neurons after training (Figure 6 and variants): lucky neurons in all and per frequent and rare feature, "
    "mixed ones, features per neuron (cos² ≥ 0.1), for both attentions and other rules for the bias.",
)
def specialists(m: Measurements) -> pl.DataFrame:
    columns = {"lucky": "lucky", "mixed": "mixed", "lucky per frequent": "lucky_per_frequent",
               "lucky per rare": "lucky_per_rare", "features per neuron": "features_per_neuron",
               "final loss": "loss"}  # fmt: skip
    conditions = [(f"{a} attention", dict(arm="dynamics", attention=a)) for a in ("softmax", "uniform")]
    conditions += [(f"uniform, bias {b}", dict(arm="other-biases", bias_rule=b)) for b in ("none", "printed")]
    rows = []
    for name, where in conditions:
        try:
            found = {title: charts.plus_minus(m.final(metric, **where), 2) for title, metric in columns.items()}
        except NotMeasured:
            continue
        rows.append({"training": name, **found})
    return pl.DataFrame(rows)


@study.table(
    "pruning",
    caption="The constructed state at the end: rare and frequent coefficients and their ratio per frequency, weight "
    "decay and gradient (mean ± 95 % interval). Judge ratios: after equality all coefficients grow under pruning.",
)
def pruning_table(m: Measurements) -> pl.DataFrame:
    columns = {"rare": "rare_coefficient", "frequent": "frequent_coefficient", "ratio": "ratio"}
    kinds = ("plain", "logit-masked", "straight-through")
    rows = []
    for decay, epsilon, kind in product(m.params.pruned_decays, m.params.pruned_rare, kinds):
        where = dict(arm="pruning", decay=decay, epsilon=epsilon, gradient=kind)
        found = {title: charts.plus_minus(m.final(metric, **where)) for title, metric in columns.items()}
        rows.append({"λ": decay, "ε": epsilon, "gradient": kind, **found})
    return pl.DataFrame(rows)


@study.table(
    "plan",
    caption="What the planning helpers say for the sweeps: growth factors, the rarest learnable ε, and the loss floor "
    "of perfect neurons with constant magnitudes and no noise.",
)
def plan(m: Measurements) -> pl.DataFrame:
    params: Any = m.params
    problem = problem_of(params, params.dim)
    descent = theory.Descent(params.rate, params.decay, params.temperature, params.batch)
    full = float(theory.pair_correlations(problem, 1.0).max())
    rows = []
    for epsilon in params.rare:
        kappa = theory.pair_correlations(problem, epsilon)[0]
        growth = theory.growth_factors(kappa, descent)
        rows.append(
            {
                "ε": epsilon,
                "growth of frequent": round(float(growth[0]), 5),
                "growth of rare": round(float(growth[-1]), 5),
                "rarest learnable ε": round(theory.learnability_threshold(descent) / full, 5),
                "loss floor": round(theory.loss_floor(problem.rates(epsilon)[0].tolist(), params.batch - 1), 3),
            }
        )
    return pl.DataFrame(rows)


@study.table(
    "one-step",
    caption="One step with all of the rare feature's neurons masked, at the constructed state with its weights scaled: "
    "what that adds to the growth of the rare feature and of the others (mean), per unit rate, beside the rates that "
    "Theorem 3.2 prints, ε²αC/d and ε³αC/d² with C = log log d (orders: only their course over ε compares). Exponent: "
    "of ε in the rare boost, from the row above to this one; printed 2.",
)
def one_step_table(m: Measurements) -> pl.DataFrame:
    params: Any = m.params
    d, count = params.pruned_majority + 1, params.per_feature
    rows: list[dict[str, Any]] = []
    for scale in (1.0, 0.2):
        seen: list[tuple[float, float]] = []
        for epsilon in params.pruned_rare:
            where = dict(arm="one-step", epsilon=epsilon, pruned=count, scale=scale)
            rare, other = (m.final(metric, **where) for metric in ("rare_boost", "other_boost"))
            printed = theory.printed_rates(epsilon, 1 / d, d, 1.0, math.log(math.log(d)))
            seen.append((epsilon, float(rare.array.mean())))
            rows.append(
                {
                    "weights ×": scale,
                    "ε": epsilon,
                    "rare boost × 10³": charts.plus_minus(rare, 3, 1000),
                    "printed × 10³": f"{1000 * printed[0]:.3f}",
                    "exponent": f"{power(*np.array(seen[-2:]).T):.2f}" if len(seen) > 1 else "",
                    "others × 10³": charts.plus_minus(other, 3, 1000),
                    "others/rare": charts.plus_minus(other / rare, 4),
                    "printed ratio ε/d": f"{printed[1] / printed[0]:.4f}",
                }
            )
    return pl.DataFrame(rows)
