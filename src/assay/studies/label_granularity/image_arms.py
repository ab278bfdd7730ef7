"""The arms on real images: label functions, checkpoints, read-outs, few samples, other classes, tiles, a ResNet."""

from __future__ import annotations

import torch

from assay.methods.granularity import granularity_report, max_readout

from .image_labels import class_tree, embedding, hierarchy_of, image_task
from .image_learners import recipe_of
from .learners import errors
from .resnet_sweep import ResNetSweep
from .study import study
from .tiles import SOURCES, Tiles, TileTraining, tile_errors

_IMAGES = ("images", "image_samples", "image_widths", "image_epochs", "image_batch", "image_rate", "finetune_rate",
           "probe_rate", "least_samples")  # fmt: skip
_OPTIONS = {"needs": lambda p: (f"data:{p.images}",), "tolerance": 0.1}
SCHEMES = ("clusters per class", "clusters of all", "random")
OTHERS = ("one pass", "coarse", "groups", "classes", "rebalanced", "random within", "one per sample")
_LEVELS = {"groups": 1, "classes": 0}


def _hierarchies(params, seeds, task, coarse, scheme, clusters):
    """The label function on every seed's images, and all seeds' fine labels (seeds, n)."""
    tree = class_tree(params.images)
    if scheme in _LEVELS:
        scheme, clusters = "tree", _LEVELS[scheme]
    found = [
        hierarchy_of(scheme, clusters, embedding(task.inputs[i]), task.leaves[i], coarse[i], seed, tree=tree,
                     least=params.least_samples)
        for i, seed in enumerate(seeds)
    ]  # fmt: skip
    return found, torch.stack([each.fine for each in found]).to(seeds.device)


def _superclass_task(params, seeds):
    task = image_task(params.images, seeds, params.image_samples)
    validation, test = ((inputs, task.target(leaves)) for inputs, leaves in (task.validation, task.test))
    return task, task.target(task.leaves), validation, test


def _transfer(params, seeds, record, scheme, clusters, *, wider=1, stop=1.0):
    """Pretrain with one label function, finetune to the superclasses, record the error."""
    task, coarse, validation, test = _superclass_task(params, seeds)
    recipe = recipe_of(params, wider=wider)
    if scheme == "one pass":
        result = recipe.onepass(task.inputs, coarse, validation, test, seeds)
        record(classes=2, error=result.error, rate=result.rate)
        return
    found, fine = _hierarchies(params, seeds, task, coarse, scheme, clusters)
    net = recipe.pretrain(task.inputs, fine, seeds, stop=stop)
    result = recipe.transfer(net, task.inputs, coarse, validation, test, seeds)
    reports = [granularity_report(each, embedding(task.inputs[i])) for i, each in enumerate(found)]
    record(classes=[float(each.classes) for each in found], error=result.error, rate=result.rate,
           purity=[each.purity for each in found], smallest=[float(each.smallest) for each in reports],
           lift=[each.lift if each.lift is not None else 0.0 for each in reports])  # fmt: skip
    if scheme == "rebalanced":
        sizes = torch.stack([torch.nn.functional.pad(s := each.counts.sum(1), (0, 128 - len(s))) for each in found])
        record.array("cluster_sizes", sizes)
        whole = [float(min(h.counts.sum(1)[h.fine_to_coarse == y].min() for y, c in h.chosen.items() if c > 1))
                 if max(h.chosen.values()) > 1 else float("nan") for h in found]  # fmt: skip
        record(smallest_split=whole)


@study.arm(
    "clusters", over={"scheme": SCHEMES, "clusters": lambda p: p.clusters}, uses=(*_IMAGES, "clusters"), **_OPTIONS
)
def clusters(params, seeds, record, *, scheme, clusters):
    """Clusters within the superclasses or of the whole set, and random labels, at several granularities."""
    _transfer(params, seeds, record, scheme, clusters)


@study.arm("hierarchies", over={"scheme": OTHERS}, uses=_IMAGES, **_OPTIONS)
def hierarchies(params, seeds, record, *, scheme):
    """The baselines, the levels of the class tree, rebalanced clusters, random labels and one label per image."""
    _transfer(params, seeds, record, scheme, 5)


@study.arm("checkpoints", over={"scheme": ["groups", "classes"], "epochs": [50, 70, 90]}, uses=_IMAGES, **_OPTIONS)
def checkpoints(params, seeds, record, *, scheme, epochs):
    """Finetuning from checkpoints after 50, 70 and 90 of 90 parts of pretraining."""
    _transfer(params, seeds, record, scheme, 5, stop=epochs / 90)


@study.arm("larger-network", over={"scheme": ["coarse", "groups", "classes", "random"]}, uses=_IMAGES, **_OPTIONS)
def larger_network(params, seeds, record, *, scheme):
    """A network twice as wide."""
    _transfer(params, seeds, record, scheme, 5, wider=2)


@study.arm("read-outs", over={"scheme": ["coarse", "classes"]}, uses=_IMAGES, **_OPTIONS)
def read_outs(params, seeds, record, *, scheme):
    """Long and short finetuning, a linear probe and the maximum, after coarse and after fine pretraining."""
    task, coarse, validation, test = _superclass_task(params, seeds)
    recipe = recipe_of(params)
    found, fine = _hierarchies(params, seeds, task, coarse, scheme, 5)
    net = recipe.pretrain(task.inputs, fine, seeds)
    short = max(1, params.image_epochs // 9)
    for name, options in {"finetune": {}, "short finetune": {"epochs": short}, "probe": {"readout": "probe"}}.items():
        result = recipe.transfer(net, task.inputs, coarse, validation, test, seeds, **options)
        record(at={"readout": name}, error=result.error)
    logits = net(test[0])
    scores = torch.stack([max_readout(out, each.fine_to_coarse.to(out.device)) for out, each in
                          zip(logits, found, strict=True)])  # fmt: skip
    record(at={"readout": "max"}, error=errors(scores, test[1]))


_STARVED = [{"scheme": "one pass"}, {"scheme": "coarse"}]
_STARVED += [{"scheme": scheme, "splits": n} for scheme in ("clusters per class", "random within") for n in (2, 4, 8)]


@study.arm("few-samples", over=_STARVED, uses=(*_IMAGES, "starved_samples"), **_OPTIONS)
def few_samples(params, seeds, record, *, scheme, splits=1):
    """The ten classes themselves as target, with few images of each, and their splits as fine labels."""
    task = image_task(params.images, seeds, params.image_samples).fewer(params.starved_samples)
    recipe = recipe_of(params)
    if scheme == "one pass":
        result = recipe.onepass(task.inputs, task.leaves, task.validation, task.test, seeds)
    else:
        _, fine = _hierarchies(params, seeds, task, task.leaves, scheme, splits)
        net = recipe.pretrain(task.inputs, fine, seeds)
        result = recipe.transfer(net, task.inputs, task.leaves, task.validation, task.test, seeds)
    record(classes=float(task.leaves.max() + 1) * splits, error=result.error, rate=result.rate)


SEEN, UNSEEN = (0, 1, 2, 5, 6, 7), (3, 4, 8, 9)
# granularity: the class of each of the six seen classes, or the clusters that each is split into
GRAINS = {2: (0, 0, 0, 1, 1, 1), 3: (0, 0, 1, 1, 2, 2), 6: (0, 1, 2, 3, 4, 5), 12: 2, 24: 4}


@study.arm("cross", over={"grain": list(GRAINS)}, uses=(*_IMAGES, "starved_samples"), **_OPTIONS)
def cross(params, seeds, record, *, grain):
    """Pretraining on six classes at several granularities, then four other classes with few images of each."""
    whole = image_task(params.images, seeds, params.image_samples)
    seen, unseen = whole.only(SEEN), whole.only(UNSEEN).fewer(params.starved_samples)
    recipe, groups = recipe_of(params), GRAINS[grain]
    if isinstance(groups, tuple):
        fine = torch.tensor(groups, device=seeds.device)[seen.leaves]
    else:
        _, fine = _hierarchies(params, seeds, seen, seen.leaves, "clusters per class", groups)
    net = recipe.pretrain(seen.inputs, fine, seeds)
    for readout in ("finetune", "probe"):
        result = recipe.transfer(
            net, unseen.inputs, unseen.leaves, unseen.validation, unseen.test, seeds, readout=readout
        )
        record(at={"readout": readout}, error=result.error, accuracy=1 - result.error, rate=result.rate)


@study.arm("tiles", over={"labels": ["coarse", "fine"]}, uses=("tiles", "tile_steps", "test_per_subclass"),
           tolerance=0.1, needs=lambda p: tuple({f"data:{name}" for name in SOURCES[p.tiles][0::2]}))  # fmt: skip
def tiles(params, seeds, record, *, labels):
    """Grids of real tiles with a convolutional network: does the theory's picture survive real pixels?"""
    problem = Tiles(params.tiles)
    layers = TileTraining(params.tile_steps).train(problem, seeds, labels)
    record(step=params.tile_steps, **tile_errors(layers, problem, seeds, labels, 4 * params.test_per_subclass))


_RESNET = {"optional": True, "tolerance": 0.1, "needs": lambda p: (f"data:{p.resnet_images}",),
           "working_set": lambda p: 8.0 * 2**30}  # fmt: skip
_RESNET_USES = ("resnet_images", "resnet_limit", "resnet_width", "resnet_epochs")


def _record_resnet(params, seeds, record, scheme, clusters):
    sweep = ResNetSweep(params.resnet_images, params.resnet_limit, params.resnet_width, params.resnet_epochs)
    found = [sweep.run(scheme, clusters, seed, seeds.device) for seed in seeds]
    record(error=[each.error for each in found], classes=[float(each.classes) for each in found],
           purity=[each.purity for each in found])  # fmt: skip


@study.arm("resnet-hierarchies", over={"scheme": ["one pass", "coarse", "groups", "classes", "one per sample"]},
           uses=_RESNET_USES, **_RESNET)  # fmt: skip
def resnet_hierarchies(params, seeds, record, *, scheme):
    """A ResNet: both baselines, the levels of the class tree and one label per image."""
    _record_resnet(params, seeds, record, scheme, 1)


@study.arm("resnet-clusters", over={"scheme": SCHEMES, "clusters": lambda p: p.resnet_clusters},
           uses=(*_RESNET_USES, "resnet_clusters"), **_RESNET)  # fmt: skip
def resnet_clusters(params, seeds, record, *, scheme, clusters):
    """A ResNet: clusters of self-supervised features and random labels at several granularities."""
    _record_resnet(params, seeds, record, scheme, clusters)
