"""The arms on real images: weights on two classes, injected inputs, ResNet filters, double descent."""

from __future__ import annotations

import torch

from assay.data.images import load_images, two_classes
from assay.probes.directions import cluster_statistics, direction_maps

from . import injected_inputs as injected
from .image_networks import ResNetFilters, two_layer_weights
from .study import study

STARTS = {"standard": 1.0, "small": 0.1}


@study.arm("image-weights", over={"start": list(STARTS)}, uses=("images", "image_limit", "image_epochs"),
           needs=lambda p: (f"data:{p.images}",))  # fmt: skip
def image_weights(params, seeds, record, *, start):
    """Two-layer networks on the image classes 0 and 1: do first-layer weights cluster, and when do they move?"""
    sets = [
        two_classes(load_images(params.images, split, limit=params.image_limit), 0, 1) for split in ("train", "test")
    ]
    epochs = two_layer_weights(*sets, seeds, epochs=params.image_epochs, init_scale=STARTS[start])
    quarter = params.image_epochs // 4
    moved = []
    for look in epochs:
        record(step=look.epoch, movement=look.movement, test_accuracy=look.test_accuracy)
        moved.append(look.movement)
        if look.epoch in (0, params.image_epochs):
            found = [
                cluster_statistics(weights, 2, seed=seed) for weights, seed in zip(look.weights, seeds, strict=True)
            ]
            record(step=look.epoch, silhouette=[c.silhouette for c in found], within_cosine=[c.within for c in found])
    record(early_over_late=torch.stack(moved[1 : quarter + 1]).sum(0) / torch.stack(moved[-quarter:]).sum(0))
    maps = [direction_maps([weights])[0].points for weights in look.weights]
    record.array("weight_map", torch.stack(maps))


@study.arm("injected-inputs", over={"width": [9, 50]}, tolerance=0.05, needs=lambda p: (f"data:{p.images}",),
           uses=("images", "image_limit", "student_steps", "student_rate", "fractions"),
           working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def injected_inputs(params, seeds, record, *, width):
    """Students of a labelling teacher on images of which a share is replaced by Gaussian inputs."""
    sets = [load_images(params.images, split, limit=params.image_limit) for split in ("train", "test")]
    data = injected.labelled(*sets, seeds)
    training = injected.QuadraticTraining(params.student_steps, 200, params.student_rate)
    report = injected.injected_inputs(
        data, injected.gaussian_inputs(data, seeds), seeds, classes=sets[0].classes, student_width=width,
        fractions=params.fractions, teaching=training, studying=training,
        evaluate_every=max(1, params.student_steps // 25),
    )  # fmt: skip
    record(teacher_accuracy=report.teacher_accuracy)
    for curve in report.curves:
        steps = curve.steps.tolist()
        at = {"fraction": curve.fraction}
        record.curve(steps, at={**at, "part": "original"}, part_accuracy=curve.original)
        if curve.fraction:
            record.curve(steps, at={**at, "part": "injected"}, part_accuracy=curve.injected)
            record.curve(steps, at={**at, "part": "mixture"}, part_accuracy=curve.mixture)


@study.arm("resnet", over={"labels": ["true", "shuffled"]}, optional=True, tolerance=0.05,
           needs=lambda p: (f"data:{p.resnet_images}",),
           uses=("resnet_images", "resnet_width", "resnet_epochs", "resnet_rate", "resnet_limit"),
           working_set=lambda p: 64.0 * 2**20)  # fmt: skip
def resnet(params, seeds, record, *, labels):
    """A ResNet on two image classes: agreement of early gradients, and when its filters turn."""
    sets = [two_classes(load_images(params.resnet_images, split, limit=params.resnet_limit), 0, 1)
            for split in ("train", "test")]  # fmt: skip
    recipe = ResNetFilters.fitting(len(sets[0]), params.resnet_width, params.resnet_epochs, params.resnet_rate,
                                   shuffle_labels=labels == "shuffled")  # fmt: skip
    report = recipe.train(*sets, seeds)
    record(step=params.resnet_epochs, test_accuracy=report.test_accuracy[params.resnet_epochs])
    for stage in range(len(report.chunk_means)):
        early, late = report.turns(stage)
        record(at={"stage": stage + 1}, smallest_chunk_cosine=report.smallest_chunk_cosine(stage), early_turn=early,
               late_turn=late)  # fmt: skip


@study.arm("double-descent", optional=True, tolerance=0.05, needs=lambda p: (f"data:{p.images}",),
           uses=("images", "image_limit", "student_steps", "student_rate", "descent_widths", "descent_teachers"),
           working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def double_descent(params, seeds, record):
    """Test loss over width, of networks on images and on Gaussian inputs labelled by teachers of several sizes."""
    sets = [load_images(params.images, split, limit=params.image_limit) for split in ("train", "test")]
    training = injected.QuadraticTraining(params.student_steps, 200, params.student_rate)
    points = injected.double_descent(
        injected.labelled(*sets, seeds), seeds, widths=params.descent_widths, teachers=params.descent_teachers,
        classes=sets[0].classes, training=training, teaching=training,
    )  # fmt: skip
    for point in points:
        labels = "images" if point.teacher is None else f"FC({point.teacher})"
        record(at={"labelled_by": labels, "width": point.width}, test_loss=point.test_loss,
               width_accuracy=point.test_accuracy)  # fmt: skip
