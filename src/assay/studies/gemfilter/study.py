"""GemFilter: an early layer points at the tokens that matter, and the model answers from those alone."""

from __future__ import annotations

from assay import lab

from .choice import arms as choice
from .chunks import arms as chunks
from .cost import arms as cost
from .exact import arms as exact
from .needles import arms as needles
from .planted import arms as planted
from .rivals import arms as rivals
from .speed import arms as speed


class Params(rivals.Params, needles.Params, choice.Params, planted.Params, speed.Params, exact.Params, cost.Params):
    """The parameters of all parts, which are listed from the last of these to the first."""


study = lab.Study(
    "gemfilter",
    title="GemFilter: early layers know which tokens matter",
    question="Can a long prompt be cut down inside the network, early and without training, and still be answered?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 9",
    params=Params,
    parts=(cost.part, exact.part, speed.part, planted.part, choice.part, needles.part, chunks.part, rivals.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="20 s", real_lengths=(256,)),
        "laptop": lab.Preset(seeds=20, cost="6 min"),
        "paper": lab.Preset(seeds=200, cost="1 h on a GPU"),
    },
)
