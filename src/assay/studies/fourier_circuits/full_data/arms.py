"""Networks trained on all p^k inputs, as in the theory: do they end at the maximum margin, and at which λ?"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from pydantic import Field, field_validator

from assay import lab
from assay.methods.modular_margin import network_logits
from assay.probes.fourier import logit_fourier
from assay.training import Seeds

from ..learners import Network, Recipe, look, margin_ratios
from ..params import NetworkParams
from ..problem import ModularAddition
from ..theory import neuron_report, sparsity
from .theory import regularised_gap, regularised_optimum, vanishing_penalty

SMALL = 20_000  # inputs up to which the whole spectrum of the logits is measured


class Params(NetworkParams):
    strengths: tuple[float, ...] = Field((1e-2, 2e-3, 1e-3, 1e-4, 1e-5), min_length=2, description="λ where it varies")

    @field_validator("strengths")
    @classmethod
    def _strengths(cls, strengths: tuple[float, ...]) -> tuple[float, ...]:
        if min(strengths) <= 0 or len(set(strengths)) < len(strengths):
            raise ValueError("every λ must be positive and occur once")
        return strengths

    @property
    def threshold(self) -> float:
        """The λ from which on the zero network is best."""
        return vanishing_penalty(self.modulus, self.terms)


def _all_inputs(**values: Any) -> dict[str, Any]:
    return {"whole": True} | values


SETTINGS = {
    "full-k3": _all_inputs(terms=3, modulus=7, regulariser="sum", penalty=1e-4, rate=5e-3, steps=1500),
    "full-k2": _all_inputs(terms=2, modulus=11, regulariser="sum", penalty=1e-4, rate=1e-2, steps=2500),
    "full-norm": _all_inputs(terms=2, modulus=23, regulariser="norm", penalty=5e-3, rate=1e-2, steps=1000),
}

part = lab.Part(
    "full_data",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.PartPreset(
            strengths=(1e-2, 1e-4),
            settings={
                "full-k3": {"steps": 60, "rate": 3e-2},
                "full-k2": {"steps": 60},
                "full-norm": {"steps": 30},
            },
        ),
        "laptop": lab.PartPreset(fewer={"full-data": 5, "regularisation": 4, "shuffled": 5}),
    },
)

# What every training reads: a parameter that spans a grid is not among it.
TRAINING: dict[str, Any] = {
    "uses": tuple(NetworkParams.model_fields),
    "tolerance": 0.05,
    "working_set": NetworkParams.network_bytes,
}


@part.arm("full-data", over={"setting": list(SETTINGS)}, **TRAINING)
def full_data(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Networks trained on all inputs, as in the theory."""
    train_network(params, seeds, record)


@part.arm("regularisation", over={"setting": ["full-k3"], "strength": lambda p: p.strengths}, **TRAINING)
def regularisation(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, strength: float) -> None:
    """The same at several λ, beside the global minimum in closed form."""
    train_network(params, seeds, record, penalty=strength)
    record(
        optimum=regularised_optimum(params.modulus, params.terms, strength),
        gap=regularised_gap(params.modulus, params.terms, strength),
    )


@part.arm("shuffled", over={"setting": ["full-k2"]}, **TRAINING)
def shuffled(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """All inputs with labels in a random order: nothing periodic is left to learn."""
    train_network(params, seeds, record, shuffle=True)


def train_network(
    params: NetworkParams, seeds: Seeds, record: lab.Recorder, *, penalty: float | None = None, shuffle: bool = False
) -> None:
    """Train, follow margins and spectra, and record them; the last network is also read on all inputs."""
    problem, recipe = params.problem, params.network_recipe(penalty)
    train, test = problem.split(seeds, params.training_inputs)
    labels = None
    if shuffle:
        order = seeds.permutation("shuffled labels", train.shape[1])
        labels = problem.labels(problem.inputs(train)).gather(1, order)
    network = start = Network.initial(problem, params.neurons, seeds)
    for step, network in recipe.train(problem, start, train, seeds, labels):
        seen = look(problem, network, train[:, : params.points])
        unseen = look(problem, network, test[:, : params.points]) if test.shape[1] else seen
        ratios: dict[str, Any] = margin_ratios(network, seen)
        record(step=step, trials=seen.inputs, train_accuracy=seen.accuracy)
        record(step=step, trials=unseen.inputs, test_accuracy=unseen.accuracy)
        record(step=step, loss=seen.loss, **ratios)
        if step in (0, params.steps):
            spectra: dict[str, Any] = sparsity(network.U, network.W)
            record(step=step, **spectra)
            report = neuron_report(network.U, network.W)
            for name in ("power", "norm", "frequency"):
                record.array(name, getattr(report, name).float(), step=step)
    _record_on_all(problem, recipe, network, torch.cat([train, test], 1), record)
    record.array("inputs", network.U[:, 0])


def _record_on_all(
    problem: ModularAddition, recipe: Recipe, network: Network, flat: torch.Tensor, record: lab.Recorder
) -> None:
    """Margins, norm and objective of the last network on all inputs, and how much of its logits depends on Σa − c."""
    seen = look(problem, network, flat)
    found = margin_ratios(network, seen)
    order = problem.k + 1
    record(
        full_margin_ratio=found["margin_ratio"],
        full_mean_margin_ratio=found["mean_margin_ratio"],
        full_alignment_ratio=found["alignment_ratio"],
        least_margin=seen.least_margin,
        norm=network.squares.pow(order / 2).sum(1).pow(1 / order),
        objective=seen.loss + recipe.cost(network).double(),
    )
    record(trials=seen.inputs, full_accuracy=seen.accuracy)
    if problem.size <= SMALL:
        pairs = zip(network.U.double().cpu(), network.W.double().cpu(), strict=True)
        spectra = [logit_fourier(partial(network_logits, u, w), problem.p, problem.k) for u, w in pairs]
        record(logit_share=[spectrum.share for spectrum in spectra])
