"""Fourier circuits: which features networks learn for a_1 + ... + a_k mod p, and why they are cosines."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field, field_validator, model_validator

from assay import lab
from assay.methods.modular_margin import CONSTRUCTIONS, neuron_expected_margin
from assay.probes.fourier import logit_fourier
from assay.probes.grokking import grokking_delay

from . import theory
from .learners import Network, Recipe, look
from .measures import attention_shares, margin_ratios, mirrored, share_correct, sparsity
from .problem import ModularAddition
from .transformer import Transformer, TransformerRecipe, correct

CASES = ("3-2", "5-2", "7-2", "11-2", "13-2", "3-3", "5-3", "7-3", "11-3", "3-4", "5-4", "7-4", "3-5", "5-5", "3-6",
         "9-2", "9-3", "15-2")  # fmt: skip
ASCENTS = ("7-2", "11-2", "7-3", "11-3", "7-4", "11-4", "5-5")
SMALL = 20_000  # inputs up to which the whole spectrum of the logits is measured
IDENTITIES = ((5, 2), (5, 3), (7, 3), (5, 4), (3, 5))


def pair(case: str) -> tuple[int, int]:
    """'7-3' to (p, k) = (7, 3)."""
    p, _, k = case.partition("-")
    return int(p), int(k)


class Params(lab.Params):
    cases: tuple[str, ...] = Field(CASES, min_length=1, description="pairs p-k whose networks are checked on all p^k")
    ascents: tuple[str, ...] = Field(
        ASCENTS, min_length=1, description="pairs p-k at which single neurons are optimised"
    )
    starts: int = Field(20, ge=1, description="random starts per seed of that optimisation")
    modulus: int = Field(23, ge=3, description="p, odd")
    terms: int = Field(3, ge=2, description="k, the number of inputs")
    width: int | None = Field(None, ge=1, description="neurons m (none: 2^{2k−2}(p−1))")
    train_count: int | None = Field(None, ge=2, description="training inputs (none: half of them)")
    whole: bool = Field(False, description="train on all p^k inputs, in full batches")
    steps: int = Field(2500, ge=10, description="updates")
    rate: float = Field(1e-2, gt=0, description="Adam's rate")
    batch: int = Field(512, ge=1, description="batch size where the data are split")
    penalty: float = Field(0.02, ge=0, description="λ")
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

    @field_validator("modulus")
    @classmethod
    def _odd(cls, modulus: int) -> int:
        if modulus % 2 == 0:
            raise ValueError("p must be odd, since at even p the frequency p/2 is its own conjugate")
        return modulus

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
        if self.train_count is not None and self.train_count >= self.modulus**self.terms:
            raise ValueError(
                f"{self.train_count} training inputs leave none of {self.modulus}^{self.terms} for testing"
            )
        return self


SETTINGS: dict[str, dict[str, Any]] = {
    "full-k3": dict(terms=3, modulus=7, whole=True, regulariser="sum", penalty=1e-4, rate=5e-3, steps=1500),
    "full-k2": dict(terms=2, modulus=11, whole=True, regulariser="sum", penalty=1e-4, rate=1e-2, steps=2500),
    "full-norm": dict(terms=2, modulus=23, whole=True, regulariser="norm", penalty=5e-3, rate=1e-2, steps=1000),
    "k3": dict(terms=3, modulus=23, penalty=0.02, steps=2500),
    "k4": dict(terms=4, modulus=11, width=320, penalty=0.05, steps=3000),
    "k5": dict(terms=5, modulus=7, width=512, penalty=0.05, steps=3000),
    "k3-decay": dict(terms=3, modulus=23, regulariser="decay", penalty=0.005, steps=2000),
    "sum-of-2": dict(terms=2, modulus=59, steps=2000),
    "sum-of-2-strong": dict(terms=2, modulus=59, steps=3000, decay=1.0),
    "sum-of-3": dict(terms=3, modulus=17, steps=2500),
    "sum-of-4": dict(terms=4, modulus=11, steps=2000),
    "sum-of-5": dict(terms=5, modulus=7, steps=2250),
    "equal-3": dict(terms=3, modulus=11, train_count=665, steps=1000),
    "equal-4": dict(terms=4, modulus=11, train_count=665, steps=1000),
    "heads-3": dict(terms=3, modulus=61, steps=8000),
    "heads-4": dict(terms=4, modulus=31, steps=8000),
    "heads-5": dict(terms=5, modulus=17, steps=8000),
    "heads-3-strong": dict(terms=3, modulus=61, steps=8000, decay=1.0),
}  # fmt: skip
GROKKING = tuple(name for name in SETTINGS if name.startswith("sum-of-"))
HEADS = tuple(name for name in SETTINGS if name.startswith("heads-"))

_large = dict(rate=5e-3, penalty=0.005)
_tiny = dict(steps=30)
study = lab.Study(
    "fourier-circuits",
    title="Fourier circuits in modular addition",
    question="Which features does a network learn for a sum of k numbers mod p, and why Fourier features?",
    source="Dissertation, chapter 4 and appendix C",
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
            seeds=8, cost="5 min",
            fewer={"regularisation": 5, "network": 5, "weight-decay": 3, "grokking": 5, "equal-counts": 4},
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
_DATA = ("modulus", "terms", "train_count", "whole", "batch", "steps")
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


def _problem(params: Any) -> ModularAddition:
    return ModularAddition(params.modulus, params.terms)


def _network_bytes(params: Any) -> float:
    width = params.width or theory.required_width(params.modulus, params.terms)
    batch = params.modulus**params.terms if params.whole else params.batch
    return 4.0 * width * (4 * batch + 4 * (params.terms + 1) * params.modulus)


def _train_network(
    params: Any, seeds: Any, record: Any, *, penalty: float | None = None, shuffle: bool = False
) -> None:
    """Train, follow margins and spectra, and record them; the last network is also read on all inputs."""
    problem = _problem(params)
    count = problem.size if params.whole else params.train_count or problem.size // 2
    train, test = problem.split(seeds, count)
    width = params.width or theory.required_width(problem.p, problem.k)
    recipe = Recipe(
        params.steps, params.rate, params.penalty if penalty is None else penalty, params.regulariser,
        batch=None if params.whole else params.batch, every=max(1, params.steps // params.looks),
    )  # fmt: skip
    labels = None
    if shuffle:
        labels = problem.labels(problem.inputs(train)).gather(1, seeds.permutation("shuffled labels", count))
    for step, network in recipe.train(problem, Network.initial(problem, width, seeds), train, seeds, labels):
        seen = look(problem, network, train[:, : params.points])
        unseen = look(problem, network, test[:, : params.points]) if test.shape[1] else seen
        record(step=step, train_accuracy=seen.accuracy, test_accuracy=unseen.accuracy, loss=seen.loss,
               **margin_ratios(network, seen))  # fmt: skip
        if step in (0, params.steps):
            record(step=step, **sparsity(network))
            report = theory.neuron_report(network.U, network.W)
            for name in ("power", "norm", "frequency"):
                record.array(name, getattr(report, name).float(), step=step)
    everything = look(problem, network, torch.cat([train, test], 1))
    found = margin_ratios(network, everything)
    record(full_margin_ratio=found["margin_ratio"], full_mean_margin_ratio=found["mean_margin_ratio"],
           full_accuracy=everything.accuracy, full_alignment_ratio=found["alignment_ratio"],
           least_margin=everything.least_margin, norm=network.squares.pow((problem.k + 1) / 2).sum(1).pow(
               1 / (problem.k + 1)), objective=everything.loss + recipe.cost(network).double())  # fmt: skip
    if problem.size <= SMALL:
        pairs = zip(network.U.double().cpu(), network.W.double().cpu(), strict=True)
        record(logit_share=[logit_fourier(partial(theory.network_logits, u, w), problem.p, problem.k).share
                            for u, w in pairs])  # fmt: skip
    record.array("inputs", network.U[:, 0])


@study.arm("full-data", over={"setting": ["full-k3", "full-k2", "full-norm"]}, uses=_NETWORK, tolerance=0.05,
           working_set=_network_bytes)  # fmt: skip
def full_data(params, seeds, record, *, setting):
    """Networks trained on all inputs, as in the theory."""
    _train_network(params, seeds, record)


@study.arm("regularisation", over={"setting": ["full-k3"], "strength": lambda p: p.strengths}, uses=_NETWORK,
           tolerance=0.05, working_set=_network_bytes)  # fmt: skip
def regularisation(params, seeds, record, *, setting, strength):
    """The same at several λ, beside the global minimum in closed form."""
    _train_network(params, seeds, record, penalty=strength)
    record(optimum=theory.regularised_optimum(params.modulus, params.terms, strength),
           gap=theory.regularised_gap(params.modulus, params.terms, strength))  # fmt: skip


@study.arm("shuffled", over={"setting": ["full-k2"]}, uses=_NETWORK, tolerance=0.05, working_set=_network_bytes)
def shuffled(params, seeds, record, *, setting):
    """All inputs with labels in a random order: nothing periodic is left to learn."""
    _train_network(params, seeds, record, shuffle=True)


@study.arm("network", over={"setting": lambda p: p.networks}, uses=_NETWORK, tolerance=0.05,
           working_set=_network_bytes)  # fmt: skip
def network(params, seeds, record, *, setting):
    """Networks trained on half of the inputs with the penalty λ‖θ‖."""
    _train_network(params, seeds, record)


@study.arm("weight-decay", over={"setting": ["k3-decay"]}, uses=_NETWORK, tolerance=0.05, working_set=_network_bytes)
def weight_decay(params, seeds, record, *, setting):
    """The same with decoupled weight decay in place of the penalty."""
    _train_network(params, seeds, record)


def _transformer_bytes(params: Any) -> float:
    length = params.terms + 1
    inner = params.heads * params.head_dim
    return (
        4.0
        * params.batch
        * (4 * params.dim + 3 * params.mlp + length * (2 * inner + 2 * params.heads))
        * (1 if params.layers == 1 and not params.dropout else length)
    )


def _train_transformer(params: Any, seeds: Any, record: Any) -> None:
    """Train, follow both accuracies, and record the delay and what the heads look like."""
    problem = _problem(params)
    model = Transformer(params.dim, params.heads, params.head_dim, params.layers, params.mlp, params.dropout,
                        params.layernorm, params.positions, params.form)  # fmt: skip
    train, validation = problem.split(seeds, params.train_count or problem.size // 2)
    start = model.initial(problem, seeds)
    recipe = TransformerRecipe(params.steps, params.transformer_rate, params.decay, params.batch, every=params.every)
    history = []
    seen, unseen = train[:, : params.checked], validation[:, : params.checked]
    for step, weights in recipe.train(model, problem, start, train, seeds):
        rights = correct(model, problem, weights, unseen)
        accuracies = correct(model, problem, weights, seen).double().mean(1), rights.double().mean(1)
        history.append((step, *(values.tolist() for values in accuracies)))
        record(step=step, train_accuracy=accuracies[0], validation_accuracy=accuracies[1])
    for threshold, suffix in ((0.99, ""), (0.9, "_at_90")):
        delays = [grokking_delay([(step, a[i], b[i]) for step, a, b in history], threshold) for i in range(len(seeds))]
        found = {"log_ratio": [d.log_ratio for d in delays], "train_step": [d.train_step for d in delays],
                 "validation_step": [d.validation_step for d in delays],
                 "generalised": [float(not d.validation_censored) for d in delays]}  # fmt: skip
        record(**{name + suffix: values for name, values in found.items()})
    if problem.k == 2:
        known = mirrored(problem, train, unseen)
        record(mirrored_accuracy=share_correct(rights, known), unmirrored_accuracy=share_correct(rights, ~known),
               mirrored_share=known.double().mean(1))  # fmt: skip
    record(**attention_shares(model, problem, start, weights, seeds))
    record.array("heads", model.head_tables(weights, problem.p)[:, :4])
    record.array("untrained heads", model.head_tables(start, problem.p)[:, :4])


@study.arm("grokking", over={"setting": GROKKING}, uses=_TRANSFORMER, tolerance=0.05, working_set=_transformer_bytes)
def grokking(params, seeds, record, *, setting):
    """Transformers on half of the inputs: when do they fit, and when do they generalise?"""
    _train_transformer(params, seeds, record)


@study.arm("equal-counts", over={"setting": ["equal-3", "equal-4"]}, uses=_TRANSFORMER, tolerance=0.05,
           working_set=_transformer_bytes)  # fmt: skip
def equal_counts(params, seeds, record, *, setting):
    """The same p and the same number of training inputs for both k."""
    _train_transformer(params, seeds, record)


@study.arm("attention", over={"setting": HEADS}, uses=_TRANSFORMER, optional=True, tolerance=0.05,
           working_set=_transformer_bytes)  # fmt: skip
def attention(params, seeds, record, *, setting):
    """One-layer transformers at the source's sizes, for the shape of their heads."""
    _train_transformer(params, seeds, record)
