"""In-context learning at different scales: what a larger network attends to, and what noise in the prompt then does.

Linear attention of limited rank keeps the most important directions (``rank``) and pays for more of them with noise
(``noise``). Attention heads that solve more parities (``construction``) let in more noise (``parity``), and training
leaves the ones that a theorem calls optimal (``heads``). Neither model has a prior; transformers with one show what
flipped labels do to small and large networks (``prior``), and a pretrained model can be asked (``language_model``).
"""

from assay import lab

from .construction import arms as construction
from .heads import arms as heads
from .language_model import arms as language_model
from .noise import arms as noise
from .parity import arms as parity
from .prior import arms as prior
from .rank import arms as rank


# Parameters of the last base are listed first: the regression, the parity, the transformers.
class Params(language_model.Params, prior.Params, heads.Params, parity.Params, noise.Params, rank.Params):
    """What all parts read; none of it must agree with another part's."""


study = lab.Study(
    "icl-scale",
    title="In-context learning at different scales",
    question="Why are larger models more easily distracted by noise and flipped labels in their prompt?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 5",
    params=Params,
    parts=(rank.part, noise.part, construction.part, parity.part, heads.part, prior.part, language_model.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s"),
        "laptop": lab.Preset(seeds=8, cost="5 min"),
        "paper": lab.Preset(seeds=10, cost="40 min"),
    },
)
