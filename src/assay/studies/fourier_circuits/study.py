"""Fourier circuits: which features networks learn for a_1 + ... + a_k mod p, and why they are cosines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import ConfigDict, Field, field_validator, model_validator

from assay import lab
from assay.methods.modular_margin import CONSTRUCTIONS, neuron_expected_margin

from . import theory
from .problem import ModularAddition
from .trainings import network_bytes, train_network, train_transformer, transformer_bytes

CASES = ("3-2", "5-2", "7-2", "11-2", "13-2", "3-3", "5-3", "7-3", "11-3", "3-4", "5-4", "7-4", "3-5", "5-5", "3-6",
         "9-2", "9-3", "15-2")  # fmt: skip
ASCENTS = ("7-2", "11-2", "7-3", "11-3", "7-4", "11-4", "5-5")
IDENTITIES = ((5, 2), (5, 3), (7, 3), (5, 4), (3, 5))
MOST_INPUTS = 2**24  # a split holds a permutation of all p^k inputs per seed
MOST_WEIGHTS = 2**24  # of one network
MOST_ACTIVATIONS = 2**26  # of a full batch


def pair(case: str) -> tuple[int, int]:
    """'7-3' to (p, k) = (7, 3)."""
    p, _, k = case.partition("-")
    return int(p), int(k)


class Params(lab.Params):
    """Every named setting fixes ``learner``, ``modulus``, ``terms``, ``steps`` and, of networks, ``penalty``; change
    these as ``k3.modulus=31``."""

    model_config = ConfigDict(allow_inf_nan=False)

    cases: tuple[str, ...] = Field(CASES, min_length=1, description="pairs p-k whose networks are checked on all p^k")
    ascents: tuple[str, ...] = Field(
        ASCENTS, min_length=1, description="pairs p-k at which single neurons are optimised"
    )
    starts: int = Field(20, ge=1, description="random starts per seed of that optimisation")
    learner: Literal["network", "transformer"] = Field("network", description="what a setting trains; not for --set")
    modulus: int = Field(23, ge=3, description="p, odd for networks; set it per setting, as k3.modulus=31")
    terms: int = Field(3, ge=2, description="k, the number of inputs; set it per setting, as k3.terms=4")
    width: int | None = Field(None, ge=1, description="neurons m (none: 2^{2k−2}(p−1))")
    train_count: int | None = Field(None, ge=2, description="training inputs (none: half of them)")
    whole: bool = Field(False, description="train on all p^k inputs, in full batches")
    steps: int = Field(2500, ge=10, description="updates; set them per setting, as k3.steps=500")
    rate: float = Field(1e-2, gt=0, description="Adam's rate")
    batch: int = Field(512, ge=1, description="batch size where the data are split")
    penalty: float = Field(0.02, ge=0, description="λ; set it per setting, as k3.penalty=0.01")
    regulariser: Literal["norm", "sum", "decay"] = Field("norm", description="λ‖θ‖, λΣ‖θ_i‖^{k+1}, or weight decay")
    looks: int = Field(25, ge=1, description="times that a training network is looked at")
    points: int = Field(4096, ge=16, description="training inputs on which margins are followed")
    strengths: tuple[float, ...] = Field((1e-2, 2e-3, 1e-3, 1e-4, 1e-5), min_length=2, description="λ where it varies")
    networks: tuple[Literal["k3", "k4", "k5"], ...] = Field(("k3", "k4"), min_length=1, description="k of split data")
    dim: int = Field(64, ge=2, description="width of the transformers")
    heads: int = Field(4, ge=1, description="their heads")
    head_dim: int = Field(16, ge=1, description="width of a head")
    layers: int = Field(1, ge=1, description="their layers")
    mlp: int = Field(256, ge=0, description="width of their GELU blocks, 0 for none")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout")
    layernorm: bool = Field(True, description="LayerNorm in the transformers")
    positions: bool = Field(True, description="learned positions in the transformers")
    form: Literal["short", "operators"] = Field("short", description="a b = or a o b =")
    decay: float = Field(1e-3, ge=0, description="AdamW's weight decay of the transformers")
    transformer_rate: float = Field(1e-3, gt=0, description="their AdamW rate")
    every: int = Field(25, ge=1, description="steps between looks at a transformer")
    checked: int = Field(1024, ge=16, description="training and validation inputs of such a look")

    @field_validator("strengths")
    @classmethod
    def _positive(cls, strengths: tuple[float, ...]) -> tuple[float, ...]:
        if min(strengths) <= 0 or len(set(strengths)) < len(strengths):
            raise ValueError("every λ must be positive and occur once")
        return strengths

    @field_validator("cases", "ascents")
    @classmethod
    def _pairs(cls, cases: tuple[str, ...]) -> tuple[str, ...]:
        for case in cases:
            try:
                p, k = pair(case)
            except ValueError:
                raise ValueError(f"write pairs as p-k, such as 7-3, not '{case}'") from None
            theory.check_modulus(p, k)
            if p**k > 100_000:
                raise ValueError(f"{case} has {p**k} inputs; at most 100,000 are enumerated here")
        return cases

    @model_validator(mode="after")
    def _fits(self) -> Params:
        inputs = self.modulus**self.terms if self.terms <= 24 else MOST_INPUTS + 1
        if inputs > MOST_INPUTS:
            raise ValueError(f"{self.modulus}^{self.terms} inputs are more than the {MOST_INPUTS} that are kept here")
        if self.train_count is not None and self.train_count >= inputs:
            raise ValueError(
                f"{self.train_count} training inputs leave none of {self.modulus}^{self.terms} for testing"
            )
        if self.learner == "network":
            self._network_fits(inputs)
        return self

    def _network_fits(self, inputs: int) -> None:
        if self.modulus % 2 == 0:
            raise ValueError("p must be odd for networks, since at even p the frequency p/2 is its own conjugate")
        width = self.width or 2 ** (2 * self.terms - 2) * (self.modulus - 1)
        if (self.terms + 1) * self.modulus * width > MOST_WEIGHTS:
            raise ValueError(f"{width} neurons have more than {MOST_WEIGHTS} weights; give a smaller width")
        if self.whole and inputs * width > MOST_ACTIVATIONS:
            raise ValueError(f"{width} neurons on {inputs} inputs at once are more than {MOST_ACTIVATIONS} activations")


_TRANSFORMERS: dict[str, Any] = dict(learner="transformer")
SETTINGS: dict[str, dict[str, Any]] = {
    "full-k3": dict(terms=3, modulus=7, whole=True, regulariser="sum", penalty=1e-4, rate=5e-3, steps=1500),
    "full-k2": dict(terms=2, modulus=11, whole=True, regulariser="sum", penalty=1e-4, rate=1e-2, steps=2500),
    "full-norm": dict(terms=2, modulus=23, whole=True, regulariser="norm", penalty=5e-3, rate=1e-2, steps=1000),
    "k3": dict(terms=3, modulus=23, penalty=0.02, steps=2500),
    "k4": dict(terms=4, modulus=11, width=320, penalty=0.05, steps=3000),
    "k5": dict(terms=5, modulus=7, width=512, penalty=0.05, steps=3000),
    "k3-decay": dict(terms=3, modulus=23, regulariser="decay", penalty=0.005, steps=2000),
    "sum-of-2": dict(**_TRANSFORMERS, terms=2, modulus=59, steps=2000),
    "sum-of-2-strong": dict(**_TRANSFORMERS, terms=2, modulus=59, steps=3000, decay=1.0),
    "sum-of-3": dict(**_TRANSFORMERS, terms=3, modulus=17, steps=2500),
    "sum-of-4": dict(**_TRANSFORMERS, terms=4, modulus=11, steps=2000),
    "sum-of-5": dict(**_TRANSFORMERS, terms=5, modulus=7, steps=2250),
    "equal-3": dict(**_TRANSFORMERS, terms=3, modulus=11, train_count=665, steps=1000),
    "equal-4": dict(**_TRANSFORMERS, terms=4, modulus=11, train_count=665, steps=1000),
    "heads-3": dict(**_TRANSFORMERS, terms=3, modulus=61, steps=8000),
    "heads-4": dict(**_TRANSFORMERS, terms=4, modulus=31, steps=8000),
    "heads-5": dict(**_TRANSFORMERS, terms=5, modulus=17, steps=8000),
    "heads-3-strong": dict(**_TRANSFORMERS, terms=3, modulus=61, steps=8000, decay=1.0),
}  # fmt: skip
GROKKING = tuple(name for name in SETTINGS if name.startswith("sum-of-"))
HEADS = tuple(name for name in SETTINGS if name.startswith("heads-"))

_large = dict(rate=5e-3, penalty=0.005)
_tiny = dict(steps=30)
study = lab.Study(
    "fourier-circuits",
    title="Fourier circuits in modular addition",
    question="When a network adds k numbers mod p, what do its neurons and heads compute, and what makes it periodic?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 4 and appendix C",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.Preset(
            seeds=3, cost="10 s", cases=("3-2", "5-2", "5-3", "3-4", "9-2"), ascents=("7-2", "5-3"), starts=4, batch=64,
            looks=2, points=256, strengths=(1e-2, 1e-4), dim=16, heads=2, head_dim=8, mlp=32, every=10, checked=64,
            settings={
                "full-k3": dict(steps=60, rate=3e-2), "full-k2": dict(steps=60), "full-norm": dict(steps=30),
                "k3": dict(modulus=7, steps=60), "k4": dict(modulus=5, width=40, steps=60), "k3-decay": dict(
                    modulus=7, steps=60),
                "sum-of-2": dict(modulus=7, **_tiny), "sum-of-2-strong": dict(modulus=7, **_tiny),
                "sum-of-3": dict(modulus=5, **_tiny), "sum-of-4": dict(modulus=5, **_tiny),
                "sum-of-5": dict(modulus=3, **_tiny), "equal-3": dict(modulus=5, train_count=60, **_tiny),
                "equal-4": dict(modulus=5, train_count=60, **_tiny),
                **{name: dict(modulus=5, **_tiny) for name in HEADS},
            },
        ),
        "laptop": lab.Preset(
            seeds=8, cost="6 min",
            fewer={"construction": 4, "full-data": 5, "regularisation": 4, "shuffled": 5, "network": 4,
                   "weight-decay": 3, "grokking": 5, "sum-of-2": 4, "sum-of-2-strong": 4, "equal-counts": 4},
        ),
        "paper": lab.Preset(
            seeds=3, cost="25 min on a GPU", networks=("k3", "k4", "k5"), arms=("attention",), batch=1024, dim=128,
            heads=160, head_dim=8, layers=2, mlp=512, dropout=0.1, every=50,
            settings={
                "k3": dict(modulus=97, steps=12_000, **_large),
                "k4": dict(modulus=47, width=None, steps=30_000, **_large),
                "k5": dict(modulus=23, width=None, steps=30_000, **_large),
                "k3-decay": dict(modulus=97, steps=10_000, rate=5e-3),
                "sum-of-2": dict(modulus=97, steps=20_000), "sum-of-2-strong": dict(modulus=97, steps=4000),
                "sum-of-3": dict(modulus=31, steps=5000), "sum-of-4": dict(modulus=11, steps=3000),
                "sum-of-5": dict(modulus=5, steps=3000), "equal-3": dict(steps=3000), "equal-4": dict(steps=3000),
                **{name: dict(layers=1) for name in HEADS},
            },
        ),
    },
)  # fmt: skip

EXACT: dict[str, Any] = dict(dtype="float64", tolerance=1e-8)
_DATA = ("learner", "modulus", "terms", "train_count", "whole", "batch", "steps")
_NETWORK = (*_DATA, "width", "rate", "penalty", "regulariser", "looks", "points")
_TRANSFORMER = (*_DATA, "dim", "heads", "head_dim", "layers", "mlp", "dropout", "layernorm", "positions", "form",
                "decay", "transformer_rate", "every", "checked")  # fmt: skip


@study.arm("construction", over={"construction": list(CONSTRUCTIONS)}, uses=("cases",), **EXACT)
def construction(params, seeds, record, *, construction):
    """Constructed networks on all p^k inputs, with random phases that leave the function as it is."""
    for case in params.cases:
        p, k = pair(case)
        gamma, half = theory.max_margin(p, k), (p - 1) // 2
        turns = 2 * torch.pi * seeds.uniform(f"offsets {case}", half, k)
        built = [theory.build_max_margin(p, k, construction, offsets=each) for each in turns.cpu()]
        U, W = (torch.stack(parts).to(seeds.device) for parts in zip(*built, strict=True))
        found = theory.margin_certificate(U, W)
        inputs = ModularAddition(p, k).inputs(torch.arange(p**k, device=seeds.device))
        ideal = torch.nn.functional.one_hot(inputs.sum(1) % p, p).double() - 1 / p
        logits = theory.network_logits(U, W, inputs)
        diagonal = torch.stack([theory.diagonal_transform(u, w) for u, w in zip(U.cpu(), W.cpu(), strict=True)])
        noise = seeds.normal(f"noise {case}", *U.shape[1:], dtype=torch.float64)
        perturbed = theory.margin_certificate(U + 0.01 * U.std((1, 2, 3), keepdim=True) * noise, W)
        reversed_output = theory.margin_certificate(U, W.roll(-1, -1).flip(-1))
        at = {"p": p, "k": k, "neurons": U.shape[-1]}
        record(at=at, bound=found.bound / gamma, margin_ratio=found.margin_ratio,
               mean_margin_ratio=found.mean_margin / found.bound, alignment_ratio=found.alignment_ratio,
               logit_deviation=(logits / gamma - ideal).abs().amax((1, 2)),
               diagonal_deviation=(diagonal[:, 1:] / (gamma * p**k) - 1).abs().amax(1),
               perturbed_ratio=perturbed.margin_ratio, reversed_ratio=reversed_output.margin_ratio)  # fmt: skip
        if half > 1:
            each = U.shape[-1] // half
            fewer = theory.margin_certificate(U[..., each:], W[:, each:])
            record(at=at, dropped_margin=fewer.margin_ratio, dropped_alignment=fewer.alignment_ratio)


@study.arm("single-neuron", uses=("ascents", "starts"), **EXACT)
def single_neuron(params, seeds, record):
    """An optimiser that knows nothing of Fourier: one vector of a neuron at a time, from random starts."""
    for case in (*params.ascents, "2-2", "2-3", "2-4"):
        p, k = pair(case)
        U = seeds.normal(f"ascent {case}", k, p, params.starts, dtype=torch.float64)
        W = seeds.normal(f"ascent {case} outputs", params.starts, p, dtype=torch.float64)
        # Neurons do not interact, so the starts of all seeds stand side by side.
        columns, rows = theory.ascend(U.permute(1, 2, 0, 3).flatten(2), W.flatten(0, 1), 120)
        U, W = columns.unflatten(2, (len(seeds), -1)).permute(2, 0, 1, 3), rows.unflatten(0, (len(seeds), -1))
        ratio = neuron_expected_margin(U, W) / theory.margin_formula(p, k)
        at = {"p": p, "k": k}
        record(at=at, ratio_low=ratio.amin(1), ratio_high=ratio.amax(1))
        if p > 2:
            report = theory.neuron_report(U, W)
            record(at=at, power=report.power.amin(1), phase_residual=report.phase_residual.amax(1),
                   amplitude_spread=report.amplitude_spread.amax(1),
                   shared=report.shared.double().amin(1))  # fmt: skip


@study.arm("identities", uses=(), **EXACT)
def identities(params, seeds, record):
    """Closed forms on random networks and numbers, against enumeration and against each other."""
    for p, k in IDENTITIES:
        # Not centred: the closed form needs no vector of mean zero.
        U = 0.3 + seeds.normal(f"random inputs {p}-{k}", k, p, 6, dtype=torch.float64)
        W = 0.3 + seeds.normal(f"random outputs {p}-{k}", 6, p, dtype=torch.float64)
        closed, counted = theory.expected_margin(U, W), theory.brute_force_expected_margin(U.cpu(), W.cpu())
        found = theory.margin_certificate(U, W)
        record(at={"p": p, "k": k}, transform_deviation=(closed.cpu() - counted).abs() / found.bound.cpu(),
               margin_share=found.margin_ratio - found.alignment_ratio,
               expected_share=found.alignment_ratio)  # fmt: skip
    for k in range(2, 8):
        d = seeds.uniform(f"polarisation {k}", 20, k).cpu() + 0.5
        exact = 2.0**k * float(torch.arange(1, k + 1).prod()) * d.prod(-1)
        angles, output = 6 * seeds.uniform(f"angles {k}", 20, k).cpu(), 6 * seeds.uniform(f"output {k}", 20).cpu()
        expanded = theory.sum_to_product(angles, output) - torch.cos(angles.sum(-1) - output)
        record(at={"k": k}, polarisation_deviation=(theory.polarisation(d) / exact - 1).abs().amax(1),
               expansion_deviation=expanded.abs().amax(1))  # fmt: skip
    for p in (3, 7, 9, 23, 97):
        sums = theory.cosine_sum(p)
        record(at={"p": p}, sum_at_answer=float(sums[0] - (p - 1) / 2), sum_elsewhere_low=float(sums[1:].min()),
               sum_elsewhere_high=float(sums[1:].max()))  # fmt: skip


def _only(learner: str, size: Callable[[Any], float]) -> Callable[[Any], float]:
    """The bytes of a step, refusing a setting whose learner was changed to the other kind."""

    def working_set(params: Any) -> float:
        if params.learner != learner:
            raise lab.UserError(f"this arm trains a {learner}, so learner={params.learner} is not allowed")
        return size(params)

    return working_set


_network_bytes = _only("network", network_bytes)
_transformer_bytes = _only("transformer", transformer_bytes)


@study.arm("full-data", over={"setting": ["full-k3", "full-k2", "full-norm"]}, uses=_NETWORK, tolerance=0.05,
           working_set=_network_bytes)  # fmt: skip
def full_data(params, seeds, record, *, setting):
    """Networks trained on all inputs, as in the theory."""
    train_network(params, seeds, record)


@study.arm("regularisation", over={"setting": ["full-k3"], "strength": lambda p: p.strengths}, uses=_NETWORK,
           tolerance=0.05, working_set=_network_bytes)  # fmt: skip
def regularisation(params, seeds, record, *, setting, strength):
    """The same at several λ, beside the global minimum in closed form."""
    train_network(params, seeds, record, penalty=strength)
    record(optimum=theory.regularised_optimum(params.modulus, params.terms, strength),
           gap=theory.regularised_gap(params.modulus, params.terms, strength))  # fmt: skip


@study.arm("shuffled", over={"setting": ["full-k2"]}, uses=_NETWORK, tolerance=0.05, working_set=_network_bytes)
def shuffled(params, seeds, record, *, setting):
    """All inputs with labels in a random order: nothing periodic is left to learn."""
    train_network(params, seeds, record, shuffle=True)


@study.arm("network", over={"setting": lambda p: p.networks}, uses=_NETWORK, tolerance=0.05,
           working_set=_network_bytes)  # fmt: skip
def network(params, seeds, record, *, setting):
    """Networks trained on half of the inputs with the penalty λ‖θ‖."""
    train_network(params, seeds, record)


@study.arm("weight-decay", over={"setting": ["k3-decay"]}, uses=_NETWORK, tolerance=0.05, working_set=_network_bytes)
def weight_decay(params, seeds, record, *, setting):
    """The same with decoupled weight decay in place of the penalty."""
    train_network(params, seeds, record)


@study.arm("grokking", over={"setting": GROKKING}, uses=_TRANSFORMER, tolerance=0.05, working_set=_transformer_bytes)
def grokking(params, seeds, record, *, setting):
    """Transformers on half of the inputs: when do they fit, and when do they generalise?"""
    train_transformer(params, seeds, record)


@study.arm("equal-counts", over={"setting": ["equal-3", "equal-4"]}, uses=_TRANSFORMER, tolerance=0.05,
           working_set=_transformer_bytes)  # fmt: skip
def equal_counts(params, seeds, record, *, setting):
    """The same p and the same number of training inputs for both k."""
    train_transformer(params, seeds, record)


@study.arm("attention", over={"setting": HEADS}, uses=_TRANSFORMER, optional=True, tolerance=0.05,
           working_set=_transformer_bytes)  # fmt: skip
def attention(params, seeds, record, *, setting):
    """One-layer transformers at the source's sizes, for the shape of their heads."""
    train_transformer(params, seeds, record)
