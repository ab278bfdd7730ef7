"""Feature emergence: what two gradient steps find in structured inputs, and what fixed features cannot."""

from __future__ import annotations

from assay import lab

from .clusters import arms as clusters
from .construction import arms as construction
from .double_descent import arms as double_descent
from .first_steps import arms as first_steps
from .fixed_features import arms as fixed_features
from .image_weights import arms as image_weights
from .injected_inputs import arms as injected_inputs
from .network import arms as network
from .neurons import arms as neurons
from .params import SETTINGS
from .resnet import arms as resnet


class Params(
    double_descent.Params,
    resnet.Params,
    injected_inputs.Params,
    image_weights.Params,
    clusters.Params,
    fixed_features.Params,
    neurons.Params,
    network.Params,
    first_steps.Params,
):
    """All parameters; no two parts restrict each other's."""


_beside = dict(half_width=50, steps=300, samples=20_000)
_imbalanced = dict(half_width=200, steps=600)  # a rare class takes the source's T, and more neurons than the others

study = lab.Study(
    "feature-emergence",
    title="Feature emergence from structured inputs",
    question="How do useful features emerge under gradient descent, and must the inputs have structure for that?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 2 and its appendix; Shi, Wei and "
    "Liang, A Theoretical Analysis on Feature Learning in Neural Networks: Emergence from Inputs "
    "and Advantage over Fixed Features",
    params=Params,
    settings=SETTINGS,
    parts=(
        construction.part,
        first_steps.part,
        network.part,
        neurons.part,
        fixed_features.part,
        clusters.part,
        image_weights.part,
        injected_inputs.part,
        resnet.part,
        double_descent.part,
    ),
    presets={
        "smoke": lab.Preset(
            seeds=3,
            cost="10 s",
            dim=60,
            patterns=30,
            relevant=3,
            samples=2_000,
            test_samples=500,
            half_width=20,
            steps=40,
            batch=250,
            images="digits",
            student_steps=40,
            student_rate=1e-2,
            settings={
                "interval": dict(relevant=12, low=8, high=12, half_width=20, steps=30),
                "low-dimension": dict(dim=30),
                "high-dimension": dict(dim=200),
                "fewer-samples": dict(samples=1_000),
                "few-samples": dict(samples=500, half_width=10),
                "tiny-samples": dict(patterns=60, samples=600),
            },
        ),
        "laptop": lab.Preset(
            seeds=8,
            cost="5 min",
            samples=20_000,
            test_samples=5_000,
            half_width=100,
            steps=300,
            image_limit=5_000,
            student_steps=500,
            fewer={**{name: 4 for name in SETTINGS if name != "parity"}, "tiny-samples": 8},
            settings={
                "low-dimension": _beside,
                "high-dimension": _beside,
                "imbalance-80": _imbalanced,
                "imbalance-90": _imbalanced,
                "fewer-samples": {**_beside, "samples": 10_000},
                "few-samples": {**_beside, "samples": 4_000},
            },
        ),
        "paper": lab.Preset(seeds=5, cost="11 min on a GPU", basis="ambient"),
    },
)
