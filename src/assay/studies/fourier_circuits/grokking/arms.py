"""Transformers on modular addition: when do they fit, when do they generalise, and is it k that decides?"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field

from assay import lab
from assay.probes.grokking import grokking_delay
from assay.training import Seeds

from ..params import Task
from .learners import Transformer, TransformerRecipe, attention_shares, correct, share_correct

STRONG = "sum-of-2-strong"


class Params(Task):
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

    @property
    def transformer(self) -> Transformer:
        return Transformer(
            self.dim,
            self.heads,
            self.head_dim,
            self.layers,
            self.mlp,
            self.dropout,
            self.layernorm,
            self.positions,
            self.form,
        )

    @property
    def transformer_recipe(self) -> TransformerRecipe:
        return TransformerRecipe(self.steps, self.transformer_rate, self.decay, self.batch, every=self.every)

    def transformer_bytes(self) -> float:
        """What one transformer touches in a step."""
        self.check_learner("transformer")
        if self.whole:
            raise lab.UserError(
                "a transformer is validated on inputs that it did not see, so whole=true is not allowed"
            )
        length = self.terms + 1
        inner = self.heads * self.head_dim
        one = 4.0 * self.batch * (4 * self.dim + 3 * self.mlp + length * (2 * inner + 2 * self.heads))
        return one * (1 if self.layers == 1 and not self.dropout else length)


def transformers(**values: Any) -> dict[str, Any]:
    return {"learner": "transformer"} | values


SUMS = {
    "sum-of-2": transformers(terms=2, modulus=59, steps=2000),
    STRONG: transformers(terms=2, modulus=59, steps=3000, decay=1.0),
    "sum-of-3": transformers(terms=3, modulus=17, steps=2500),
    "sum-of-4": transformers(terms=4, modulus=11, steps=2000),
    "sum-of-5": transformers(terms=5, modulus=7, steps=2250),
}
EQUAL = {
    "equal-3": transformers(terms=3, modulus=11, train_count=665, steps=1000),
    "equal-4": transformers(terms=4, modulus=11, train_count=665, steps=1000),
}

part = lab.Part(
    "grokking",
    params=Params,
    settings=SUMS | EQUAL,
    presets={
        "smoke": lab.PartPreset(
            dim=16,
            heads=2,
            head_dim=8,
            mlp=32,
            every=10,
            checked=64,
            settings={
                "sum-of-2": {"modulus": 11, "steps": 30},
                STRONG: {"modulus": 7, "steps": 30},
                "sum-of-3": {"modulus": 7, "steps": 30},
                "sum-of-4": {"modulus": 5, "steps": 30},
                "sum-of-5": {"modulus": 3, "steps": 30},
                "equal-3": {"modulus": 5, "train_count": 60, "steps": 30},
                "equal-4": {"modulus": 5, "train_count": 60, "steps": 30},
            },
        ),
        "laptop": lab.PartPreset(fewer={"grokking": 5, "sum-of-2": 4, STRONG: 4, "equal-counts": 4}),
        "paper": lab.PartPreset(
            dim=128,
            heads=160,
            head_dim=8,
            layers=2,
            mlp=512,
            dropout=0.1,
            every=50,
            settings={
                "sum-of-2": {"modulus": 97, "steps": 20_000},
                STRONG: {"modulus": 97, "steps": 4000},
                "sum-of-3": {"modulus": 31, "steps": 5000},
                "sum-of-4": {"modulus": 11, "steps": 3000},
                "sum-of-5": {"modulus": 5, "steps": 3000},
                "equal-3": {"steps": 3000},
                "equal-4": {"steps": 3000},
            },
        ),
    },
)


@part.arm("grokking", over={"setting": list(SUMS)}, tolerance=0.05, working_set=Params.transformer_bytes)
def grokking(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Transformers on half of the inputs: when do they fit, and when do they generalise?"""
    train_transformer(params, seeds, record)


@part.arm("equal-counts", over={"setting": list(EQUAL)}, tolerance=0.05, working_set=Params.transformer_bytes)
def equal_counts(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """The same p and the same number of training inputs for both k."""
    train_transformer(params, seeds, record)


def train_transformer(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Train, follow both accuracies, and record the delay and what the heads look like."""
    problem, model = params.problem, params.transformer
    train, validation = problem.split(seeds, params.training_inputs)
    weights = start = model.initial(problem, seeds)
    seen, unseen = train[:, : params.checked], validation[:, : params.checked]
    rights = torch.zeros_like(unseen, dtype=torch.bool)
    history: list[tuple[int, list[float], list[float]]] = []
    for step, weights in params.transformer_recipe.train(model, problem, start, train, seeds):
        rights = correct(model, problem, weights, unseen)
        fitted, generalised = correct(model, problem, weights, seen).double().mean(1), rights.double().mean(1)
        history.append((step, fitted.tolist(), generalised.tolist()))
        record(step=step, trials=seen.shape[1], train_accuracy=fitted)
        record(step=step, trials=unseen.shape[1], validation_accuracy=generalised)
    for threshold, suffix in ((0.99, ""), (0.9, "_at_90")):
        delays = [grokking_delay([(step, a[i], b[i]) for step, a, b in history], threshold) for i in range(len(seeds))]
        found: dict[str, Any] = {
            "log_ratio": [delay.log_ratio for delay in delays],
            "train_step": [delay.train_step for delay in delays],
            "validation_step": [delay.validation_step for delay in delays],
            "generalised": torch.tensor([not delay.validation_censored for delay in delays]),
        }
        record(**{name + suffix: values for name, values in found.items()})
    if problem.k == 2:
        known = problem.mirrored(train, unseen)
        for name, pairs in (("mirrored", known), ("unmirrored", ~known)):
            # A seed without such pairs has no accuracy on them (NaN), of one trial.
            accuracy: dict[str, Any] = {f"{name}_accuracy": share_correct(rights, pairs)}
            record(trials=pairs.sum(1).clamp(min=1).tolist(), **accuracy)
        record(trials=known.shape[1], mirrored_share=known.double().mean(1))
    shares: dict[str, Any] = attention_shares(model, problem, start, weights, seeds)
    record(**shares)
    record.array("heads", model.head_tables(weights, problem.p)[:, :4])
    record.array("untrained heads", model.head_tables(start, problem.p)[:, :4])
