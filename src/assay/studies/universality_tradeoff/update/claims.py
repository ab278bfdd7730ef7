"""Claims about the contrastive update in the linear model (C8)."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values, combine, pool

from ..theory import decreasing, regularised_bound
from .arms import Params, part

LONG: dict[str, Any] = {"at least 150 steps": lambda p: p.update_steps >= 150}


def bound_factor(m: Measurements[Params], reach: float) -> Values:
    """2 + α/β + β/α, at the weights that the update ended with."""
    alpha, root = (m.final(metric, arm="linear-update", reach=reach) for metric in ("shared_weight", "root_weight"))
    return combine(lambda w: regularised_bound(w[0], w[1] ** 2), [alpha, root], "2 + α/β + β/α")


@part.claim(
    "C8a",
    "A contrastive update on target data raises the weight of private features (√β) to min(1, 1/√T + γ/√(r − s)), "
    "within 0.02, at every radius γ tried.",
    source="Appendix F.2.4 for r = 2s, derived for all r; descent on sampled pairs",
    when=LONG,
)
def update_formula(m: Measurements[Params]) -> Judgement:
    gaps = [
        m.final("root_weight", arm="linear-update", reach=reach)
        - m.exact("predicted", arm="linear-update", reach=reach).value
        for reach in m.params.update_reaches
    ]
    return pool(gaps, "√β − formula").between(-0.02, 0.02)


@part.claim(
    "C8b",
    "A contrastive update on target data leaves the weights of other tasks' private features where they were, within "
    "0.01.",
    source="Appendix F.2.4: the update is on the target's features",
    when=LONG,
)
def others_stay(m: Measurements[Params]) -> Judgement:
    return m.every("other_change", arm="linear-update").named("change of other weights").at_most(0.01)


@part.claim(
    "C8c",
    "The factor 2 + α/β + β/α of the risk bound, at the weights measured after a contrastive update on target data, "
    "falls with every larger radius tried, up to that of full recovery.",
    source="Section 7.2.2: 2 + α/β + β/α under the root; α and β by blocks of the trained Gram matrix",
    when={"two radii up to full recovery": lambda p: sum(reach <= 1 for reach in p.update_reaches) >= 2},
)
def bound_falls(m: Measurements[Params]) -> Judgement:
    reaches = [reach for reach in m.params.update_reaches if reach <= 1]
    steps = [bound_factor(m, reach) for reach in reaches]
    return combine(decreasing, steps, "smallest fall of 2 + α/β + β/α with the radius").above(0)


@part.claim(
    "C8d",
    "In the linear model a contrastive update on target data, given room enough, brings the risk of a linear predictor "
    "on the encoder of many tasks back to that on the target's own encoder, within 0.02.",
    source="Appendix F.2.4: at γ = √(r − s)(1 − 1/√T) the update restores weight 1",
    headline=True,
    when={**LONG, "an update with room for full recovery": lambda p: max(p.update_reaches) >= 1.2},
)
def recovers(m: Measurements[Params]) -> Judgement:
    where: dict[str, Any] = {"arm": "linear-update", "reach": max(m.params.update_reaches)}
    gap = m.final("risk", **where) - m.final("specific_risk", **where)
    return gap.named("risk, updated − specific").equals(0, within=0.02, because="2 % of the label's variance")


@part.claim(
    "N8",
    "An encoder of a mixture of linear tasks without a contrastive update (γ = 0) gives a linear predictor a higher "
    "risk than the specific encoder.",
    source="control: the trade-off that the update repairs is there",
    when={"an update of radius 0": lambda p: 0.0 in p.update_reaches},
)
def without_room(m: Measurements[Params]) -> Judgement:
    gap = m.final("risk", arm="linear-update", reach=0.0) - m.final("specific_risk", arm="linear-update", reach=0.0)
    return gap.named("risk, universal − specific").above(0)
