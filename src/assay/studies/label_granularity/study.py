"""Label granularity: why fine labels in pretraining help, on data with a hierarchy of features and on real images.

On hierarchical patches the theory's network is followed from its start through training on coarse and on fine labels
to the hard samples that only one of them solves; invariants of the proofs and other labels are checked beside it. Real
images have the source's experiments in small, tiles of real pixels lie between the two, and a ResNet is optional.
"""

from assay import lab

from .coarse import arms as coarse
from .few_samples import arms as few_samples
from .fine import arms as fine
from .hard_samples import arms as hard_samples
from .images import arms as images
from .invariants import arms as invariants
from .resnet import arms as resnet
from .start import arms as start
from .tiles import arms as tiles
from .twins import arms as twins


# From the last part to the first: fields are listed from the last base on.
class Params(
    resnet.Params,
    tiles.Params,
    few_samples.Params,
    images.Params,
    twins.Params,
    invariants.Params,
    hard_samples.Params,
    fine.Params,
    coarse.Params,
    start.Params,
):
    """Every part checks what it reads; nothing is left for all of them together."""


study = lab.Study(
    "label-granularity",
    title="Why fine labels in pretraining help",
    question="Why does pretraining on subclass labels beat training on the superclass labels that are wanted?",
    source="Hong, Cui, Fuxman, Chan and Luo, Why Fine-grained Labels in Pretraining Benefit Generalization?",
    params=Params,
    parts=(
        start.part,
        coarse.part,
        fine.part,
        hard_samples.part,
        invariants.part,
        twins.part,
        images.part,
        few_samples.part,
        tiles.part,
        resnet.part,
    ),
    settings={"exact": {}, "bernoulli": {"counts": "bernoulli"}, "jitter": {"jitter": 0.1}},
    presets={
        "smoke": lab.Preset(
            seeds=3,
            cost="10 s",
            # patches
            subclasses=4,
            distractors=4,
            faint_low=0.7,
            faint_high=0.9,
            neurons=3000,
            test_per_subclass=4,
            # images
            images="digits",
            image_samples=400,
            image_widths=(24, 16),
            image_epochs=2,
            image_batch=100,
            least_samples=10,
        ),
        "laptop": lab.Preset(seeds=16, cost="6 min", fewer={"exact": 8, "bernoulli": 8, "jitter": 4}),
        "paper": lab.Preset(seeds=16, cost="12 min on a GPU", dim=100, subclasses=16, neurons=20_000),
    },
)
