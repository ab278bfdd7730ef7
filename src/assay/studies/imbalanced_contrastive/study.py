"""Imbalanced contrastive learning: three stages of training, what rare features cost, and pruning as a remedy."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import torch
from pydantic import Field, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.probes.specialisation import aligned_counts, alignments, lucky_neurons, mixed_neurons
from assay.training.seeds import Seeds

from .learners import Cells, Contrastive, Look, random_start
from .problem import TokenPairs
from .readout import read_out
from .theory import loss_floor


class Params(lab.Params):
    majority: int = Field(5, ge=1, description="frequent features (ε = 1)")
    minority: int = Field(4, ge=1, description="rare features")
    dim: int = Field(100, ge=3, description="input dimension d₁ of the sweeps")
    width: int = Field(24, ge=2, description="neurons m")
    tokens: int = Field(4, ge=1, description="tokens L per view")
    token_mode: Literal["all", "bernoulli", "single"] = Field("all", description="tokens that show an active feature")
    base_rate: float | None = Field(0.3, gt=0, le=1, description="probability p₀ of a feature (none: log log d/d)")
    attention: Literal["uniform", "softmax"] = Field("uniform", description="attention of the sweeps")
    score_scale: float = Field(1.0, gt=0, description="scale of softmax attention's scores")
    batch: int = Field(128, ge=2, description="pairs K per step, each the others' negatives")
    rate: float = Field(0.02, gt=0, description="learning rate η")
    temperature: float = Field(4.0, gt=0, description="temperature τ")
    decay: float = Field(1e-3, ge=0, description="weight decay λ")
    init: float = Field(0.01, gt=0, description="deviation σ₀ of the initial weights")
    bias_on: int = Field(100, ge=0, description="step at which biases are switched on")
    bias: float = Field(0.2, ge=0, description="their size as a share of ‖w‖ (the proofs' √(2 log d/d) is 0.7 here)")
    steps: int = Field(400, ge=10, description="steps of the sweeps")
    rare: tuple[float, ...] = Field((0.1, 0.3, 0.5, 0.75, 1.0), min_length=2, description="ε of Figures 2 and 3")
    noise: tuple[float, ...] = Field((0.05, 0.45, 1.25), min_length=1, description="NSR = σ²d₁ of Figures 2 and 3")
    rare_low: tuple[float, ...] = Field((0.05, 0.15, 0.25, 0.35, 0.5), min_length=2, description="ε of Figures 4, 5")
    noise_high: tuple[float, ...] = Field((0.45, 1.25, 2.8125, 5.0), min_length=3, description="NSR of Figures 4, 5")
    head_train: int = Field(1000, ge=50, description="pairs that the regression head is fitted on")
    head_test: int = Field(5000, ge=50, description="test pairs")
    dynamics_dim: int = Field(500, ge=3, description="input dimension of Figures 1 and 6")
    dynamics_steps: int = Field(500, ge=10, description="their steps")
    dynamics_rare: float = Field(0.3, gt=0, le=1, description="their ε of rare features")
    dynamics_noise: float = Field(0.45, ge=0, description="their NSR")
    long_steps: int = Field(1600, ge=10, description="steps after which rare features have caught up")
    widths: tuple[int, ...] = Field((12, 24, 48, 96), min_length=2, description="widths of the capacity experiment")
    growth_dim: int = Field(100, ge=3, description="input dimension of the stage-one check")
    growth_steps: int = Field(60, ge=5, description="steps of the stage-one check")
    growth_batch: int = Field(512, ge=2, description="its batch")
    samples: int = Field(50_000, ge=500, description="Monte-Carlo draws of the theory checks")
    pruned_majority: int = Field(7, ge=1, description="frequent features of the pruning experiment; one is rare")
    pruned_dim: int = Field(60, ge=3, description="its input dimension")
    pruned_rate: float = Field(0.25, gt=0, le=1, description="its p₀")
    pruned_rare: tuple[float, ...] = Field((0.1, 0.3, 0.5), min_length=2, description="its ε")
    pruned_decays: tuple[float, ...] = Field((0.01, 0.05), min_length=1, description="its weight decays λ")
    pruned_steps: int = Field(1200, ge=10, description="its steps")
    pruned_batch: int = Field(192, ge=2, description="its batch")
    per_feature: int = Field(3, ge=1, description="pure neurons per feature in its constructed state")
    alpha: float = Field(0.125, gt=0, lt=1, description="share α of neurons that is pruned")
    one_step_batches: int = Field(40, ge=1, description="batches over which one pruned step is averaged")
    images: str = Field("auto", description="image set (auto: fashion_mnist when $ASSAY_DATA has it, else digits)")
    image_limit: int = Field(60_000, ge=200, description="training images read at most")
    image_test: int = Field(10_000, ge=100, description="test images at most")
    image_largest: int | None = Field(None, ge=10, description="images of the largest class at most (none: all)")
    image_ratios: tuple[float, ...] = Field((10.0, 100.0), min_length=1, description="imbalance ratios ρ")
    image_network: Literal["cnn", "resnet"] = Field("cnn", description="backbone")
    image_width: int = Field(16, ge=1, description="its width (64 makes ResNet-18)")
    image_epochs: int = Field(20, ge=1, description="epochs of pretraining (the source states none)")
    image_batch: int = Field(64, ge=2, description="its batch")
    image_rate: float = Field(
        0.3, gt=0, description="its learning rate (from the grid of image-tuning on Fashion-MNIST; paper: CIFAR-10)"
    )
    image_alpha: float = Field(
        0.03, ge=0, lt=1, description="share of weights masked, logit-masked (from the grid of image-tuning on "
        "Fashion-MNIST; paper: CIFAR-10)"
    )  # fmt: skip
    image_alpha_self: float = Field(0.03, ge=0, lt=1, description="the same of the self-competitor, tuned likewise")
    image_probe: int = Field(200, ge=5, description="labelled images per class for the linear probe")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for others.
        return first_available("fashion_mnist", "digits") if name == "auto" else name

    @model_validator(mode="after")
    def _goes_together(self) -> Params:
        for dim in (self.dim, self.dynamics_dim, self.growth_dim):
            problem_of(self, dim).rates(max(*self.rare, *self.rare_low))
        pruning_problem(self)
        for name in ("rare", "noise", "rare_low", "noise_high", "widths", "pruned_rare", "pruned_decays",
                     "image_ratios"):  # fmt: skip
            if list(getattr(self, name)) != sorted(set(getattr(self, name))):
                raise ValueError(f"{name} must rise and name no value twice, not {getattr(self, name)}")
        shares = (*self.rare, *self.rare_low, *self.pruned_rare)
        if max(shares) > 1 or min(shares) <= 0:
            raise ValueError("rare features have 0 < ε ≤ 1, the ε of frequent ones")
        if min(*self.noise, *self.noise_high) < 0:
            raise ValueError("a noise-to-signal ratio is not negative")
        if min(self.pruned_decays) < 0:
            raise ValueError("a weight decay is not negative")
        if min(self.widths) < 2:
            raise ValueError(f"a network of the capacity experiment has at least 2 neurons, not {min(self.widths)}")
        neurons = (self.pruned_majority + 1) * self.per_feature
        if not 0 < round(self.alpha * neurons) < neurons:
            raise ValueError(f"alpha = {self.alpha:g} prunes {round(self.alpha * neurons)} of {neurons} neurons")
        if self.rate * max(self.decay, *self.pruned_decays) >= 1:
            raise ValueError("rate × decay must stay below 1")
        for name in ("steps", "dynamics_steps", "long_steps", "pruned_steps"):
            if max(self.bias_on, 1) >= getattr(self, name):
                raise ValueError(f"biases switched on at step {self.bias_on} are never used in {name} = "
                                 f"{getattr(self, name)}")  # fmt: skip
        if min(self.image_ratios) < 1:
            raise ValueError("an imbalance ratio is at least 1")
        if self.image_largest is not None and self.image_largest < max(self.image_ratios):
            raise ValueError(f"with ρ = {max(self.image_ratios):g} and {self.image_largest} images in the largest "
                             "class the smallest has none")  # fmt: skip
        return self


def problem_of(params: Any, dim: int) -> TokenPairs:
    return TokenPairs(params.majority, params.minority, dim, params.tokens, params.base_rate, params.token_mode)


def pruning_problem(params: Any) -> TokenPairs:
    return TokenPairs(params.pruned_majority, 1, params.pruned_dim, params.tokens, params.pruned_rate)


def recipe(params: Any, *, steps: int | None = None, attention: Any = None, **changes: Any) -> Contrastive:
    """The training of the sweeps, with what an arm changes."""
    usual = dict(steps=params.steps if steps is None else steps, batch=params.batch, rate=params.rate,
                 temperature=params.temperature, bias_on=params.bias_on, bias=params.bias,
                 attention=params.attention if attention is None else attention,
                 score_scale=params.score_scale)  # fmt: skip
    return Contrastive(**{**usual, **changes})


study = lab.Study(
    "imbalanced-contrastive",
    title="Contrastive learning under imbalance, and forward pruning",
    question="What do rare features cost in contrastive learning, and why does pruning small neurons help them?",
    source="Liao, Zhou, Zhang, Wang and Zhang, Theoretical Analysis of Contrastive Learning under Imbalanced Data: "
    "From Training Dynamics to a Pruning Solution",
    params=Params,
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", dim=40, batch=32, steps=60, bias_on=20, rate=0.1, rare=(0.2, 1.0), noise=(0.45,),
            rare_low=(0.1, 0.5), noise_high=(0.45, 1.25, 2.8125), head_train=100, head_test=200, dynamics_dim=60,
            dynamics_steps=60, long_steps=80, widths=(8, 16), growth_dim=40, growth_steps=20, growth_batch=64,
            samples=1000, pruned_rare=(0.1, 0.5), pruned_decays=(0.01,), pruned_steps=60, pruned_batch=32,
            one_step_batches=2, images="digits", image_ratios=(5.0,), image_width=4, image_epochs=1, image_largest=40,
            image_batch=64, image_probe=20, image_test=200,
        ),
        "laptop": lab.Preset(
            seeds=8, cost="6 min", image_limit=12_000, image_test=4_000, image_largest=300, image_probe=100,
            fewer={"images": 3, "image-tuning": 3},
        ),
        "paper": lab.Preset(
            seeds=100, cost="30 min on a GPU", dim=500, attention="softmax",
            rare=tuple(round(0.1 * k, 1) for k in range(1, 11)),
            rare_low=tuple(round(0.05 * k, 2) for k in range(1, 11)), growth_dim=500, samples=200_000,
            widths=(12, 24, 48, 96, 192), images="cifar10", image_ratios=(100.0,),
            image_network="resnet", image_width=64, image_epochs=50, image_batch=512, image_rate=0.3,
            image_alpha=0.03, image_alpha_self=0.3, image_probe=5000,
            fewer={"images": 3, "image-tuning": 1, "gradient": 8, "pair-moments": 8, "neuron-sets": 8, "logits": 8,
                   "pseudo-loss": 8, "dynamics": 20, "other-biases": 20, "lucky": 20, "widths": 20, "longer": 20,
                   "one-step": 20, "pruning": 20, "pruning-random": 40, "stage-one": 20, "loss-floor": 8},
        ),
    },
)  # fmt: skip

MODEL = ("majority", "minority", "tokens", "token_mode", "base_rate")
TRAINING = ("batch", "rate", "temperature", "bias_on", "bias", "score_scale")
SWEEP = (*MODEL, *TRAINING, "dim", "width", "steps", "attention", "decay", "init")


def _grid(params: Any, rare: tuple[float, ...], noise: tuple[float, ...]) -> tuple[list[tuple[float, float]], Cells]:
    points = list(itertools.product(rare, noise))
    sigma = problem_of(params, params.dim).deviation
    return points, Cells([e for e, _ in points], [sigma(n) for _, n in points], [params.decay] * len(points))


def _bytes(params: Any, cells: int, dim: int) -> float:
    """What one seed touches in a step: views of both sides, attended, and the similarities."""
    tokens = params.tokens if params.attention == "softmax" else 1
    return 4.0 * cells * params.batch * (3 * tokens * dim + 2 * params.batch)


def _aligned(weights: torch.Tensor, features: int) -> torch.Tensor:
    """|cos| with every feature, the first axes of dictionary coordinates: (seeds, cells, neurons, features). NaN for an
    encoder that diverged, so that what is counted from it is NaN too and not a harmless 0."""
    found = alignments(weights, torch.eye(weights.shape[-1], device=weights.device)[:features])
    return found + nan_if_diverged(weights)[..., None, None]


def nan_if_diverged(weights: torch.Tensor) -> torch.Tensor:
    """(..., neurons, dim) → (...): NaN where a weight is not finite, else 0. Counts are made honest by adding it."""
    return torch.where(weights.isfinite().all(-1).all(-1), 0.0, torch.nan)


def last_look(run: Contrastive, *arguments: Any, **options: Any) -> Look:
    *_, last = run.train(*arguments, **options)
    return last


@study.arm("alignment", uses=(*SWEEP, "rare", "noise"), tolerance=2e-2,
           working_set=lambda p: _bytes(p, len(p.rare) * len(p.noise), p.dim))  # fmt: skip
def alignment(params, seeds, record):
    """Figures 2 and 3: neurons aligned with rare features, over ε and noise."""
    problem, run = problem_of(params, params.dim), recipe(params)
    points, cells = _grid(params, params.rare, params.noise)
    start = random_start(problem, len(points), seeds, width=params.width, scale=params.init, attention=run.attention)
    encoders = last_look(run, problem, cells, seeds, start).encoders
    cosines = _aligned(encoders.weights, problem.features)
    best = cosines.amax(-2)
    counts = aligned_counts(cosines) + 0 * best
    energy = encoders.weights[..., : problem.features].square().sum(-2).sqrt()
    rare, frequent = slice(problem.majority, None), slice(0, problem.majority)
    for c, (epsilon, nsr) in enumerate(points):
        record(at={"epsilon": epsilon, "nsr": nsr}, aligned=counts[:, c, rare].mean(-1), best=best[:, c, rare].mean(-1),
               frequent_aligned=counts[:, c, frequent].mean(-1),
               energy_ratio=energy[:, c, rare].mean(-1) / energy[:, c, frequent].mean(-1))  # fmt: skip


@study.arm("representation", uses=(*SWEEP, "rare_low", "noise_high", "head_train", "head_test"), tolerance=2e-2,
           working_set=lambda p: _bytes(p, len(p.rare_low) * len(p.noise_high), p.dim))  # fmt: skip
def representation(params, seeds, record):
    """Figures 4 and 5: similarity of positive test pairs and regression on the representation, over ε and noise."""
    problem, run = problem_of(params, params.dim), recipe(params)
    points, cells = _grid(params, params.rare_low, params.noise_high)
    start = random_start(problem, len(points), seeds, width=params.width, scale=params.init, attention=run.attention)
    encoders = last_look(run, problem, cells, seeds, start).encoders
    for balanced in (True, False):
        found = read_out(problem, cells, seeds, encoders, run, train=params.head_train, test=params.head_test,
                         balanced=balanced)  # fmt: skip
        for c, (epsilon, nsr) in enumerate(points):
            at = {"epsilon": epsilon, "nsr": nsr, "test": "balanced" if balanced else "as in training"}
            record(at=at, pair_cosine=found.cosine[:, c], regression_error=found.error[:, c],
                   target_variance=found.target_variance[:, c])  # fmt: skip


def _stages(record: Any, params: Any, looks: list[Look], problem: TokenPairs) -> None:
    """Figure 1 for the neuron that is purest at the end, and how far all neurons are, over the steps."""
    d, seeds = problem.features, len(looks[0].encoders.weights)
    final = _aligned(looks[-1].encoders.weights, d)[:, 0].square()
    top = final.topk(2, -1).values
    chosen = (top[..., 0] / top[..., 1]).argmax(-1)
    rows = torch.arange(seeds, device=final.device)
    feature = final[rows, chosen].argmax(-1)
    for look in looks:
        weights = look.encoders.weights[:, 0]
        w = weights[rows, chosen]
        others = w[:, :d].abs().scatter(1, feature[:, None], torch.nan)
        share = weights[..., :d].square().sum(-1) / weights.square().sum(-1)
        record(step=look.step, dominant=w[rows, feature].abs(), other=others.nanmedian(1).values,
               noise_direction=w[:, d:].square().mean(1).sqrt(), noise_norm=torch.linalg.vector_norm(w[:, d:], dim=-1),
               neuron_norm=torch.linalg.vector_norm(w, dim=-1),
               feature_share=w[:, :d].square().sum(1) / w.square().sum(1),
               median_feature_share=share.median(-1).values,
               noise_rms=(weights[..., d:].square().mean(-1) / weights.square().sum(-1)).median(-1).values.sqrt(),
               loss=look.loss[:, 0])  # fmt: skip


DYNAMICS = (*MODEL, *TRAINING, "width", "decay", "init", "dynamics_dim", "dynamics_steps", "dynamics_rare",
            "dynamics_noise")  # fmt: skip


def _dynamics(params: Any, seeds: Seeds, attention: Any, **changes: Any) -> tuple[TokenPairs, list[Look]]:
    problem = problem_of(params, params.dynamics_dim)
    looks = sorted({0, params.bias_on, *range(0, params.dynamics_steps, max(1, params.dynamics_steps // 50))})
    run = recipe(params, steps=params.dynamics_steps, attention=attention, looks=tuple(looks), **changes)
    cells = Cells([params.dynamics_rare], [problem.deviation(params.dynamics_noise)], [params.decay])
    start = random_start(problem, 1, seeds, width=params.width, scale=params.init, attention=attention)
    return problem, list(run.train(problem, cells, seeds, start))


def _specialists(cosines: torch.Tensor, majority: int) -> dict[str, torch.Tensor]:
    """Counts of one cell's neurons (seeds, neurons, features): lucky per frequent and per rare feature, mixed."""
    lost = 0 * cosines.double().sum((-1, -2))  # NaN where cosines are
    lucky, strongest = lucky_neurons(cosines), cosines.argmax(-1)
    features = cosines.shape[-1]
    rare = (lucky & (strongest >= majority)).sum(-1).double()
    every = lucky.sum(-1).double()
    found = {
        "lucky": every,
        "mixed": mixed_neurons(cosines).sum(-1).double(),
        "lucky_per_frequent": (every - rare) / majority,
        "lucky_per_rare": rare / max(1, features - majority),
        "features_per_neuron": (cosines.square() >= 0.1).sum(-1).double().mean(-1),
    }
    return {name: count + lost for name, count in found.items()}


@study.arm("dynamics", over={"attention": ["softmax", "uniform"]}, uses=DYNAMICS, tolerance=2e-2,
           working_set=lambda p: 12.0 * p.batch * p.tokens * p.dynamics_dim)  # fmt: skip
def dynamics(params, seeds, record, *, attention):
    """Figures 1 and 6: one neuron through three stages, and what all neurons look like at the end."""
    problem, looks = _dynamics(params, seeds, attention)
    _stages(record, params, looks, problem)
    cosines = _aligned(looks[-1].encoders.weights, problem.features)[:, 0]
    record(**_specialists(cosines, problem.majority))
    record.array("squared_cosines", cosines.square())


BIASES = {"none": {"bias_on": None}, "printed": {"bias": None, "bias_growth": None}}


@study.arm("other-biases", over={"bias_rule": list(BIASES)}, uses=DYNAMICS, tolerance=2e-2,
           working_set=lambda p: 12.0 * p.batch * p.dynamics_dim)  # fmt: skip
def other_biases(params, seeds, record, *, bias_rule):
    """The same training without biases, and with the proofs' own schedule √(2 log d/d)‖w‖ growing by η/d."""
    changes = dict(BIASES[bias_rule])
    if "bias_growth" in changes:
        changes["bias_growth"] = params.rate / (params.majority + params.minority)
    problem, looks = _dynamics(params, seeds, "uniform", **changes)
    encoders = looks[-1].encoders
    record(
        **_specialists(_aligned(encoders.weights, problem.features)[:, 0], problem.majority), loss=looks[-1].loss[:, 0]
    )
    run = recipe(params, steps=1, attention="uniform")
    cells = Cells([params.dynamics_rare], [problem.deviation(params.dynamics_noise)], [params.decay])
    outputs = encoders(run.attended(run.pairs(problem, cells, seeds, "silence").next(512))[0])
    silent = (outputs.abs().amax(-2) == 0).double().mean(-1) + nan_if_diverged(encoders.weights)
    record(silent=silent[:, 0])


@study.arm("longer", uses=(*SWEEP, "long_steps", "rare", "dynamics_noise"), tolerance=2e-2,
           working_set=lambda p: _bytes(p, len(p.rare), p.dim))  # fmt: skip
def longer(params, seeds, record):
    """Coefficients of rare features over frequent ones when training goes on, and how far the loss is above the floor
    of perfect neurons."""
    problem = problem_of(params, params.dim)
    every = max(1, params.long_steps // 16)
    run = recipe(params, steps=params.long_steps, looks=tuple(range(0, params.long_steps, every)))
    sigma = problem.deviation(params.dynamics_noise)
    count = len(params.rare)
    cells = Cells(params.rare, [sigma] * count, [params.decay] * count)
    start = random_start(problem, count, seeds, width=params.width, scale=params.init, attention=run.attention)
    floors = [loss_floor(q.tolist(), params.batch - 1) for q in problem.rates(params.rare)]
    for look in run.train(problem, cells, seeds, start):
        energy = look.encoders.weights[..., : problem.features].square().sum(-2).sqrt()
        ratio = energy[..., problem.majority :].mean(-1) / energy[..., : problem.majority].mean(-1)
        for c, epsilon in enumerate(params.rare):
            record(step=look.step, at={"epsilon": epsilon}, energy_ratio=ratio[:, c])
            if look.step:  # before the first step there is no loss yet
                record(step=look.step, at={"epsilon": epsilon}, loss_excess=look.loss[:, c] - floors[c])


@study.arm("widths", over={"neurons": lambda p: p.widths}, uses=(*SWEEP, "widths", "rare", "dynamics_noise"),
           tolerance=2e-2, working_set=lambda p: _bytes(p, len(p.rare), p.dim))  # fmt: skip
def widths(params, seeds, record, *, neurons):
    """How many neurons specialise on rare features in wider networks (total initial energy kept)."""
    problem, run, count = problem_of(params, params.dim), recipe(params), len(params.rare)
    cells = Cells(params.rare, [problem.deviation(params.dynamics_noise)] * count, [params.decay] * count)
    scale = params.init * (params.width / neurons) ** 0.5
    start = random_start(problem, count, seeds, width=neurons, scale=scale, attention=run.attention)
    cosines = _aligned(last_look(run, problem, cells, seeds, start).encoders.weights, problem.features)
    for c, epsilon in enumerate(params.rare):
        found, each = _specialists(cosines[:, c], problem.majority), cosines[:, c]
        owner = torch.where(lucky_neurons(each), each.argmax(-1), -1)
        covered = [(owner == j).any(-1).double() for j in problem.minority_features]
        record(at={"epsilon": epsilon}, covered=torch.stack(covered, -1).mean(-1) + 0 * each.sum((-1, -2)), **found)


# The other arms register themselves with the study.
from . import image_arms, pruning_arms, theory_arms  # noqa: E402, F401
