"""Label granularity: why fine labels in pretraining help, on data with a hierarchy of features and on real images."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import available, first_available

from . import theory
from .dynamics import problem_of
from .image_labels import VALIDATION, class_tree, most_clusters, most_per_class
from .tiles import SOURCES


class Params(lab.Params):
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
    neurons: int = Field(10_000, ge=10, description="neurons m per class before pruning")
    threshold: float = Field(3.0, gt=0, description="initial threshold τ in units of σ0")
    scale: float = Field(1e-4, gt=0, description="initial scale σ0")
    rate: float = Field(0.05, gt=0, description="step size η")
    bias_rate: float = Field(0.05, ge=0, description="bias rate ρ")
    per_subclass: int = Field(4, ge=1, description="training samples per subclass and step")
    test_per_subclass: int = Field(16, ge=1, description="test samples per subclass, easy and hard each")
    coarse_steps: int = Field(400, ge=20, description="steps with coarse labels")
    fine_steps: int = Field(40, ge=10, description="steps with fine labels")
    finetune_steps: int = Field(20, ge=2, description="finetuning steps after fine pretraining")
    sweep: tuple[int, ...] = Field((2, 4, 8, 16, 24), min_length=3, description="numbers of subclasses k of the sweep")
    sweep_distractors: int = Field(2, ge=1, description="their distractors s†")
    sweep_steps: int = Field(100, ge=10, description="their steps")
    initial_neurons: tuple[PositiveInt, ...] = Field(
        (5_000, 50_000, 200_000), description="m where detectors are counted"
    )
    strong_noises: tuple[PositiveFloat, ...] = Field(
        (0.02, 0.1, 0.3, 1.0, 3.0), description="σ_ζ* of the second distractor"
    )
    full_neurons: int = Field(1000, ge=100, description="m of the unpruned runs that check the invariants")
    full_steps: int = Field(30, ge=3, description="their steps")
    twin_steps: int = Field(30, ge=3, description="steps on a finite set under other labels")
    twin_per_subclass: int = Field(8, ge=2, description="samples per subclass of that set")
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
    clusters: tuple[PositiveInt, ...] = Field(
        (2, 5, 10, 25, 50), description="clusters per superclass of the granularity curve"
    )
    least_samples: int = Field(20, ge=1, description="rebalanced clusters have more samples than this")
    starved_samples: int = Field(20, ge=8, description="images per class where samples are few, split in up to 8")
    tiles: str = Field("auto", description="tiles: digits, or mnist+fashion_mnist (auto: the latter when it is there)")
    tile_steps: int = Field(400, ge=1, description="training steps on tiles")
    resnet_images: str = Field("cifar10", description="image set of the ResNet sweep")
    resnet_limit: int = Field(20_000, ge=100, description="its training images")
    resnet_width: int = Field(32, ge=1, description="its width m (stages m, 2m, 4m, 8m)")
    resnet_epochs: int = Field(12, ge=1, description="epochs of each stage")
    resnet_clusters: tuple[PositiveInt, ...] = Field(
        (5, 25, 100), description="clusters per superclass of the ResNet sweep"
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Params:
        problem_of(self)  # refuses what no problem can be made of, as the next line does with unknown image sets
        _ = class_tree(self.images), class_tree(self.resnet_images)
        for k in self.sweep:
            problem_of(self, subclasses=k, distractors=self.sweep_distractors)
        for name in ("sweep", "initial_neurons", "strong_noises", "clusters", "resnet_clusters"):
            values = getattr(self, name)
            if not values or list(values) != sorted(set(values)):
                raise ValueError(f"{name} needs values that grow, not {values}")
        self._enough_detectors()
        self._enough_images()
        return self

    def _enough_detectors(self) -> None:
        expected = theory.expected_detectors(self.neurons, self.threshold, self.dim)
        if expected < 1:
            raise ValueError(
                f"{self.neurons} neurons at threshold {self.threshold:g} give {expected:.2g} detectors per feature, "
                "and 1 is the least"
            )

    def _enough_images(self) -> None:
        for name, images, samples in (
            ("clusters", self.images, self.image_samples),
            ("resnet_clusters", self.resnet_images, self.resnet_limit * 9 // 10),  # a tenth is for validation
        ):
            largest, most = getattr(self, name)[-1], most_clusters(images, samples)
            if largest > most:
                raise ValueError(f"{name} ask for {largest} in a superclass, and {samples} images allow {most}")
        most = most_per_class(self.images, self.image_samples)
        if self.starved_samples > most:
            raise ValueError(
                f"starved_samples asks for {self.starved_samples} of each class, and {self.image_samples} images of "
                f"{self.images} allow {most}"
            )

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "digits") if name == "auto" else name

    @field_validator("tiles")
    @classmethod
    def _resolve_tiles(cls, name: str) -> str:
        if name not in ("auto", *SOURCES):
            raise ValueError(f"tiles are {', '.join(SOURCES)} or auto")
        there = not available("mnist") and not available("fashion_mnist")
        return name if name != "auto" else "mnist+fashion_mnist" if there else "digits"


SETTINGS: dict[str, dict[str, Any]] = {"exact": {}, "bernoulli": {"counts": "bernoulli"}, "jitter": {"jitter": 0.1}}
_EIGHT = ("initial", "first-step", "exact", "sweep", "invariants", "clusters", "checkpoints", "larger-network",
          "read-outs", "tiles")  # fmt: skip

study = lab.Study(
    "label-granularity",
    title="Why fine labels in pretraining help",
    question="Why does pretraining on subclass labels beat training on the superclass labels that are wanted?",
    source="Hong, Cui, Fuxman, Chan and Luo, Why Fine-grained Labels in Pretraining Benefit Generalization?",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", subclasses=4, distractors=4, faint_low=0.7, faint_high=0.9, neurons=3000,
            coarse_steps=40, fine_steps=12, finetune_steps=3, test_per_subclass=4, sweep=(2, 4, 8), sweep_steps=10,
            initial_neurons=(2000, 10_000), strong_noises=(0.02, 1.0), full_neurons=400, full_steps=4, twin_steps=4,
            twin_per_subclass=2, images="digits", image_samples=400, image_widths=(24, 16), image_epochs=2,
            image_batch=100, clusters=(2, 5), least_samples=10, starved_samples=8, tiles="digits", tile_steps=4,
            resnet_images="digits", resnet_limit=120, resnet_width=2, resnet_epochs=1, resnet_clusters=(2,),
            settings={"bernoulli": dict(coarse_steps=20, fine_steps=10), "jitter": dict(coarse_steps=20)},
        ),
        "laptop": lab.Preset(
            seeds=16, cost="6 min",
            fewer={**dict.fromkeys(_EIGHT, 8), "hierarchies": 10, "clusters": 5, "invariants": 4, "checkpoints": 4,
                   "larger-network": 4, "bernoulli": 4, "jitter": 4, "strong-noise": 4, "tiles": 5, "twins": 4},
            settings={"bernoulli": dict(coarse_steps=200), "jitter": dict(coarse_steps=200)},
        ),
        "paper": lab.Preset(
            seeds=16, cost="12 min on a GPU", dim=100, subclasses=16, neurons=20_000, coarse_steps=1000,
            sweep=(2, 4, 8, 16, 24, 32), fewer={"resnet-hierarchies": 3, "resnet-clusters": 3},
            arms=("resnet-hierarchies", "resnet-clusters"),
        ),
    },
)  # fmt: skip

from . import hierarchical_arms, image_arms  # noqa: E402, F401 (the arms register themselves with the study)
