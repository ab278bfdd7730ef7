"""GemFilter: an early layer points at the tokens that matter, and the model answers from those alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from assay import lab

from . import theory
from .problem import TASKS, PlantedNeedle

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Params(lab.Params):
    cost_lengths: tuple[PositiveInt, ...] = Field(
        (4096, 16_384, 65_536, 122_880, 2**20), min_length=1, description="n of the cost model"
    )
    length: int = Field(256, ge=64, description="n of the exact statements on random models")
    keep: int = Field(48, ge=33, description="their budget k")
    new: int = Field(6, ge=2, description="tokens that they decode")
    lengths: tuple[PositiveInt, ...] = Field((256, 1024), min_length=1, description="n of the planted needles; k = n/8")
    prompts: int = Field(4, ge=1, description="planted prompts per seed, length and depth")
    pairs: int = Field(4, ge=1, le=8, description="facts in a planted prompt, one of them asked for")
    model: str = Field("smollm2", description="the real model: a hub name, a folder, a GGUF file, or smollm2")
    real_lengths: tuple[int, ...] = Field(
        (1024, 2048), min_length=1, description="n of the real needle prompts; k = n/8"
    )
    long_lengths: tuple[int, ...] = Field((4096,), min_length=1, description="n of the optional arm with long prompts")
    real_depths: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        DEPTHS, min_length=1, description="depths of the real needles, one a seed in turn"
    )
    answer_tokens: int = Field(16, ge=1, description="tokens of a real answer")
    filter_layer: int = Field(14, ge=0, description="the real model's filter layer, chosen on tuning prompts")
    filter_rule: Literal["logits", "softmax", "window"] = Field("window", description="its rule, chosen with it")
    text_layer: int = Field(23, ge=0, description="the layer at which the text's rule does best on tuning prompts")
    scan_layers: tuple[NonNegativeInt, ...] = Field(
        (2, 8, 20, 29), min_length=1, description="filter layers whose answers are compared"
    )
    choice_prompts: int = Field(8, ge=4, description="tuning prompts per seed: half choose, half judge")

    @model_validator(mode="after")
    def _budgets_below_lengths(self) -> Params:
        if self.keep >= self.length:
            raise ValueError(f"a budget of {self.keep} leaves nothing to filter in {self.length} tokens")
        if min(*self.real_lengths, *self.long_lengths) < 192:
            raise ValueError("a real needle prompt needs at least 192 tokens")
        for hops in TASKS.values():
            PlantedNeedle(min(self.lengths), hops, pairs=self.pairs)  # refuses a length without room for the facts
        return self


REAL = ("choice", "needles")

study = lab.Study(
    "gemfilter",
    title="GemFilter: early layers know which tokens matter",
    question="Can a long prompt be cut down inside the network, early and without training, and still be answered?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 9",
    params=Params,
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s", lengths=(256,), prompts=1, pairs=2, length=128, new=3,
                            real_lengths=(256,), long_lengths=(320,), real_depths=(0.5,), answer_tokens=3,
                            choice_prompts=4, scan_layers=(2,)),
        "laptop": lab.Preset(seeds=20, cost="6 min", prompts=2, arms=REAL,
                             fewer={"cost": 4, "exact": 4, "planted": 4, "choice": 3}),
        "paper": lab.Preset(seeds=200, cost="25 min on a GPU",
                            fewer={"cost": 5, "exact": 20, "planted": 20, "choice": 8, "needles-long": 80},
                            lengths=(256, 1024, 4096), prompts=10, choice_prompts=16,
                            long_lengths=(4096, 7680), arms=(*REAL, "needles-long")),
    },
)  # fmt: skip


def _report(record: Any, per_seed: list[list[tuple[dict[str, Any], dict[str, float]]]]) -> None:
    """Rows that every seed has in the same order, recorded for all seeds at once."""
    for rows in zip(*per_seed, strict=True):
        columns, first = rows[0]
        record(at=columns, **{name: [row[1][name] for row in rows] for name in first})


@study.arm("cost", over={"model": list(theory.MODELS), "length": lambda p: p.cost_lengths}, uses=(), dtype="float64")
def cost(params, seeds, record, *, model, length):
    """The corrected table of costs for the models of the source."""
    shape, layer = theory.MODELS[model]
    made = theory.costs(model, length)
    record(speed_up=made["full"].prefill_flops / made["gemfilter"].prefill_flops,
           share_of_ceiling=made["full"].prefill_flops / made["gemfilter"].prefill_flops
           / theory.ceiling(shape.layers, layer))  # fmt: skip
    for method, one in made.items():
        record(at={"method": method}, prefill_flops=one.prefill_flops, decode_flops=one.decode_flops,
               prefill_bytes=one.prefill_bytes, decode_bytes=one.decode_bytes, cache_bytes=one.cache_bytes)  # fmt: skip


@study.arm("exact", over={"layer": [2, 5]}, uses=("length", "keep", "new"), needs=("extra:llm",))
def exact(params, seeds, record, *, layer):
    """Small random models: operations, layers run, cache bytes, positions, index sets, and k ≥ n."""
    from .exact import exact_rows

    made = [exact_rows(seed, layer, params.length, params.keep, params.new, seeds.device) for seed in seeds]
    _report(record, made)


@study.arm("planted", over={"task": list(TASKS), "length": lambda p: p.lengths}, uses=("prompts", "pairs"),
           needs=("extra:llm",))  # fmt: skip
def planted(params, seeds, record, *, task, length):
    """The hand-set model on planted needles: layers, rows, methods, selections."""
    from .planted import planted_rows

    made = [planted_rows(seed, task, length, DEPTHS, params.prompts, params.pairs, seeds.device) for seed in seeds]
    _report(record, made)


def _real(params: Any) -> tuple[str, ...]:
    return ("extra:llm", f"model:{params.model}")


_MODEL: dict[str, Any] = dict(optional=True, needs=_real, tolerance=1e-3)
_ALONE: dict[str, Any] = dict(**_MODEL, working_set=lambda p: 2.0**40)  # one seed per unit: units run side by side
# On a CPU five prompts are decoded together: one takes nearly as long as five.
_FIVE: dict[str, Any] = dict(**_MODEL, working_set=lambda p: 1.5 * 2**20)
_FILTER = ("model", "filter_layer", "filter_rule", "text_layer", "answer_tokens")


@study.arm("choice", uses=("model", "real_lengths", "choice_prompts"), **_ALONE)
def choice(params, seeds, record):
    """The filter layer and rule of the real model, chosen on tuning prompts and judged on others."""
    from .real_model import choice_rows, loaded_model

    loaded = loaded_model(params.model, seeds.device)
    _report(record, [choice_rows(loaded, seed, params.real_lengths[0], params.choice_prompts) for seed in seeds])


@study.arm("needles", over={"length": lambda p: p.real_lengths},
           uses=(*_FILTER, "real_lengths", "real_depths", "scan_layers"), **_FIVE)  # fmt: skip
def needles(params, seeds, record, *, length):
    """The real model on needle prompts; ablations of layer and row at the first length."""
    layers = tuple(params.scan_layers) if length == params.real_lengths[0] else ()
    _needles(params, seeds, record, length, layers)


@study.arm("needles-long", over={"length": lambda p: p.long_lengths}, uses=(*_FILTER, "real_depths"),
           **_ALONE)  # fmt: skip
def needles_long(params, seeds, record, *, length):
    """The same on longer prompts, where asked for."""
    _needles(params, seeds, record, length, ())


def _needles(params: Any, seeds: Any, record: Any, length: int, layers: tuple[int, ...]) -> None:
    from .real_model import Trial, loaded_model, needle_trial

    loaded = loaded_model(params.model, seeds.device)
    trial = Trial(params.filter_layer, params.filter_rule, params.text_layer, layers, params.answer_tokens)
    made = needle_trial(loaded, list(seeds), length, params.real_depths, trial)
    _report(record, [rows for rows, _ in made])
    record.array("kept", torch.stack([selected.kept for _, selected in made]))
    record.array("heads", torch.stack([selected.heads for _, selected in made]))
    record.array("needle", torch.stack([selected.needle for _, selected in made]))
