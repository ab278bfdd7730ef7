"""Nuclear-norm regularisation for domain generalisation."""

from assay import lab

from .optima import arms as optima


class Params(optima.Params):
    """What all parts read."""


study = lab.Study(
    "nuclear-norm",
    title="Nuclear-norm regularisation for domain generalisation",
    question="Does keeping the rank of features low make a network rely less on what holds in its training domains only?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 6",
    params=Params,
    parts=(optima.part,),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s"),
        "laptop": lab.Preset(seeds=8, cost="5 min"),
        "paper": lab.Preset(seeds=8, cost="3 h on a GPU"),
    },
)
