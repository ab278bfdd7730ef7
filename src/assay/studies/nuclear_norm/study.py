"""Nuclear-norm regularisation for domain generalisation: a penalty that lowers the rank of features, so that those
which go with the label in the training domains only are dropped first.

The theory comes first: population optima of a diagonal model with both kinds of features (``optima``), the same by
descent on batches of few and of many rows (``batches``), the two-dimensional task (``plane``) and identities of the
norm (``identities``). Then networks on stand-in domains: methods side by side (``images``) and the strength of the
penalty against the rank of features (``strength``). The source's tables of DomainBed are kept as data and drawn.
"""

from assay import lab

from .batches import arms as batches
from .identities import arms as identities
from .images import arms as images
from .optima import arms as optima
from .plane import arms as plane
from .strength import arms as strength


# Parameters of the last base are listed first.
class Params(strength.Params, plane.Params, batches.Params, optima.Params):
    """What all parts read; none of it must agree with another part's."""


study = lab.Study(
    "nuclear-norm",
    title="Nuclear-norm regularisation for domain generalisation",
    question="Does a low rank of features make a network rely less on what holds in its training domains only?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 6",
    params=Params,
    parts=(optima.part, batches.part, plane.part, identities.part, images.part, strength.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s"),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=8, cost="50 min"),
    },
)
