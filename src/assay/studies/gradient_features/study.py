"""Gradient features: one principle behind many cases of feature learning, checked on six families of problems."""

from assay import lab

from .block_parity import arms as block_parity
from .emergence import arms as emergence
from .fixed_features import arms as fixed_features
from .uniform_parity import arms as uniform_parity


# From the last part to the first: fields are listed from the last base on.
class Params(uniform_parity.Params, block_parity.Params, fixed_features.Params, emergence.Params):
    """Every part checks what it reads; nothing is left for all of them together."""


study = lab.Study(
    "gradient-features",
    title="Gradient features: one principle behind many cases",
    question="Does the first gradient step find the features of a problem, and does learning then build on them alone?",
    source="Shi, Wei and Liang, Provable Guarantees for Neural Networks via Gradient Feature Learning",
    params=Params,
    parts=(emergence.part, fixed_features.part, block_parity.part, uniform_parity.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s", test_samples=1000),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=8, cost="1 h on a GPU", test_samples=20_000),
    },
)
