"""Label granularity: why fine labels in pretraining help, on data with a hierarchy of features and on real images."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from pydantic import Field, field_validator, model_validator

from assay import lab
from assay.data.images import available
from assay.methods.granularity import max_readout

from . import theory
from .dynamics import (
    LABELS,
    Detectors,
    class_count,
    error_report,
    firing_counts,
    initialisation_of,
    own_outputs,
    problem_of,
    residual_for,
    training_of,
    working_set,
)
from .image_labels import class_tree
from .invariants import invariants_over
from .learners import errors, max_readout_residual, superclass_of
from .problem import STRONG
from .tiles import SOURCES
from .twins import TWINS, twin_errors


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
    initial_neurons: tuple[int, ...] = Field((5_000, 50_000, 200_000), description="m where detectors are counted")
    strong_noises: tuple[float, ...] = Field((0.02, 0.1, 0.3, 1.0, 3.0), description="σ_ζ* of the second distractor")
    full_neurons: int = Field(1000, ge=100, description="m of the unpruned runs that check the invariants")
    full_steps: int = Field(30, ge=3, description="their steps")
    twin_steps: int = Field(30, ge=3, description="steps on a finite set under other labels")
    twin_per_subclass: int = Field(8, ge=2, description="samples per subclass of that set")
    images: str = Field("auto", description="image set (auto: mnist when $ASSAY_DATA has it, else digits)")
    image_samples: int = Field(1500, ge=100, description="training images of each seed, fewer where a set is small")
    image_widths: tuple[int, int] = Field((128, 64), description="hidden layers of the image network")
    image_epochs: int = Field(15, ge=1, description="epochs of each stage on images")
    image_batch: int = Field(200, ge=4, description="batch of pretraining; finetuning takes a quarter")
    image_rate: float = Field(0.2, gt=0, description="SGD rate of pretraining")
    finetune_rate: float = Field(
        0.05, gt=0, description="SGD rate of finetuning, searched at half and twice it as well"
    )
    probe_rate: float = Field(0.1, gt=0, description="SGD rate of linear probes, searched likewise")
    clusters: tuple[int, ...] = Field(
        (2, 5, 10, 25, 50), description="clusters per superclass of the granularity curve"
    )
    least_samples: int = Field(20, ge=1, description="rebalanced clusters have more samples than this")
    starved_samples: int = Field(20, ge=4, description="images per class where samples are few")
    tiles: str = Field("auto", description="tiles: digits, or mnist+fashion_mnist (auto: the latter when it is there)")
    tile_steps: int = Field(400, ge=1, description="training steps on tiles")
    resnet_images: str = Field("cifar10", description="image set of the ResNet sweep")
    resnet_limit: int = Field(20_000, ge=100, description="its training images")
    resnet_width: int = Field(32, ge=1, description="its width m (stages m, 2m, 4m, 8m)")
    resnet_epochs: int = Field(12, ge=1, description="epochs of each stage")
    resnet_clusters: tuple[int, ...] = Field((5, 25, 100), description="clusters per superclass of the ResNet sweep")

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
        return self

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return name if name != "auto" else "digits" if available("mnist") else "mnist"

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
    source="Why Fine-grained Labels in Pretraining Benefit Generalization?",
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
            seeds=16, cost="5 min",
            fewer={**dict.fromkeys(_EIGHT, 8), "bernoulli": 4, "jitter": 4, "strong-noise": 4, "twins": 4},
            settings={"bernoulli": dict(coarse_steps=200), "jitter": dict(coarse_steps=200)},
        ),
        "paper": lab.Preset(
            seeds=16, cost="12 min on a GPU", dim=100, subclasses=16, neurons=20_000, coarse_steps=1000,
            sweep=(2, 4, 8, 16, 24, 32), fewer={"resnet-hierarchies": 3, "resnet-clusters": 3},
            arms=("resnet-hierarchies", "resnet-clusters"),
        ),
    },
)  # fmt: skip

_PROBLEM = ("dim", "patches", "subclasses", "feature_patches", "jitter", "noise", "distractors", "faint_low",
            "faint_high", "strong_noise", "counts")  # fmt: skip
_NETWORK = ("neurons", "threshold", "scale")
_SGD = ("rate", "bias_rate", "per_subclass")
_THEORY = _PROBLEM + _NETWORK + _SGD
_PART = 10_000  # neurons drawn at a time where only counts are wanted


def _test_sets(params: Any, problem: Any, seeds: Any) -> tuple[Any, Any]:
    compact = problem.counts == "exact"
    n = params.test_per_subclass
    easy, hard = (problem.sample(seeds, f"test {h}", n, hard=h, compact=compact) for h in (False, True))
    return easy, hard


@study.arm("initial", over={"m": lambda p: p.initial_neurons}, uses=("dim", "subclasses", "threshold"),
           working_set=lambda p: 4.0 * _PART * p.dim)  # fmt: skip
def initial(params, seeds, record, *, m):
    """Detectors of every dictionary vector and its response before training, in one class of m neurons."""
    low, high = theory.thresholds(params.threshold, params.dim)
    counts, responses = 0.0, 0.0
    for part, size in enumerate([min(_PART, m - start) for start in range(0, m, _PART)]):
        weights = seeds.normal(f"initial neurons {part}", size, params.dim)
        single = (weights >= high) & ((weights >= low).sum(-1, keepdim=True) <= 1)
        counts = counts + single.sum(1).double()
        responses = responses + torch.relu(weights - params.threshold).sum(1).double()
    expected = theory.expected_detectors(m, params.threshold, params.dim)
    features = 2 * params.subclasses + 2
    record(mean_count=counts.mean(1), expected_count=expected, fewest=counts[:, :features].amin(1),
           relative_spread=counts.std(1) / counts.mean(1),
           response_ratio=responses[:, :2].mean(1) / responses[:, 2:features].mean(1))  # fmt: skip


_NEARLY_CLEAN = 1e-6  # of the noise: less than the gap between the thresholds of the detector sets


@study.arm("first-step", over={"labels": LABELS}, uses=_THEORY, dtype="float64", tolerance=1e-6,
           working_set=lambda p: 2 * working_set(p, "fine"))  # fmt: skip
def first_step(params, seeds, record, *, labels):
    """The first three updates with hardly any noise: are members of one detector set moved alike, and how far?"""
    problem = problem_of(params, noise=_NEARLY_CLEAN, counts="exact")
    init, training = initialisation_of(params), training_of(params, problem)
    start = init.draw(seeds, class_count(labels, problem), problem).network
    detectors = Detectors.at(start, problem, labels, init)
    formula = theory.coarse_first_step if labels == "coarse" else theory.fine_first_step
    predicted = formula(params.rate, problem.subclasses, problem.feature_patches, problem.patches)
    spreads = []
    for step, _, update in training.run(start, seeds, 3, residual_for(labels, problem)):
        spreads.append(detectors.spread(update.movement))
        if step == 1:
            common, subclass = detectors.growth(update.network)
            record(common_over_predicted=common / predicted.common, ratio_over_predicted=common / subclass /
                   predicted.ratio, subclass_over_predicted=subclass / predicted.subclass)  # fmt: skip
    record(spread_within_sets=torch.stack(spreads).amax(0))


def _looks(steps: int) -> set[int]:
    """The steps at which a run is looked at: dense at first, then every tenth."""
    return {*range(1, 11), *range(10, steps + 1, 10), steps} & set(range(steps + 1))


@study.arm("coarse", over={"setting": ["exact", "bernoulli", "jitter"]}, tolerance=0.02,
           uses=(*_THEORY, "coarse_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "coarse"))  # fmt: skip
def coarse(params, seeds, record, *, setting):
    """Training on the two superclasses: errors, growth of common and subclass detectors, the logarithmic law."""
    problem, init = problem_of(params), initialisation_of(params)
    start = init.draw(seeds, 2, problem).network
    detectors, (easy, hard) = Detectors.at(start, problem, "coarse", init), _test_sets(params, problem, seeds)
    record(step=0, **error_report(start, easy, hard, "coarse"))
    looks = _looks(params.coarse_steps)
    for step, batch, update in training_of(params, problem).run(
        start, seeds, params.coarse_steps, residual_for("coarse", problem)
    ):
        if step not in looks:
            continue
        network = update.network
        _record_state(record, step, detectors, network, easy, hard, "coarse")
        right = batch.superclass.expand(len(seeds), -1)
        record(step=step, train_loss=torch.nn.functional.cross_entropy(
            update.outputs.mT, right, reduction="none").mean(1))  # fmt: skip
        outputs = own_outputs(network, easy, "coarse")
        for y, name in enumerate("+−"):
            record(step=step, at={"superclass": name}, own_output=outputs[:, y])
    counted = [count.double() for count in detectors.counts()]
    at_start = (counted[0], counted[1].mean(-1))
    for kind, (common, subclass) in (("firing", firing_counts(network, problem, "coarse")), ("initial", at_start)):
        for y, name in enumerate("+−"):
            constant = theory.log_law_constant(
                params.rate, problem.subclasses, problem.feature_patches, problem.patches, params.bias_rate,
                common[:, y], subclass[:, y],
            )  # fmt: skip
            record(at={"superclass": name, "counted": kind}, log_law_constant=constant)
    wrong = network.outputs(hard.patches).diff(dim=-1).squeeze(-1) * (1 - 2 * hard.superclass) >= 0
    rule = theory.hard_rule(hard, network.projections(problem.features), network.biases)
    record(rule_agreement=(rule == wrong).double().mean(1), fewest_detectors=counted[1].flatten(1).amin(1))


def _record_state(record, step, detectors, network, easy, hard, labels):
    growth, answers = detectors.growth(network), detectors.responses(network)
    record(step=step, growth_common=growth[0], growth_subclass=growth[1], growth_ratio=growth[0] / growth[1],
           response_common=answers[0], response_subclass=answers[1],
           **error_report(network, easy, hard, labels))  # fmt: skip


@study.arm("fine", over={"setting": ["exact", "bernoulli"]}, tolerance=0.05,
           uses=(*_THEORY, "fine_steps", "finetune_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "fine"))  # fmt: skip
def fine(params, seeds, record, *, setting):
    """Training on the subclasses with the maximum as read-out, what it has at T0, and finetuning afterwards."""
    problem, init = problem_of(params), initialisation_of(params)
    k, unit = problem.subclasses, params.rate * problem.feature_patches / (2 * problem.subclasses * problem.patches)
    start = init.draw(seeds, 2 * k, problem).network
    detectors, (easy, hard) = Detectors.at(start, problem, "fine", init), _test_sets(params, problem, seeds)
    training = training_of(params, problem)
    looks, before = _looks(params.fine_steps), (0.0, 0.0)
    reached = torch.full((len(seeds),), math.inf, dtype=torch.float64)
    lowest, highest, at_t0, prior = reached.clone(), -reached, {}, start
    for step, _, update in training.run(start, seeds, params.fine_steps, residual_for("fine", problem)):
        arrived = (update.outputs.amax((1, 2)) >= theory.OUTPUT_BOUND).cpu() & reached.isinf()
        reached[arrived] = step - 1
        growth = detectors.growth(update.network)
        moved = [(now - then).cpu() for now, then in zip(growth, before, strict=True)]
        running, coefficient, before = reached.isinf(), moved[0] / unit, growth
        lowest = torch.where(running, torch.minimum(lowest, coefficient), lowest)
        highest = torch.where(running, torch.maximum(highest, coefficient), highest)
        if step in looks:
            _record_state(record, step, detectors, update.network, easy, hard, "fine")
            record(step=step, growth_per_step_ratio=moved[0] / moved[1], common_coefficient=coefficient)
        if bool(arrived.any()) or step == params.fine_steps:
            now = _at_t0(detectors, prior, easy, hard, problem)
            late = reached.isinf() if step == params.fine_steps else arrived
            for name, values in now.items():
                at_t0[name] = torch.where(late, values, at_t0.get(name, torch.full_like(values, math.nan)))
        prior = update.network
    reached = torch.where(reached.isinf(), params.fine_steps, reached)
    common, subclass = (count.double() for count in detectors.counts())
    predicted = theory.fine_phase_time(params.rate, k, problem.feature_patches, problem.patches, common,
                                       subclass[..., 0]).amin(1).cpu()  # fmt: skip
    record(t0=reached, predicted_t0=predicted, lowest_coefficient=lowest, highest_coefficient=highest,
           fewest_detectors=torch.minimum(common.amin(1), subclass.flatten(1).amin(1)), **at_t0)  # fmt: skip
    _finetune(params, seeds, record, problem, training, detectors, update.network, easy, hard)


def _at_t0(detectors, network, easy, hard, problem):
    """Errors at T0, and how much of the outputs common and subclass features make up."""
    found = {f"{name}_at_t0": value for name, value in error_report(network, easy, hard, "fine").items()}
    growth = detectors.growth(network)
    counts = [count.double().flatten(1).mean(1) for count in detectors.counts()]
    made = [problem.feature_patches * g * n for g, n in zip(growth, counts, strict=True)]
    found |= {
        "common_output_at_t0": made[0],
        "subclass_output_at_t0": made[1],
        "growth_ratio_at_t0": growth[0] / growth[1],
    }
    return {name: value.double().cpu() for name, value in found.items()}


def _finetune(params, seeds, record, problem, training, detectors, network, easy, hard):
    """Cross-entropy of the maxima on fresh easy samples; do responses to true features ever fall?"""
    mapped = superclass_of(problem.subclasses, seeds.device)
    before, least = detectors.responses(network), None
    for _step, _, update in training.run(network, seeds, params.finetune_steps,
                                         lambda batch: max_readout_residual(batch.superclass, mapped),
                                         first=params.fine_steps):  # fmt: skip
        now = detectors.responses(update.network)
        change = torch.minimum(now[0] - before[0], now[1] - before[1])
        least = change if least is None else torch.minimum(least, change)
        before = now
    for name, samples in (("easy", easy), ("hard", hard)):
        scores = max_readout(update.network.outputs(samples.patches), mapped)
        record(**{f"finetuned_{name}_error": errors(scores, samples.superclass)})
    record(least_response_change=least)


@study.arm("sweep", over={"k": lambda p: p.sweep}, tolerance=0.05,
           uses=(*_THEORY, "sweep_distractors", "sweep_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "coarse"))  # fmt: skip
def sweep(params, seeds, record, *, k):
    """Coarse training for several numbers of subclasses, across the predicted k*."""
    problem = problem_of(params, subclasses=k, distractors=params.sweep_distractors)
    init = initialisation_of(params)
    start = init.draw(seeds, 2, problem).network
    easy, hard = _test_sets(params, problem, seeds)
    for step, _, update in training_of(params, problem).run(
        start, seeds, params.sweep_steps, residual_for("coarse", problem)
    ):
        if step == params.sweep_steps:
            network = update.network
    detectors = Detectors.at(start, problem, "coarse", init)
    growth = detectors.growth(network)
    record(step=params.sweep_steps, growth_ratio=growth[0] / growth[1], **error_report(network, easy, hard, "coarse"))
    record(critical=theory.critical_subclasses(problem))


@study.arm("invariants", over={"labels": LABELS, "bias": ["tied", "free"]}, tolerance=0.02,
           uses=(*_PROBLEM, "threshold", "scale", "rate", "bias_rate", "full_neurons", "full_steps"),
           working_set=lambda p: 2.0**23)  # fmt: skip
def invariants(params, seeds, record, *, labels, bias):
    """No neuron pruned, no patch left out: who fires on what, with the norm-tied bias and with none."""
    problem = problem_of(params, subclasses=min(4, params.subclasses), counts="exact")
    init = initialisation_of(_Full(params), prune=False)
    rho = params.bias_rate if bias == "tied" else 0.0
    record(**invariants_over(problem, init, params.rate, rho, seeds, params.full_steps, labels))


class _Full:
    """Parameters of the unpruned runs under the usual names."""

    def __init__(self, params: Any) -> None:
        self.neurons, self.threshold, self.scale = params.full_neurons, params.threshold, params.scale


@study.arm("strong-noise", over={"labels": LABELS}, tolerance=0.05, uses=(*_THEORY, "strong_noises", "fine_steps",
           "test_per_subclass"), working_set=lambda p: working_set(p, "fine"))  # fmt: skip
def strong_noise(params, seeds, record, *, labels):
    """Hard samples with one patch of strong noise and no other distractor: the second way to mislead."""
    problem = problem_of(params, distractors=0, counts="exact")
    start = initialisation_of(params, keep_rest=True).draw(seeds, class_count(labels, problem), problem)
    for _step, _, update in training_of(params, problem).run(
        start.network, seeds, params.fine_steps, residual_for(labels, problem)
    ):
        network = update.network
    for sigma in params.strong_noises:
        hard = problem_of(params, distractors=0, strong_noise=sigma, counts="exact").sample(
            seeds, "strong noise", params.test_per_subclass, hard=True, compact=True
        )
        strong = hard.patches[:, :, (hard.kinds[0, 0] == STRONG).nonzero().squeeze(1)]
        # Untrained neurons were left out of training, exactly; strong noise may wake them.
        outputs = network.outputs(hard.patches) + start.rest.outputs(strong, rows=32)
        scores = (
            outputs if labels == "coarse" else max_readout(outputs, superclass_of(problem.subclasses, seeds.device))
        )
        record(at={"strong": sigma}, hard_error=errors(scores, hard.superclass))


@study.arm("twins", over={"labels": TWINS}, tolerance=0.05,
           uses=(*_THEORY, "twin_steps", "twin_per_subclass", "test_per_subclass"),
           working_set=lambda p: 2 * working_set(p, "fine"))  # fmt: skip
def twins(params, seeds, record, *, labels):
    """A finite set under true, random, mixed and too fine labels, read out by the maximum."""
    problem = problem_of(params, counts="exact")
    training = training_of(params, problem, per_subclass=params.twin_per_subclass, finite=True)
    easy, hard = _test_sets(params, problem, seeds)
    record(**twin_errors(labels, problem, initialisation_of(params), training, seeds, params.twin_steps, easy, hard))


from . import image_arms  # noqa: E402, F401 (the arms on real images register themselves with the study)
