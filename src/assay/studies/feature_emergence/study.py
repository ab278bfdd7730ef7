"""Feature emergence: what two gradient steps find in structured inputs, and what fixed features cannot."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.probes.directions import cosines, direction_maps
from assay.training.seeds import Seeds
from assay.training.two_layer import accuracies

from . import theory
from .emergence import check_good_networks, component_reports, mean_pairwise_cosine, tangents
from .learners import (
    PLAIN,
    Stages,
    emerge,
    features_of,
    initialise,
    train_head,
    train_linearised,
    train_network,
    train_relu,
)
from .setup import comparator_fit, fit_words, network_fit, problem_of, stages_of, working_set
from .variants import MIXTURES, CodeProblem, GaussianMixture

TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them
TUNED = ("adam 0.001", "adam 0.01", "adam 0.1", "adam 1", "sgd 0.0003", "sgd 0.001", "sgd 0.003",
         "sgd 0.01", "sgd 1")  # fmt: skip


class Params(lab.Params):
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
    steps: int = Field(600, ge=10, description="updates T of stage three and of every comparator")
    batch: int = Field(1000, ge=1, description="batch size of stage three")
    stage_three: Literal["practical", "theory"] = Field("practical", description="Adam, or SGD at the theory's rate")
    decay: float = Field(0.0, ge=0, description="λ of the regulariser in stage three")
    forget: float = Field(1.0, ge=0, le=1, description="share of the weights that step one erases (theory: 1)")
    output_rate: float = Field(1.0, gt=0, description="Adam's rate on output weights (network, one-, two-step heads)")
    weight_rate: float = Field(1e-3, ge=0, description="Adam's rate on the first layer in stage three")
    ntk: str = Field("sgd 0.001", description="optimizer and rate of the linearised network, tuned")
    random_features: str = Field("adam 0.01", description="optimizer and rate of the random-feature head, tuned")
    code_patterns: int = Field(250, ge=4, description="D of the hidden-code problem")
    code_relevant: int = Field(50, ge=2, description="k of the hidden-code problem")
    mixtures: tuple[Literal["100-4", "25-4", "100-5"], ...] = Field(
        ("100-4", "25-4", "100-5"), description="Gaussian mixtures by dimension and factors"
    )
    mixture_samples: int = Field(10_000, ge=100, description="training samples of the Gaussian mixture")
    mixture_width: int = Field(800, ge=2, description="neurons on the Gaussian mixture")
    mixture_epochs: tuple[NonNegativeInt, ...] = Field(
        (0, 50, 80), description="epochs at which its weights are looked at"
    )
    images: str = Field("auto", description="image set (auto: mnist when $ASSAY_DATA has it, else digits)")
    image_limit: int = Field(60_000, ge=100, description="training images at most")
    image_epochs: int = Field(20, ge=4, description="epochs of the two-layer networks on two image classes")
    student_steps: int = Field(3000, ge=20, description="updates of teachers and students on injected inputs")
    student_rate: float = Field(3e-3, gt=0, description="their Adam rate")
    fractions: tuple[Annotated[float, Field(ge=0.005, le=0.995)], ...] = Field(
        (0.25, 0.5, 0.75), description="shares of injected inputs, in batches of 200"
    )
    resnet_width: int = Field(128, ge=2, description="m of ResNet(m)")
    resnet_epochs: int = Field(20, ge=4, description="epochs of the ResNet")
    resnet_rate: float = Field(0.02, gt=0, description="its SGD rate")
    resnet_limit: int = Field(50_000, ge=200, description="images read for it, of all classes")
    resnet_images: str = Field("cifar10", description="image set of the ResNet")
    descent_widths: tuple[PositiveInt, ...] = Field(
        (2, 3, 5, 7, 9, 13, 20, 30, 50, 100, 200, 500), description="FC(m) sizes"
    )
    descent_teachers: tuple[PositiveInt, ...] = Field(
        (9, 50, 500), description="sizes of the teachers on Gaussian inputs"
    )

    @field_validator("ntk", "random_features")
    @classmethod
    def _known_candidate(cls, text: str) -> str:
        fit_words(text)
        return text

    @model_validator(mode="after")
    def _goes_together(self) -> Params:
        stages = stages_of(self)  # refuses what no problem can be made of
        if stages.gamma <= 1e-9:
            raise ValueError(
                f"the relevant patterns have correlation γ = {stages.gamma:g} with the label, and the network's scales "
                "need γ > 0 (parity needs an odd number of relevant patterns)"
            )
        CodeProblem(self.code_patterns, self.code_relevant)
        if self.batch > self.samples:
            raise ValueError(f"a batch of {self.batch} cannot be drawn from {self.samples} samples")
        for name in ("mixtures", "mixture_epochs", "fractions", "descent_widths", "descent_teachers"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} needs at least one value and none of them twice, not {values}")
        if 0 not in self.mixture_epochs:
            raise ValueError(f"mixture_epochs must include 0, where the others start from, not {self.mixture_epochs}")
        return self

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "digits") if name == "auto" else name


SETTINGS: dict[str, dict[str, Any]] = {
    "parity": {},
    "interval": dict(labels="interval", relevant=30, low=20, high=30, structured="independent", negative_share=None,
                     half_width=100, steps=200, ntk="adam 0.1", random_features="adam 1"),
    "low-dimension": dict(dim=100, basis="ambient"),
    "high-dimension": dict(dim=2000),
    "imbalance-80": dict(negative_share=0.8),
    "imbalance-90": dict(negative_share=0.9),
    "fewer-samples": dict(samples=25_000),
    "few-samples": dict(samples=10_000, half_width=50),
    "tiny-samples": dict(patterns=400, samples=2_000),  # where the second step's better angle is visible
}  # fmt: skip

_beside = dict(half_width=50, steps=300, samples=20_000)
_imbalanced = dict(half_width=200, steps=600)  # a rare class takes the source's T, and more neurons than the others
study = lab.Study(
    "feature-emergence",
    title="Feature emergence from structured inputs",
    question="How do useful features emerge under gradient descent, and must the inputs have structure for that?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 2 and its appendix; Shi, Wei and "
    "Liang, A Theoretical Analysis on Feature Learning in Neural Networks: Emergence from Inputs "
    "and Advantage over Fixed Features",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", dim=60, patterns=30, relevant=3, samples=2_000, test_samples=500, half_width=20,
            steps=40, batch=250, code_patterns=60, code_relevant=20, mixture_samples=600, mixture_width=100,
            mixture_epochs=(0, 12), images="digits", image_epochs=8, student_steps=40, student_rate=1e-2,
            fractions=(0.5,), resnet_width=2, resnet_epochs=6, resnet_images="digits", resnet_limit=600,
            descent_widths=(2, 5, 9), descent_teachers=(9,),
            settings={
                "interval": dict(relevant=12, low=8, high=12, half_width=20, steps=30),
                "low-dimension": dict(dim=30), "high-dimension": dict(dim=200),
                "fewer-samples": dict(samples=1_500), "few-samples": dict(samples=1_000, half_width=10),
                "tiny-samples": dict(patterns=60, samples=600),
            },
        ),
        "laptop": lab.Preset(
            seeds=8, cost="5 min", samples=20_000, test_samples=5_000, half_width=100, steps=300, ntk="sgd 0.003",
            code_patterns=150, code_relevant=50, mixtures=("100-4", "25-4"), mixture_samples=4_000,
            mixture_epochs=(0, 30, 50), image_limit=5_000, student_steps=500, resnet_width=16, resnet_limit=5_000,
            descent_widths=(1, 2, 3, 4, 6, 9, 13, 20, 30, 50), descent_teachers=(9, 50),
            fewer={**{name: 4 for name in SETTINGS if name != "parity"}, "tiny-samples": 8, "tuning": 3, "codes": 4,
                   "mixture": 4, "injected-inputs": 4, "resnet": 3, "double-descent": 3},
            settings={
                "low-dimension": _beside, "high-dimension": _beside,
                "imbalance-80": _imbalanced, "imbalance-90": _imbalanced,
                "fewer-samples": {**_beside, "samples": 10_000}, "few-samples": {**_beside, "samples": 4_000},
            },
        ),
        "paper": lab.Preset(
            seeds=5, cost="11 min on a GPU", basis="ambient", fewer={"resnet": 3}, arms=("resnet", "double-descent")
        ),
    },
)  # fmt: skip

_COMPARED = [name for name in SETTINGS if name != "tiny-samples"]
_MAIN = ("parity", "interval")
BOTH = [{"setting": name, "inputs": "structured"} for name in _COMPARED]
BOTH += [{"setting": name, "inputs": "uniform"} for name in _MAIN]
_PROBLEM = ("dim", "patterns", "relevant", "labels", "positive", "low", "high", "structured", "basis", "background",
            "negative_share", "samples", "test_samples", "half_width", "forget")  # fmt: skip
_FIT = ("steps", "batch", "output_rate", "weight_rate", "stage_three", "decay")


def _experiment(params: Any, seeds: Seeds, inputs: str) -> tuple[Any, Any, Any, Any]:
    """The problem, the constants of the first steps, training and test data."""
    problem = problem_of(params, inputs)
    data = (problem.sample(seeds, name, n) for name, n in (("train", params.samples), ("test", params.test_samples)))
    return problem, stages_of(params), *data


def _record_curve(record: Any, runs: Any, test: Any, train: Any, at: dict[str, str] | None = None) -> Any:
    """Record test accuracy along the way and training accuracy at the end; returns the last predictor."""
    predict = None
    for step, predict in runs:
        plain, balanced = accuracies(predict, *test)
        record(step=step, at=at, test_accuracy=plain, balanced_accuracy=balanced)
    record(step=step, at=at, train_accuracy=accuracies(predict, *train)[0])
    return predict


@study.arm("good-network", uses=("relevant",), dtype="float64", tolerance=1e-9)
def good_network(params, seeds, record):
    """The constructed network of 3(k+1) neurons on random label sets, means and sizes."""
    draws = seeds.uniform("label sets", 100, 60)
    errors, outputs, biases = zip(*(check_good_networks(each, 2 * params.relevant) for each in draws), strict=True)
    record(largest_error=errors, output_share_of_bound=outputs, bias_share_of_bound=biases)


@study.arm(
    "emergence",
    over=[{"setting": name, "inputs": "structured"} for name in SETTINGS]
    + [{"setting": "parity", "inputs": name} for name in ("uniform", "shuffled")],
    uses=_PROBLEM,
    working_set=lambda p: 4.0 * p.samples * p.dim,
)
def emergence(params, seeds, record, *, setting, inputs):
    """The first two steps in the ambient space: angles, gradient components and a map of the neurons."""
    problem, stages = problem_of(params, inputs, "ambient"), stages_of(params)
    hidden, y = replace(problem, basis="pattern").sample(seeds, "train", params.samples)
    dictionary, truth = problem.dictionary(seeds), problem.truth(seeds)
    if inputs == "shuffled":
        y = y.gather(1, seeds.permutation("shuffled labels", params.samples))
    start = initialise(seeds, stages, params.dim)
    one, two = emerge(start, hidden @ dictionary.mT, y, stages)
    for step, net in enumerate((start, one, two)):
        cos, tan = cosines(net.weights, truth)[..., 0], tangents(net.weights, truth)
        record(step=step, largest_cosine=cos.amax(1), median_cosine=cos.abs().median(1).values,
               smallest_cosine=cos.abs().amin(1), tangent=tan.square().mean(1).sqrt())  # fmt: skip
    if inputs == "structured" and setting in ("parity", "tiny-samples"):
        nets = [replace(net, weights=net.weights @ dictionary) for net in (start, one)]
        for report in component_reports(problem, stages, nets, hidden, y, problem.relevant_set(seeds)):
            record(step=report.step, **report.metrics())
            record.array("gate", report.gate, step=report.step)
            record.array("signal", report.signal, step=report.step)
    if inputs == "structured" and setting == "parity":
        maps = [direction_maps([net.weights[i] for net in (start, one, two)], torch.cat([truth[i], -truth[i]]))
                for i in range(len(seeds))]  # fmt: skip
        for step in range(3):
            record.array("map", torch.stack([torch.cat([m[step].points, m[step].references]) for m in maps]), step=step)


@study.arm("network", tolerance=0.05, over=[*BOTH, {"setting": "parity", "inputs": "shuffled"}], uses=_PROBLEM + _FIT,
           working_set=working_set)  # fmt: skip
def network(params, seeds, record, *, setting, inputs):
    """Two erase-and-step stages, then both layers trained."""
    problem, stages, train, test = _experiment(params, seeds, inputs)
    if inputs == "shuffled":
        train = (train[0], train[1].gather(1, seeds.permutation("shuffled labels", params.samples)))
    two = emerge(initialise(seeds, stages, problem.features), *train, stages)[1]
    runs = train_network(two, *train, network_fit(params), seeds)
    predict = _record_curve(record, ((step, partial(net, activation=PLAIN)) for step, net in runs), test, train)
    record(largest_cosine=cosines(predict.func.weights, problem.truth(seeds))[..., 0].amax(1))


@study.arm("ntk", tolerance=0.05, over=BOTH, uses=(*_PROBLEM, "steps", "batch", "ntk"), working_set=working_set)
def ntk(params, seeds, record, *, setting, inputs):
    """The network linearised at its initialisation, every parameter of the linear model trained."""
    problem, stages, train, test = _experiment(params, seeds, inputs)
    start = initialise(seeds, stages, problem.features)
    _record_curve(record, train_linearised(start, *train, comparator_fit(params, params.ntk), seeds), test, train)
    record.note(fit=params.ntk)


@study.arm("random-features", tolerance=0.05, over=BOTH, uses=(*_PROBLEM, "steps", "batch", "random_features"),
           working_set=working_set)  # fmt: skip
def random_features(params, seeds, record, *, setting, inputs):
    """The first layer frozen at its initialisation, a head trained on top."""
    problem, stages, train, test = _experiment(params, seeds, inputs)
    start = initialise(seeds, stages, problem.features)
    fit = comparator_fit(params, params.random_features)
    predict = _record_curve(record, train_head(features_of(start), *train, fit, seeds), test, train)
    margin = 1 - test[1] * predict(test[0])
    record(hinge_loss=margin.clamp(min=0).mean(1))
    norm = predict.weights.norm(dim=1).tolist()
    bounds = [theory.bessel_bound(problem.background, 2 * params.half_width, b, problem.relevant, problem.patterns)
              for b in norm]  # fmt: skip
    record(head_norm=norm, bessel_bound=bounds)
    record.note(fit=params.random_features)


def _record_heads(params, seeds, record, heads, after):
    problem, stages, train, test = _experiment(params, seeds, "structured")
    nets = emerge(initialise(seeds, stages, problem.features), *train, stages)
    fit = replace(network_fit(params), weight_rate=0.0, every=params.steps, early=())  # the end is what counts
    for head in heads:
        features = features_of(nets[after], head, like=nets[1], inputs=train[0])
        _record_curve(record, train_head(features, *train, fit, seeds), test, train, {"head": head})


@study.arm("one-step", tolerance=0.05, over={"setting": _COMPARED}, uses=_PROBLEM + _FIT, working_set=working_set)
def one_step(params, seeds, record, *, setting):
    """Heads on the features after one step: as they are, with the norms of step two, and standardised."""
    heads = ("raw", "rescaled", "standardised") if setting in _MAIN else ("raw", "rescaled")
    _record_heads(params, seeds, record, heads, 0)


@study.arm("two-step", tolerance=0.05, over={"setting": _COMPARED}, uses=_PROBLEM + _FIT, working_set=working_set)
def two_step(params, seeds, record, *, setting):
    """A head on the features after two steps, as they are."""
    _record_heads(params, seeds, record, ("raw",), 1)


@study.arm("tuning", tolerance=0.05, uses=(*_PROBLEM, "steps", "batch"), working_set=working_set,
           over={"setting": _MAIN, "comparator": ("ntk", "random-features"), "candidate": TUNED})  # fmt: skip
def tuning(params, seeds, record, *, setting, comparator, candidate):
    """An optimizer and rate of the grid for a comparator, on seeds and data kept for tuning."""
    seeds = Seeds(tuple(TUNING_SEED + seed for seed in seeds), seeds.device, seeds.dtype)
    problem, stages = problem_of(params), stages_of(params)
    train = problem.sample(seeds, "train", params.samples)
    validation = problem.sample(seeds, "validation", params.test_samples)
    start = initialise(seeds, stages, problem.features)
    fit = replace(comparator_fit(params, candidate), every=params.steps, early=())
    learn = partial(train_linearised, start) if comparator == "ntk" else partial(train_head, features_of(start))
    for step, predict in learn(*train, fit, seeds):
        record(step=step, validation_accuracy=accuracies(predict, *validation)[0])


@study.arm("codes", uses=("code_patterns", "code_relevant", "samples", "half_width"))
def codes(params, seeds, record):
    """Two steps on labels of hidden codes, where no count of patterns tells the label."""
    problem = CodeProblem(params.code_patterns, params.code_relevant)
    fixed = Seeds((TUNING_SEED,))  # one set of constants, so that a seed's run does not depend on its company
    stages = Stages(params.code_relevant, params.half_width, problem.correlation(fixed), problem.scale(fixed))
    x, y = problem.sample(seeds, "train", params.samples)
    start = initialise(seeds, stages, problem.features)
    for step, net in enumerate((start, *emerge(start, x, y, stages))):
        cos = cosines(net.weights, problem.truth(seeds))[..., 0].abs()
        record(step=step, pairwise_cosine=mean_pairwise_cosine(net.weights), largest_cosine=cos.amax(1))


@study.arm("mixture", over={"mixture": lambda p: p.mixtures},
           uses=("mixture_samples", "mixture_width", "mixture_epochs", "test_samples"),
           working_set=lambda p: 4.0 * (5 * p.mixture_width * 100 + 128 * (100 + 3 * p.mixture_width)))  # fmt: skip
def mixture(params, seeds, record, *, mixture):
    """Ordinary training on Gaussian clusters at the vertices of a cube."""
    problem = GaussianMixture(*MIXTURES[mixture])
    data = problem.sample(seeds, "train", params.mixture_samples)
    test = problem.sample(seeds, "test", params.test_samples)
    centres, starts = problem.truth(seeds), []
    for run in train_relu(data, test, seeds, width=params.mixture_width, epochs=params.mixture_epochs):
        best = cosines(run.weights, centres).amax(1)  # (seeds, centres): the nearest neuron of every centre
        starts.append(best)
        record(step=run.epoch, worst_centre_cosine=best.amin(1), smallest_rise=(best - starts[0]).amin(1),
               test_accuracy=run.test_accuracy)  # fmt: skip
        record.array("centre_cosines", best, step=run.epoch)


from . import image_arms  # noqa: E402, F401 (the arms on real images register themselves with the study)
