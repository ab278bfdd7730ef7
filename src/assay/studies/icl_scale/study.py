"""In-context learning at different scales: what a larger network attends to, and what noise in the prompt then does.

Linear attention of limited rank keeps the most important directions (``rank``), and pays for more of them with noise
(``noise``).
"""

from assay import lab

from .construction import arms as construction
from .noise import arms as noise
from .parity import arms as parity
from .rank import arms as rank


class Params(parity.Params, noise.Params, rank.Params):
    """What all parts read."""


study = lab.Study(
    "icl-scale",
    title="In-context learning at different scales",
    question="Why are larger models more easily distracted by noise and flipped labels in their prompt?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 5",
    params=Params,
    parts=(rank.part, noise.part, construction.part, parity.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s"),
        "laptop": lab.Preset(seeds=8, cost="5 min"),
        "paper": lab.Preset(seeds=10, cost="30 min"),
    },
)
