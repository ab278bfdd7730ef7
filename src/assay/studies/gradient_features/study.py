"""Gradient features: one principle behind many cases of feature learning, checked on six families of problems.

The first gradients come first, then the cases one by one with their opponents, then what the general theory says
beside them: a good head exists, descent finds it, tickets are cut from the stepped network, heavy features come first.
"""

from assay import lab

from .block_parity import arms as block_parity
from .descent import arms as descent
from .emergence import arms as emergence
from .existence import arms as existence
from .fixed_features import arms as fixed_features
from .images import arms as images
from .mixtures import arms as mixtures
from .multi_index import arms as multi_index
from .order import arms as order
from .sample_needs import arms as sample_needs
from .tickets import arms as tickets
from .uniform_parity import arms as uniform_parity


# From the last part to the first: fields are listed from the last base on.
class Params(
    images.Params,
    order.Params,
    tickets.Params,
    descent.Params,
    existence.Params,
    multi_index.Params,
    uniform_parity.Params,
    block_parity.Params,
    sample_needs.Params,
    fixed_features.Params,
    mixtures.Params,
    emergence.Params,
):
    """Every part checks what it reads; nothing is left for all of them together."""


study = lab.Study(
    "gradient-features",
    title="Gradient features: one principle behind many cases",
    question="Does the first gradient step find the features of a problem, and does learning then build on them alone?",
    source="Shi, Wei and Liang, Provable Guarantees for Neural Networks via Gradient Feature Learning",
    params=Params,
    parts=(
        emergence.part,
        mixtures.part,
        fixed_features.part,
        sample_needs.part,
        block_parity.part,
        uniform_parity.part,
        multi_index.part,
        existence.part,
        descent.part,
        tickets.part,
        order.part,
        images.part,
    ),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s", test_samples=1000),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=8, cost="70 min on a GPU", test_samples=20_000),
    },
)
