"""Claims about the contrastive update in the linear model (C8)."""

from __future__ import annotations

from typing import Any

from assay.lab import Exact, Judgement, Measurements, pool

from ..theory import decreasing
from .arms import Params, part

LONG: dict[str, Any] = {"at least 150 steps": lambda p: p.update_steps >= 150}


@part.claim(
    "C8a",
    "A contrastive update on target data raises the weight of private features (√β) to 1/√T + γ/√(r − s), within "
    "0.02, for every radius γ.",
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
    "The factor 2 + α/β + β/α of the risk bound falls with every larger radius of the update, until both weights are "
    "equal.",
    source="Section 7.2.2: 2 + α/β + β/α under the root",
    when={"two radii up to full recovery": lambda p: sum(reach <= 1 for reach in p.update_reaches) >= 2},
)
def bound_falls(m: Measurements[Params]) -> Judgement:
    reaches = [reach for reach in m.params.update_reaches if reach <= 1]
    steps = [m.exact("bound", arm="linear-update", reach=reach).value for reach in reaches]
    return Exact(decreasing(steps), "smallest fall of 2 + α/β + β/α with the radius").above(0)


@part.claim(
    "C8d",
    "A contrastive update with radius enough for full recovery brings a linear predictor's risk to that of the "
    "specific encoder, within 0.02.",
    source="Appendix F.2.4: at γ = √(r − s)(1 − 1/√T) the update restores weight 1",
    when={**LONG, "an update with room for full recovery": lambda p: max(p.update_reaches) >= 1.2},
)
def recovers(m: Measurements[Params]) -> Judgement:
    where: dict[str, Any] = {"arm": "linear-update", "reach": max(m.params.update_reaches)}
    gap = m.final("risk", **where) - m.final("specific_risk", **where)
    return gap.named("risk, updated − specific").equals(0, within=0.02, because="2 % of the label's variance")


@part.claim(
    "N8",
    "Without room to move (γ = 0) the linear predictor's risk stays above that of the specific encoder.",
    source="control: the trade-off that the update repairs is there",
    when={"an update of radius 0": lambda p: 0.0 in p.update_reaches},
)
def without_room(m: Measurements[Params]) -> Judgement:
    gap = m.final("risk", arm="linear-update", reach=0.0) - m.final("specific_risk", arm="linear-update", reach=0.0)
    return gap.named("risk, universal − specific").above(0)
