"""What several parts read: the pattern problem and its settings, training on it, and real images."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.data.images import ImageSet, load_images
from assay.training import Seeds

from .learners import Fit, Stages
from .problem import Data, PatternProblem, label_counts

TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them

SETTINGS: dict[str, dict[str, Any]] = {
    "parity": {},
    "interval": dict(
        labels="interval",
        relevant=30,
        low=20,
        high=30,
        structured="independent",
        negative_share=None,
        half_width=100,
        steps=200,
    ),
    "low-dimension": dict(dim=100, basis="ambient"),
    "high-dimension": dict(dim=2000),
    "imbalance-80": dict(negative_share=0.8),
    "imbalance-90": dict(negative_share=0.9),
    "fewer-samples": dict(samples=25_000),
    "few-samples": dict(samples=10_000, half_width=50),
    "tiny-samples": dict(patterns=400, samples=2_000),  # where the second step's better angle is visible
}


class Patterns(lab.Params):
    """The pattern problem, its samples, and the network that takes its first steps there."""

    dim: int = Field(500, ge=2, description="input dimension d")
    patterns: int = Field(100, ge=2, description="number of patterns D")
    relevant: int = Field(5, ge=1, description="number of relevant patterns k")
    labels: Literal["parity", "threshold", "interval", "counts"] = Field("parity", description="the labelling rule")
    positive: tuple[NonNegativeInt, ...] = Field((), description="the counts labelled +1 under labels=counts")
    low: int = Field(0, ge=0, description="lower end of the interval labels")
    high: int = Field(0, ge=0, description="upper end of the interval labels")
    structured: Literal["mixture", "independent"] = Field("mixture", description="the structured input distribution")
    basis: Literal["pattern", "ambient"] = Field("pattern", description="coordinates in which networks are trained")
    background: float = Field(0.5, gt=0, lt=1, description="rate of the background patterns p_o")
    negative_share: float | None = Field(0.5, gt=0, lt=1, description="share of labels −1 (none: as it falls)")
    samples: int = Field(50_000, ge=100, description="training samples n")
    test_samples: int = Field(10_000, ge=100, description="test samples")
    half_width: int = Field(300, ge=2, description="m; the network has 2m neurons")
    forget: float = Field(1.0, ge=0, le=1, description="share of the weights that step one erases (theory: 1)")

    @model_validator(mode="after")
    def _labels_correlate(self) -> Self:
        stages = self.stages()  # refuses what no problem can be made of
        if stages.gamma <= 1e-9:
            raise ValueError(
                f"the relevant patterns have correlation γ = {stages.gamma:g} with the label, and the network's scales "
                "need γ > 0 (parity needs an odd number of relevant patterns)"
            )
        return self

    def problem(self, inputs: str = "structured", basis: str | None = None) -> PatternProblem:
        """The problem, in this basis if one is given; all ``inputs`` but ``uniform`` ones have structure."""
        if self.labels == "counts":
            counts = tuple(sorted(self.positive))
        else:
            counts = label_counts(self.labels, self.relevant, self.low, self.high)
        return PatternProblem(
            self.dim,
            self.patterns,
            self.relevant,
            counts,
            "uniform" if inputs == "uniform" else self.structured,
            self.background,
            negative_share=self.negative_share,
            basis=basis or self.basis,
        )

    def stages(self) -> Stages:
        """The constants of the first two steps."""
        # The structured problem's constants serve the unstructured runs too, where γ may be 0.
        problem = self.problem()
        share = min(problem.positive_share, 1 - problem.positive_share)
        rarest = 1.0 if abs(share - 0.5) < 1e-9 else share
        return Stages(self.relevant, self.half_width, problem.class_gap, problem.scale, self.forget, rarest)

    def data(self, problem: PatternProblem, seeds: Seeds) -> tuple[Data, Data]:
        """Training and test data."""
        return problem.sample(seeds, "train", self.samples), problem.sample(seeds, "test", self.test_samples)


class Training(Patterns):
    """Training on batches of the pattern problem, alike for the network and for what it is compared with."""

    steps: int = Field(600, ge=10, description="updates T of stage three and of every comparator")
    batch: int = Field(1000, ge=1, description="batch size of stage three")

    @model_validator(mode="after")
    def _batch_can_be_drawn(self) -> Self:
        if self.batch > self.samples:
            raise ValueError(f"a batch of {self.batch} cannot be drawn from {self.samples} samples")
        return self

    def fit(self, output_rate: float, weight_rate: float, optimizer: str, *, cool: bool, decay: float = 0.0) -> Fit:
        every = max(4, self.steps // 20)
        # Some methods are done within ten steps: looking early tells which is faster.
        early = (1, 2, 3, 4, 6, 8)
        return Fit(self.steps, self.batch, output_rate, weight_rate, optimizer, every, early, cool=cool, decay=decay)

    @property
    def step_bytes(self) -> float:
        """Bytes that one seed touches in a step: weights with Adam's moments, a batch, its activations and gates."""
        features = self.patterns if self.basis == "pattern" else self.dim
        neurons = 2 * self.half_width
        return 4.0 * (4 * neurons * features + self.batch * (features + 3 * neurons))


class Images(lab.Params):
    """The image set of the networks on real images."""

    images: str = Field("auto", description="image set (auto: mnist when $ASSAY_DATA has it, else digits)")
    image_limit: int = Field(60_000, ge=100, description="training images at most")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "digits") if name == "auto" else name

    def image_sets(self) -> tuple[ImageSet, ImageSet]:
        """Training and test images."""
        train, test = (load_images(self.images, split, limit=self.image_limit) for split in ("train", "test"))
        return train, test


class Students(Images):
    """Teachers and students on inputs that replace images."""

    student_steps: int = Field(3000, ge=20, description="updates of teachers and students on injected inputs")
    student_rate: float = Field(3e-3, gt=0, description="their Adam rate")


def check_distinct(**lists: tuple[object, ...]) -> None:
    """Refuse a list parameter that is empty or names a value twice."""
    for name, values in lists.items():
        if not values or len(set(values)) != len(values):
            raise ValueError(f"{name} needs at least one value and none of them twice, not {values}")
