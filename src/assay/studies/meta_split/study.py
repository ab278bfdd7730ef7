"""Train-validation split in meta-learning: what the inner loop amplifies decides what the outer loop can learn."""

from assay import lab

from .controls import arms as controls
from .growth import arms as growth
from .linear import arms as linear
from .phases import arms as phases
from .printed import arms as printed
from .rainbow import arms as rainbow
from .stages import arms as stages
from .theorems import arms as theorems


# Parameters of the last base are listed first: the planted problem, then part by part.
class Params(rainbow.Params, printed.Params, linear.Params, growth.Params, phases.Params):
    """What all parts read; none of it must agree with another part's."""


study = lab.Study(
    "meta-split",
    title="The train-validation split in meta-learning",
    question="Must the inner and the outer loop of FOMAML see different samples of a task?",
    source="Zuo, Chen, Yao, Cao and Gu, Understanding Train-Validation Split in Meta-Learning with Neural Networks",
    params=Params,
    parts=(
        theorems.part,
        stages.part,
        controls.part,
        growth.part,
        phases.part,
        linear.part,
        printed.part,
        rainbow.part,
    ),
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", dim=200, dictionary=20, filters=5, steps=40, look_every=20, unseen_tasks=10
        ),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=10, cost="50 min on a GPU", unseen_tasks=200),
    },
)
