"""Imbalanced contrastive learning: three stages of training, what rare features cost, and pruning as a remedy."""

from __future__ import annotations

from assay import lab

from .capacity import arms as capacity
from .convergence import arms as convergence
from .dynamics import arms as dynamics
from .images import arms as images
from .one_step import arms as one_step
from .pruning import arms as pruning
from .stage_one import arms as stage_one
from .stage_two import arms as stage_two
from .sweeps import arms as sweeps


class Params(
    images.Params,
    one_step.Params,
    stage_one.Params,
    capacity.Params,
    convergence.Params,
    sweeps.Params,
    stage_two.Params,
):
    """The parameters of all parts; every part checks its own."""


study = lab.Study(
    "imbalanced-contrastive",
    title="Contrastive learning under imbalance, and forward pruning",
    question="What do rare features cost in contrastive learning, and why does pruning small neurons help them?",
    source="Liao, Zhou, Zhang, Wang and Zhang, Theoretical Analysis of Contrastive Learning under Imbalanced Data: "
    "From Training Dynamics to a Pruning Solution",
    params=Params,
    parts=(
        stage_one.part,
        stage_two.part,
        dynamics.part,
        sweeps.part,
        convergence.part,
        capacity.part,
        one_step.part,
        pruning.part,
        images.part,
    ),
    # Values of parameters that several parts read; those of one part alone stand beside its arms.
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", dim=40, batch=32, steps=60, bias_on=20, rate=0.1, rare=(0.2, 1.0), samples=1000
        ),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(
            seeds=100,
            cost="30 min on a GPU",
            dim=500,
            attention="softmax",
            rare=tuple(round(0.1 * k, 1) for k in range(1, 11)),
            samples=200_000,
        ),
    },
)
