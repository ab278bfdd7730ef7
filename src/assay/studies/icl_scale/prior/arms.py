"""Do larger networks follow flipped labels where smaller ones keep their prior? Transformers with a prior rule."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from assay import lab
from assay.training import Seeds, Stacked

from .learners import Size, attention_to_examples, train
from .problem import PriorRule, Prompts

SIZES = {"small": Size(8, 1, 1), "medium": Size(16, 2, 2), "large": Size(32, 2, 2)}
FLIPS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Params(lab.Params):
    rule_dim: int = Field(4, ge=2, description="dimension of the inputs of in-context classification")
    rule_examples: int = Field(16, ge=1, description="labelled examples in a prompt, as in the source's experiments")
    random_rules: float = Field(0.02, ge=0, le=1, description="share of training tasks with a random rule")
    rule_steps: int = Field(2500, ge=1, description="AdamW steps of the transformers")
    rule_batch: int = Field(128, ge=1, description="fresh prompts per step")
    rule_rate: float = Field(1e-3, gt=0, description="their rate")
    rule_prompts: int = Field(2000, ge=50, description="prompts per seed on which they are tested")

    def rules(self, share: float) -> PriorRule:
        return PriorRule(self.rule_dim, self.rule_examples, share)


part = lab.Part(
    "prior",
    params=Params,
    presets={
        "smoke": lab.PartPreset(rule_steps=60, rule_batch=32, rule_prompts=200),
        "laptop": lab.PartPreset(fewer={"no-random-rules": 4}),
        "paper": lab.PartPreset(rule_steps=10_000, rule_prompts=10_000, arms=("medium-prior",)),
    },
)


def _measure(
    params: Params, network: Stacked, size: Size, problem: PriorRule, seeds: Seeds, record: lab.Recorder
) -> None:
    """Accuracies on the prior rule by the share of flipped labels, and on random rules, and where the query looks;
    prompts and flips are the same for every size of network."""
    order = seeds.uniform("order of flips", params.rule_prompts, params.rule_examples).argsort(-1).argsort(-1)
    clean = problem.sample(seeds, "test on the prior rule", params.rule_prompts, "prior")
    for flipped in FLIPS:
        tokens = clean.tokens(order, flipped)
        record(at={"flipped": flipped}, trials=params.rule_prompts, prior_accuracy=_right(network, clean, tokens))
        record(at={"flipped": flipped}, attention_to_examples=attention_to_examples(network, size, tokens))
    other = problem.sample(seeds, "test on random rules", params.rule_prompts, "random")
    record(trials=params.rule_prompts, random_accuracy=_right(network, other, other.tokens()))


@torch.no_grad()
def _right(network: Stacked, prompts: Prompts, tokens: Tensor) -> Tensor:
    right: Tensor = (network(tokens) >= 0) == (prompts.answers > 0)
    return right.double().mean(1)


def _train(params: Params, size: str, share: float, seeds: Seeds, record: lab.Recorder) -> None:
    problem, steps = params.rules(share), params.rule_steps
    network = train(
        problem,
        SIZES[size],
        seeds,
        steps=steps,
        batch=params.rule_batch,
        rate=params.rule_rate,
        watch=lambda step: record.progress(step, steps),
    )
    record.note(parameters=sum(value[0].numel() for value in network.values))
    _measure(params, network, SIZES[size], problem, seeds, record)


@part.arm("prior", over={"size": ["small", "large"]}, chunk=2, tolerance=0.1)
def prior(params: Params, seeds: Seeds, record: lab.Recorder, *, size: str) -> None:
    """A small and a large transformer, trained on the same prompts: the prior rule, and a few random rules."""
    _train(params, size, params.random_rules, seeds, record)


@part.arm("medium-prior", over={"size": ["medium"]}, chunk=2, tolerance=0.1, optional=True)
def medium_prior(params: Params, seeds: Seeds, record: lab.Recorder, *, size: str) -> None:
    """A transformer between the two."""
    _train(params, size, params.random_rules, seeds, record)


@part.arm(
    "no-random-rules",
    uses=tuple(name for name in Params.model_fields if name != "random_rules"),
    chunk=2,
    tolerance=0.1,
)
def no_random_rules(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The large transformer when all training tasks have the prior rule: it has no reason to read the examples."""
    _train(params, "large", 0.0, seeds, record)
