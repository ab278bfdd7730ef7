"""How much norm a feature costs, and an optimum that a linear probe cannot use."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveFloat, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import train_tables
from ..params import check_rising
from ..theory import LOSSES
from .theory import (
    FOUR_STATES,
    SEPARABLE,
    XOR,
    XOR_LABELS,
    XOR_LOSS,
    best_linear_accuracy,
    construction_threshold,
    exact_threshold,
    rare_pair,
)


class Params(lab.Params):
    rare_shares: tuple[PositiveFloat, ...] = Field(
        (0.05, 0.1, 0.15, 0.2), min_length=2, description="probabilities q of each rare state, below 1/4"
    )
    norm_multiples: tuple[PositiveFloat, ...] = Field(
        (0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.5, 2.0),
        min_length=2,
        description="norms, as multiples of the exact threshold",
    )
    threshold_steps: int = Field(3000, ge=100, description="Adam steps on the table of three states")
    xor_starts: int = Field(25, ge=1, description="random starts per seed against the XOR layout")

    @model_validator(mode="after")
    def _shares_and_multiples(self) -> Params:
        check_rising(rare_shares=self.rare_shares, norm_multiples=self.norm_multiples)
        if self.rare_shares[-1] >= 0.25:
            raise ValueError("rare_shares must lie below 1/4: from there on the threshold is 0")
        if not self.norm_multiples[0] < 1 < self.norm_multiples[-1] or 1.0 in self.norm_multiples:
            raise ValueError("norm_multiples must have values below and above 1, and not 1 itself")
        return self


part = lab.Part(
    "thresholds",
    params=Params,
    presets={
        "smoke": lab.PartPreset(rare_shares=(0.05, 0.2), norm_multiples=(0.9, 1.2), threshold_steps=800, xor_starts=5),
        "paper": lab.PartPreset(threshold_steps=10_000, xor_starts=100),
    },
)


@part.arm(
    "thresholds",
    over={"share": lambda p: p.rare_shares},
    uses=("norm_multiples", "threshold_steps"),
    dtype="float64",
    tolerance=1e-3,
)
def thresholds(params: Params, seeds: Seeds, record: lab.Recorder, *, share: float) -> None:
    """Tables of the three states trained at norms around the threshold."""
    model, exact = rare_pair(share), exact_threshold(share)
    multiples = torch.tensor(params.norm_multiples, dtype=seeds.dtype, device=seeds.device)
    start = seeds.normal("table", len(multiples), 3, 4)
    radius = (exact * multiples)[:, None, None]
    found = train_tables(
        start,
        lambda t: model.loss(t.unsqueeze(-2), LOSSES["logistic"]),
        radius=radius,
        steps=params.threshold_steps,
        rate=0.03,
    )
    apart = (found[:, :, 1] - found[:, :, 2]).norm(dim=-1) / (exact * multiples)
    for at, multiple in enumerate(params.norm_multiples):
        record(at={"multiple": multiple}, separation=apart[:, at], norm=multiple * exact)
    record(threshold=exact, construction=construction_threshold(share), alone=2 * share**2)


@part.arm("xor", uses=("xor_starts",), dtype="float64", tolerance=1e-6)
def xor(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The XOR layout against trained ones, and what linear classifiers make of it."""
    loss = LOSSES["logistic"]

    def objective(table: torch.Tensor) -> torch.Tensor:
        return FOUR_STATES.loss(table.unsqueeze(-2), loss)

    start = seeds.normal("unit vectors", params.xor_starts, 4, 2)
    found = objective(train_tables(start, objective, radius=1.0, steps=800, rate=0.05))
    record(best_of_starts=found.amin(1) - XOR_LOSS)
    record(xor_error=abs(float(objective(XOR)) - XOR_LOSS), order_error=abs(float(objective(SEPARABLE)) - XOR_LOSS))
    record(
        homogeneous=best_linear_accuracy(XOR, XOR_LABELS, bias=False),
        affine=best_linear_accuracy(XOR, XOR_LABELS, bias=True),
        separable=best_linear_accuracy(SEPARABLE, XOR_LABELS, bias=False),
    )
