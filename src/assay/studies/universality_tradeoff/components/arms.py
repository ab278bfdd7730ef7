"""Contrastive learning as principal components of what augmentations leave, and whether optima ignore the rest."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveFloat
from torch.nn.functional import normalize

from assay import lab
from assay.training import Seeds

from ..learners import train_tables
from ..problem import FiniteModel, Generation
from ..theory import LOSSES
from .learners import covariance, principal, train_projection
from .theory import captured, hinge_counterexample, repaired, smoothed_loss

INVARIANT, SPURIOUS = (0.4, 0.3, 0.2, 0.1), (0.5, 0.3, 0.2)
GENERATIONS: tuple[Generation, ...] = ("identity", "rotation", "relu")
CURVED = ("logistic", "exponential")


class Params(lab.Params):
    tables: int = Field(50, ge=1, description="random tables per seed on which the identities are evaluated")
    table_steps: int = Field(1200, ge=10, description="Adam steps on a table of representations")
    table_norms: tuple[PositiveFloat, ...] = Field(
        (1.0, 1.5), min_length=1, description="norms B of the representations"
    )
    projection_steps: int = Field(1500, ge=10, description="steps of a linear representation on sampled triples")
    projection_batch: int = Field(500, ge=10, description="triples per step")


part = lab.Part(
    "components",
    params=Params,
    presets={
        "smoke": lab.PartPreset(tables=5, table_norms=(1.0,), table_steps=250, projection_steps=100),
        "paper": lab.PartPreset(tables=500, projection_steps=5000),
    },
)


@part.arm("identities", uses=("tables",), dtype="float64", tolerance=1e-9)
def identities(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Random tables: the loss −t against the variance of averages, other losses against Jensen's bound."""
    model = FiniteModel(INVARIANT, SPURIOUS)
    drawn = seeds.normal("tables", params.tables, *model.shape, 6)
    fixed = 2 * normalize(drawn, dim=-1)  # of constant norm 2
    linear = model.loss(drawn, LOSSES["linear"])
    record(pca_error=(linear + model.spread(drawn)).abs().amax(1))
    blind = model.averaged(drawn).unsqueeze(-2).expand_as(drawn)
    for name, loss in LOSSES.items():
        below, lowest = model.loss(fixed, loss), smoothed_loss(model, fixed, loss)
        record(at={"loss": name}, jensen_gap=(below - lowest).amin(1))
        equal = (model.loss(blind, loss) - smoothed_loss(model, blind, loss)).abs()
        record(at={"loss": name}, blind_error=equal.amax(1))
        record(at={"loss": name}, repaired_gap=(lowest - model.loss(repaired(model, fixed, 2.0), loss)).amin(1))
    even, turned = hinge_counterexample(math.pi / 4)
    _, straight = hinge_counterexample(0.0)
    differences = [float((even.loss(turned, LOSSES[n]) - even.loss(straight, LOSSES[n])).abs()) for n in LOSSES]
    for name, difference in zip(LOSSES, differences, strict=True):
        record(at={"loss": name}, turned_loss=difference)
    record(turned_variation=float(even.variation(turned) / 2))


@part.arm(
    "principal-components",
    over={"generation": list(GENERATIONS)},
    uses=("projection_steps", "projection_batch"),
    dtype="float64",
    tolerance=1e-6,
)
def principal_components(params: Params, seeds: Seeds, record: lab.Recorder, *, generation: Generation) -> None:
    """A linear representation trained on triples, and the components of averaged and of raw inputs."""
    model = FiniteModel((0.25, 0.2, 0.2, 0.15, 0.1, 0.1), (0.4, 0.3, 0.2, 0.1))
    inputs = model.inputs(seeds, generation)
    weights = train_projection(
        model,
        inputs,
        seeds,
        outputs=2,
        steps=params.projection_steps,
        batch=params.projection_batch,
        rate=1.0,
    )
    p, q = model.shares(inputs)
    averaged = covariance(model.averaged(inputs), p)
    raw = covariance(inputs.flatten(1, 2), torch.outer(p, q).flatten())
    record(captured=captured(weights, averaged), captured_by_raw=captured(principal(raw, 2), averaged))
    record(spurious_variance=1 - averaged.diagonal(dim1=1, dim2=2).sum(1) / raw.diagonal(dim1=1, dim2=2).sum(1))


@part.arm(
    "invariance",
    over={"norm": lambda p: p.table_norms, "loss": [*CURVED, "hinge"], "view": ["redrawn", "kept"]},
    uses=("table_steps",),
    dtype="float64",
    tolerance=1e-4,
)
def invariance(params: Params, seeds: Seeds, record: lab.Recorder, *, norm: float, loss: str, view: str) -> None:
    """Tables of constant norm trained on the exact loss, with a second view that redraws z_U or keeps it."""
    model = FiniteModel(INVARIANT, SPURIOUS, kept=view == "kept")
    states = model.shape[0] * model.shape[1]
    start = seeds.normal("table", states, 2 * states)
    shape = (len(seeds), *model.shape, 2 * states)
    found = train_tables(
        start,
        lambda t: model.loss(t.reshape(shape), LOSSES[loss]),
        radius=norm,
        steps=params.table_steps,
        rate=0.05,
    ).reshape(shape)
    record(variation=model.variation(found) / norm**2, final_loss=model.loss(found, LOSSES[loss]))
