"""A real language model on needle prompts: does it answer from what an early layer keeps?"""

from __future__ import annotations

from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeInt, model_validator

from assay import lab
from assay.training import Seeds

from ..choice.learners import loaded_model
from ..learners import report
from ..params import DEPTHS, RealModel
from .learners import Trial, needle_trial


class Params(RealModel):
    long_lengths: tuple[int, ...] = Field((4096,), min_length=1, description="n of the optional arm with long prompts")
    beyond_lengths: tuple[int, ...] = Field(
        (10_240,), min_length=1, description="n of the optional arm with prompts beyond the real model's context"
    )
    context: int = Field(8192, ge=1, description="tokens that the real model was made for")
    real_depths: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        DEPTHS, min_length=1, description="depths of the real needles, one a seed in turn"
    )
    answer_tokens: int = Field(16, ge=1, description="tokens of a real answer")
    text_layer: int = Field(23, ge=0, description="the layer at which the text's rule does best on tuning prompts")
    scan_layers: tuple[NonNegativeInt, ...] = Field(
        (2, 8, 20, 29), min_length=1, description="filter layers whose answers are compared"
    )

    @model_validator(mode="after")
    def _room_for_a_needle(self) -> Params:
        if min(*self.real_lengths, *self.long_lengths, *self.beyond_lengths) < 192:
            raise ValueError("a real needle prompt needs at least 192 tokens")
        return self

    @property
    def later_layer(self) -> int | None:
        """The first layer of the scan after the chosen one."""
        return next((layer for layer in self.scan_layers if layer > self.filter_layer), None)

    def trial(self, layers: tuple[int, ...] = (), *, chat: bool = True) -> Trial:
        """What is compared on a prompt, with the answers of these filter layers."""
        return Trial(self.filter_layer, self.filter_rule, self.text_layer, layers, self.answer_tokens, chat)


part = lab.Part(
    "needles",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            long_lengths=(320,), beyond_lengths=(320,), real_depths=(0.5,), answer_tokens=3, scan_layers=(2,)
        ),
        "laptop": lab.PartPreset(arms=("needles",)),
        "paper": lab.PartPreset(
            arms=("needles", "needles-plain", "needles-long", "needles-beyond"),
            fewer={"needles-long": 80, "needles-beyond": 80},
            long_lengths=(4096, 7680),
        ),
    },
)

_TRIAL = ("model", "filter_layer", "filter_rule", "text_layer", "answer_tokens", "real_depths")
_MODEL: dict[str, Any] = {"optional": True, "needs": Params.requirements, "tolerance": 1e-3}


@part.arm(
    "needles",
    over={"length": lambda p: p.real_lengths},
    uses=(*_TRIAL, "real_lengths", "scan_layers"),
    # On a CPU five prompts are decoded together: one takes nearly as long as five.
    working_set=lambda p: 1.5 * 2**20,
    **_MODEL,
)
def needles(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int) -> None:
    """The real model on needle prompts; ablations of layer and row at the first length."""
    layers = tuple(params.scan_layers) if length == params.real_lengths[0] else ()
    _needles(params, seeds, record, length, params.trial(layers))


@part.arm(
    "needles-plain",
    over={"length": lambda p: p.real_lengths[:1]},
    uses=_TRIAL,
    working_set=lambda p: 1.5 * 2**20,
    **_MODEL,
)
def needles_plain(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int) -> None:
    """The same facts at the first length without the model's chat template, where asked for."""
    _needles(params, seeds, record, length, params.trial(chat=False))


@part.arm("needles-long", over={"length": lambda p: p.long_lengths}, uses=_TRIAL, chunk=1, **_MODEL)
def needles_long(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int) -> None:
    """The same on longer prompts, where asked for."""
    _needles(params, seeds, record, length, params.trial())


@part.arm("needles-beyond", over={"length": lambda p: p.beyond_lengths}, uses=_TRIAL, chunk=1, **_MODEL)
def needles_beyond(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int) -> None:
    """The same on prompts longer than the model's context, where asked for."""
    _needles(params, seeds, record, length, params.trial())


def _needles(params: Params, seeds: Seeds, record: lab.Recorder, length: int, trial: Trial) -> None:
    loaded = loaded_model(params.model, seeds.device)
    made = needle_trial(loaded, list(seeds), length, params.real_depths, trial)
    report(record, [rows for rows, _ in made])
    record.array("kept", torch.stack([selected.kept for _, selected in made]))
    record.array("heads", torch.stack([selected.heads for _, selected in made]))
    record.array("needle", torch.stack([selected.needle for _, selected in made]))
