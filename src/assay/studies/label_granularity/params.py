"""The parameters that several parts read: hierarchical patches with the theory's network, and images with a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.training import Seeds

from . import theory
from .images.learners import Recipe, Stage
from .images.problem import VALIDATION, ImageTask, class_tree, image_task
from .learners import Initialisation, TheorySGD, Training
from .problem import HierarchicalPatches

NEARLY_CLEAN = 1e-6  # of the noise: less than the gap between the thresholds of the detector sets


class PatchProblem(lab.Params):
    """Hierarchical patches."""

    dim: int = Field(64, ge=4, description="patch dimension d")
    patches: int = Field(24, ge=2, description="patches P per sample")
    subclasses: int = Field(8, ge=1, description="subclasses k per superclass")
    feature_patches: int = Field(6, ge=1, description="expected patches s* per feature")
    jitter: float = Field(0.0, ge=0, lt=1, description="strength jitter ι")
    noise: float = Field(0.002, ge=0, description="noise deviation σ_ζ on every patch")
    distractors: int = Field(4, ge=0, description="expected distractor patches s† of a hard sample")
    faint_low: float = Field(0.4, ge=0, description="least strength of a distractor")
    faint_high: float = Field(0.6, ge=0, description="largest strength of a distractor")
    strong_noise: float = Field(0.02, ge=0, description="deviation σ_ζ* of a hard sample's strong noise patch")
    counts: Literal["exact", "bernoulli"] = Field("exact", description="patch counts: exactly s*, or independent")

    @model_validator(mode="after")
    def _possible_problem(self) -> Self:
        self.problem()  # refuses what no problem can be made of
        return self

    def problem(self, **changes: Any) -> HierarchicalPatches:
        """The problem, with some of its fields changed."""
        problem = HierarchicalPatches(
            dim=self.dim,
            patches=self.patches,
            subclasses=self.subclasses,
            feature_patches=self.feature_patches,
            jitter=self.jitter,
            noise=self.noise,
            distractors=self.distractors,
            faint=(self.faint_low, self.faint_high),
            strong_noise=self.strong_noise,
            counts=self.counts,
        )
        return replace(problem, **changes)

    def critical_subclasses(self, **changes: Any) -> float:
        """k* of the problem, infinite where distractors have no strength."""
        return theory.critical_subclasses(self.problem(**changes))


class Patches(PatchProblem):
    """Hierarchical patches, the theory's network on them and its SGD."""

    neurons: int = Field(10_000, ge=10, description="neurons m per class before pruning")
    threshold: float = Field(3.0, gt=0, description="initial threshold τ in units of σ0")
    scale: float = Field(1e-4, gt=0, description="initial scale σ0")
    rate: float = Field(0.05, gt=0, description="step size η")
    bias_rate: float = Field(0.05, ge=0, description="bias rate ρ")
    per_subclass: int = Field(4, ge=1, description="training samples per subclass and step")

    @model_validator(mode="after")
    def _enough_detectors(self) -> Self:
        expected = self.expected_detectors()
        if expected < 1:
            raise ValueError(
                f"{self.neurons} neurons at threshold {self.threshold:g} give {expected:.2g} detectors per feature, "
                "and 1 is the least"
            )
        return self

    def initialisation(self, *, keep_rest: bool = False) -> Initialisation:
        return Initialisation(self.neurons, self.threshold, self.scale, keep_rest=keep_rest)

    def training(self, problem: HierarchicalPatches) -> Training:
        """Fresh samples of the problem in every step."""
        return Training(problem, self.per_subclass, TheorySGD(self.rate, self.bias_rate))

    def expected_detectors(self) -> float:
        """λ: the detectors of one feature in one class, in the mean."""
        return theory.expected_detectors(self.neurons, self.threshold, self.dim)

    def waking_share(self) -> float:
        """By what share noise can make the neurons of a feature more."""
        return theory.waking_share(self.threshold, self.initialisation().slack_for(self.problem()))

    def working_set(self, labels: str) -> float:
        """Bytes that one seed touches in a step: activations and gates of all awake neurons on all patches."""
        k = self.subclasses
        patches = self.patches if self.counts == "bernoulli" else 2 * self.feature_patches
        awake = (2 * k + 2) * theory.normal_tail(self.threshold - 0.1) * self.neurons
        classes = 2 if labels == "coarse" else 2 * k
        return 8.0 * 2 * k * self.per_subclass * patches * classes * awake


# The two laws of the numbers of patches, for families of claims that are judged under both.
EXACT: dict[str, Any] = {"setting": "exact", "law": "exact patch counts"}
RANDOM: dict[str, Any] = {"setting": "bernoulli", "law": "random patch counts"}
# The domain of claims about hard samples that distractors decide.
ABOVE: dict[str, Callable[[Patches], bool]] = {
    "k of at least 2.5 k*": lambda p: p.subclasses >= 2.5 * p.critical_subclasses()
}


class Testing(lab.Params):
    """On how much a trained network is tested."""

    test_per_subclass: int = Field(16, ge=1, description="test samples per subclass, easy and hard each")


class FineTraining(lab.Params):
    """How long fine labels are trained on."""

    fine_steps: int = Field(40, ge=10, description="steps with fine labels")


class Images(lab.Params):
    """An image set, the small network on it, and how both stages of a transfer train it."""

    images: str = Field("auto", description="image set (auto: mnist when $ASSAY_DATA has it, else digits)")
    image_samples: int = Field(
        1500, ge=VALIDATION, description="training images of each seed, fewer where a set is small"
    )
    image_widths: tuple[PositiveInt, PositiveInt] = Field((128, 64), description="hidden layers of the image network")
    image_epochs: int = Field(15, ge=1, description="epochs of each stage on images")
    image_batch: int = Field(200, ge=4, description="batch of pretraining; finetuning takes a quarter")
    image_rate: float = Field(0.2, gt=0, description="SGD rate of pretraining")
    finetune_rate: float = Field(
        0.05, gt=0, description="SGD rate of finetuning, searched at half and twice it as well"
    )
    probe_rate: float = Field(0.1, gt=0, description="SGD rate of linear probes, searched likewise")
    least_samples: int = Field(20, ge=1, description="rebalanced clusters have more samples than this")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "digits") if name == "auto" else name

    @model_validator(mode="after")
    def _known_images(self) -> Self:
        class_tree(self.images)  # refuses unknown image sets
        return self

    def data(self) -> tuple[str, ...]:
        """What arms on these images need."""
        return (f"data:{self.images}",)

    def task(self, seeds: Seeds) -> ImageTask:
        return image_task(self.images, seeds, self.image_samples)

    def recipe(self, *, wider: int = 1) -> Recipe:
        epochs, batch = self.image_epochs, self.image_batch
        quarter = max(1, batch // 4)
        return Recipe(
            tuple(wider * width for width in self.image_widths),
            pretraining=Stage(epochs, batch, self.image_rate),
            finetuning=Stage(epochs, quarter, self.finetune_rate),
            probing=Stage(epochs, quarter, self.probe_rate, decay=1e-6),
        )


def check_growing(name: str, values: Sequence[float]) -> None:
    """Refuse the values of a grid unless they grow."""
    if not values or list(values) != sorted(set(values)):
        raise ValueError(f"{name} needs values that grow, not {values}")
