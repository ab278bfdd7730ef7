"""Universality against label efficiency: what contrastive pretraining puts into a representation, and what it costs.

Finite hidden states show what is encoded (``components``, ``thresholds``); linear tasks how strongly (``weights``),
what this costs on few labels (``risk``), how alike encoders are (``similarity``) and what repairs them (``update``).
Small encoders of real and made-up images follow (``images``, ``amounts``, ``fine_tuning``), and a sentence encoder
(``text``).
"""

from assay import lab

from .amounts import arms as amounts
from .components import arms as components
from .fine_tuning import arms as fine_tuning
from .images import arms as images
from .risk import arms as risk
from .similarity import arms as similarity
from .text import arms as text
from .thresholds import arms as thresholds
from .update import arms as update
from .weights import arms as weights


# From the last part to the first: fields are listed from the last base on.
class Params(
    text.Params,
    fine_tuning.Params,
    amounts.Params,
    images.Params,
    update.Params,
    similarity.Params,
    risk.Params,
    weights.Params,
    thresholds.Params,
    components.Params,
):
    """Every part checks what it reads; nothing is left for all of them together."""


study = lab.Study(
    "universality-tradeoff",
    title="Universality against label efficiency of contrastive representations",
    question="Why does pretraining on more diverse data cost a task with few labels, and can fine-tuning repair it?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 7",
    params=Params,
    parts=(
        components.part,
        thresholds.part,
        weights.part,
        risk.part,
        similarity.part,
        update.part,
        images.part,
        amounts.part,
        fine_tuning.part,
        text.part,
    ),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s"),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=8, cost="1 h on a GPU"),
    },
)
