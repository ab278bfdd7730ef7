"""Table 2 in small: contrastive pretraining on long-tailed images with and without forward pruning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.data.images import load_images
from assay.methods.forward_pruning import Mode
from assay.training import Seeds

from ..params import check_rising
from .learners import LongTail, Network, Pretraining

MODES: dict[str, Mode | None] = {"none": None, "logit-masked": "logit_masked", "self-competitor": "self_competitor"}


class Params(lab.Params):
    images: str = Field("auto", description="image set (auto: fashion_mnist when $ASSAY_DATA has it, else digits)")
    image_limit: int = Field(60_000, ge=200, description="training images read at most")
    image_test: int = Field(10_000, ge=100, description="test images at most")
    image_largest: int | None = Field(None, ge=10, description="images of the largest class at most (none: all)")
    image_ratios: tuple[float, ...] = Field((10.0, 100.0), min_length=1, description="imbalance ratios ρ")
    image_network: Network = Field("cnn", description="backbone")
    image_width: int = Field(16, ge=1, description="its width (64 makes ResNet-18)")
    image_epochs: int = Field(20, ge=1, description="epochs of pretraining (the source states none)")
    image_batch: int = Field(64, ge=2, description="its batch")
    image_rate: float = Field(
        0.3, gt=0, description="its learning rate (from the grid of image-tuning on Fashion-MNIST; paper: CIFAR-10)"
    )
    image_alpha: float = Field(
        0.03,
        ge=0,
        lt=1,
        description="share of weights masked, logit-masked (from the grid of image-tuning on Fashion-MNIST; paper: "
        "CIFAR-10)",
    )
    image_alpha_self: float = Field(0.03, ge=0, lt=1, description="the same of the self-competitor, tuned likewise")
    image_probe: int = Field(200, ge=5, description="labelled images per class for the linear probe")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for others.
        return first_available("fashion_mnist", "digits") if name == "auto" else name

    @model_validator(mode="after")
    def _ratios_go_together(self) -> Params:
        check_rising(image_ratios=self.image_ratios)
        if min(self.image_ratios) < 1:
            raise ValueError("an imbalance ratio is at least 1")
        if self.image_largest is not None and self.image_largest < max(self.image_ratios):
            raise ValueError(
                f"with ρ = {max(self.image_ratios):g} and {self.image_largest} images in the largest class the "
                "smallest has none"
            )
        return self

    def pretraining(self, pruning: str, **changes: Any) -> Pretraining:
        """The recipe for a kind of pruning, with what an arm changes."""
        usual = Pretraining(self.image_network, self.image_width, self.image_epochs, self.image_batch, self.image_rate)
        return replace(usual, mode=MODES[pruning], **changes)


part = lab.Part(
    "images",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            images="digits",
            image_ratios=(5.0,),
            image_width=4,
            image_epochs=1,
            image_largest=40,
            image_batch=64,
            image_probe=20,
            image_test=200,
        ),
        "laptop": lab.PartPreset(
            image_limit=12_000,
            image_test=4_000,
            image_largest=300,
            image_probe=100,
            fewer={"image-tuning": 3},
        ),
        "paper": lab.PartPreset(
            images="cifar10",
            image_ratios=(100.0,),
            image_network="resnet",
            image_width=64,
            image_epochs=50,
            image_batch=512,
            image_rate=0.3,
            image_alpha=0.03,
            image_alpha_self=0.3,
            image_probe=5000,
            fewer={"images": 3, "image-tuning": 1},
        ),
    },
)

# What a pretraining and its probe depend on, whatever is pruned.
RECIPE = (
    "images",
    "image_limit",
    "image_test",
    "image_largest",
    "image_network",
    "image_width",
    "image_epochs",
    "image_batch",
    "image_probe",
    "image_rate",
)
RATES = (0.03, 0.1, 0.3, 1.0)
ALPHAS = (0.03, 0.1, 0.3, 0.6, 0.9)
TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them


@part.arm(
    "images",
    over={"pruning": list(MODES), "imbalance": lambda p: p.image_ratios},
    uses=(*RECIPE, "image_alpha", "image_alpha_self"),
    tolerance=0.05,
    needs=lambda p: (f"data:{p.images}",),
    chunk=1,
)
def images(params: Params, seeds: Seeds, record: lab.Recorder, *, pruning: str, imbalance: float) -> None:
    """Pretrain on a long tail, probe on balanced labels: accuracy and the gap between head and tail classes."""
    train = load_images(params.images, limit=params.image_limit)
    test = load_images(params.images, "test", limit=params.image_test)
    task = LongTail(train, test, imbalance, params.image_largest, params.image_probe)
    alpha = params.image_alpha_self if pruning == "self-competitor" else params.image_alpha
    recipe = params.pretraining(pruning, alpha=alpha)
    runs = [task.run(recipe, seed, seeds.device) for seed in seeds]
    record(
        trials=len(test),
        accuracy=[run.trained.accuracy for run in runs],
        untrained_accuracy=[run.untrained.accuracy for run in runs],
    )
    record(
        gap=[run.trained.gap for run in runs],
        masked=[run.masked for run in runs],
        images=[run.images for run in runs],
    )
    for epoch in range(params.image_epochs):
        record(step=epoch + 1, loss=[run.losses[epoch] for run in runs])


@part.arm(
    "image-tuning",
    over=[
        *({"pruning": "none", "setting_tried": f"rate {rate}"} for rate in RATES),
        *({"pruning": "logit-masked", "setting_tried": f"alpha {alpha}"} for alpha in ALPHAS),
        *({"pruning": "self-competitor", "setting_tried": f"alpha {alpha}"} for alpha in ALPHAS),
    ],
    uses=(*RECIPE, "image_ratios"),
    optional=True,
    tolerance=0.05,
    needs=lambda p: (f"data:{p.images}",),
    chunk=1,
)
def image_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, pruning: str, setting_tried: str) -> None:
    """What image_rate, image_alpha and image_alpha_self can be chosen by: the same shares for both kinds of pruning, at
    the smallest ratio above 1, on tuning seeds and images kept for that."""
    pool = load_images(params.images, limit=params.image_limit)
    cut = len(pool) * 3 // 4
    train, validation = (
        replace(pool, images=pool.images[rows], labels=pool.labels[rows]) for rows in (slice(cut), slice(cut, None))
    )
    ratio = min((rho for rho in params.image_ratios if rho > 1), default=1.0)
    task = LongTail(train, validation, ratio, params.image_largest, params.image_probe)
    name, value = setting_tried.split()
    recipe = params.pretraining(pruning, **{name: float(value)})
    runs = [task.run(recipe, TUNING_SEED + seed, seeds.device) for seed in seeds]
    record(trials=len(validation), validation_accuracy=[run.trained.accuracy for run in runs])
