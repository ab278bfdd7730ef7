"""Table 2 in small: contrastive pretraining on long-tailed images with and without forward pruning."""

from __future__ import annotations

from dataclasses import replace

from assay.data.images import load_images

from .image_learners import LongTail, Pretraining
from .study import study

MODES = {"none": None, "logit-masked": "logit_masked", "self-competitor": "self_competitor"}
IMAGES = ("images", "image_limit", "image_test", "image_largest", "image_network", "image_width", "image_epochs",
          "image_batch", "image_probe")  # fmt: skip
ALPHAS = (0.03, 0.1, 0.3, 0.6, 0.9)
TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them


def _recipe(params, **changes):
    usual = dict(network=params.image_network, width=params.image_width, epochs=params.image_epochs,
                 batch=params.image_batch)  # fmt: skip
    return Pretraining(**{**usual, **changes})


@study.arm("images", over={"pruning": list(MODES), "imbalance": lambda p: p.image_ratios}, tolerance=0.05,
           uses=(*IMAGES, "image_ratios", "image_rate", "image_alpha", "image_alpha_self"),
           needs=lambda p: (f"data:{p.images}",), working_set=lambda p: 64.0 * 2**30)  # fmt: skip
def images(params, seeds, record, *, pruning, imbalance):
    """Pretrain on a long tail, probe on balanced labels: accuracy and the gap between head and tail classes."""
    train = load_images(params.images, limit=params.image_limit)
    test = load_images(params.images, "test", limit=params.image_test)
    task = LongTail(train, test, imbalance, params.image_largest, params.image_probe)
    alpha = params.image_alpha_self if pruning == "self-competitor" else params.image_alpha
    recipe = _recipe(params, mode=MODES[pruning], rate=params.image_rate, alpha=alpha)
    runs = [task.run(recipe, seed, seeds.device) for seed in seeds]
    record(accuracy=[run.trained.accuracy for run in runs], gap=[run.trained.gap for run in runs],
           untrained_accuracy=[run.untrained.accuracy for run in runs], masked=[run.masked for run in runs],
           images=[run.images for run in runs])  # fmt: skip
    for epoch in range(params.image_epochs):
        record(step=epoch + 1, loss=[run.losses[epoch] for run in runs])


CANDIDATES = [
    *({"pruning": "none", "setting_tried": f"rate {rate}"} for rate in (0.03, 0.1, 0.3, 1.0)),
    *({"pruning": "logit-masked", "setting_tried": f"alpha {alpha}"} for alpha in ALPHAS),
    *({"pruning": "self-competitor", "setting_tried": f"alpha {alpha}"} for alpha in ALPHAS),
]


@study.arm("image-tuning", over=CANDIDATES, optional=True, tolerance=0.05,
           uses=(*IMAGES, "image_ratios", "image_rate"), needs=lambda p: (f"data:{p.images}",),
           working_set=lambda p: 64.0 * 2**30)  # fmt: skip
def image_tuning(params, seeds, record, *, pruning, setting_tried):
    """What image_rate, image_alpha and image_alpha_self can be chosen by: the same shares for both kinds of pruning, at
    the smallest ratio above 1, on tuning seeds and images kept for that."""
    pool = load_images(params.images, limit=params.image_limit)
    cut = len(pool) * 3 // 4
    train, validation = (
        replace(pool, images=pool.images[part], labels=pool.labels[part]) for part in (slice(cut), slice(cut, None))
    )
    ratio = min((rho for rho in params.image_ratios if rho > 1), default=1.0)
    task = LongTail(train, validation, ratio, params.image_largest, params.image_probe)
    name, value = setting_tried.split()
    recipe = _recipe(params, mode=MODES[pruning], **{"rate": params.image_rate, name: float(value)})
    runs = [task.run(recipe, TUNING_SEED + seed, seeds.device) for seed in seeds]
    record(validation_accuracy=[run.trained.accuracy for run in runs], validation_gap=[run.trained.gap for run in runs])
