"""Training a network or a transformer as the parameters say, recording what is measured on the way."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from assay.probes.fourier import logit_fourier
from assay.probes.grokking import grokking_delay

from . import theory
from .learners import Network, Recipe, look
from .measures import attention_shares, margin_ratios, mirrored, share_correct, sparsity
from .problem import ModularAddition
from .transformer import Transformer, TransformerRecipe, correct

SMALL = 20_000  # inputs up to which the whole spectrum of the logits is measured


def _problem(params: Any) -> ModularAddition:
    return ModularAddition(params.modulus, params.terms)


def network_bytes(params: Any) -> float:
    width = params.width or theory.required_width(params.modulus, params.terms)
    batch = params.modulus**params.terms if params.whole else params.batch
    return 4.0 * width * (4 * batch + 4 * (params.terms + 1) * params.modulus)


def train_network(params: Any, seeds: Any, record: Any, *, penalty: float | None = None, shuffle: bool = False) -> None:
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


def transformer_bytes(params: Any) -> float:
    length = params.terms + 1
    inner = params.heads * params.head_dim
    return (
        4.0
        * params.batch
        * (4 * params.dim + 3 * params.mlp + length * (2 * inner + 2 * params.heads))
        * (1 if params.layers == 1 and not params.dropout else length)
    )


def train_transformer(params: Any, seeds: Any, record: Any) -> None:
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
