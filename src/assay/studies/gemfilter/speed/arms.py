"""Prefill, decoding and memory as they are measured, of full attention, SnapKV and GemFilter side by side."""

from __future__ import annotations

from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import report
from . import theory
from .learners import speed_rows


class Params(lab.Params):
    speed_length: int = Field(1536, ge=128, description="n of the prompt whose reading is timed")
    speed_keep: int = Field(128, ge=33, description="its budget k")
    speed_width: int = Field(
        theory.HEAD_DIM * theory.GROUP,
        ge=theory.HEAD_DIM * theory.GROUP,
        multiple_of=theory.HEAD_DIM * theory.GROUP,
        description="hidden width of the random model that is timed",
    )
    speed_tokens: int = Field(24, ge=2, description="tokens whose decoding is timed")
    speed_rounds: int = Field(5, ge=1, description="rounds of all methods, of which the median is kept")

    @model_validator(mode="after")
    def _timed_budget_below_length(self) -> Params:
        if self.speed_keep >= self.speed_length:
            raise ValueError(f"a budget of {self.speed_keep} leaves nothing to filter in {self.speed_length} tokens")
        return self


part = lab.Part(
    "speed",
    params=Params,
    presets={
        "smoke": lab.PartPreset(speed_length=512, speed_keep=64, speed_tokens=4, speed_rounds=1),
        "laptop": lab.PartPreset(fewer={"speed": 5}),
        "paper": lab.PartPreset(fewer={"speed": 8}, speed_length=32_768, speed_keep=1024, speed_width=1024),
    },
)


@part.arm(
    "speed",
    needs=("extra:llm",),
    chunk=1,
    timed=(
        "prefill_seconds",
        "prefill_ratio",
        "over_cost_model",
        "first_token_ratio",
        "token_seconds",
        "token_ratio",
    ),
)
def speed(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """A small random model: seconds of the prefill and of a token, and peak memory, methods side by side."""
    p = params
    sizes = (p.speed_width, p.speed_length, p.speed_keep, p.speed_tokens, p.speed_rounds)
    report(record, [speed_rows(seed, *sizes, seeds.device) for seed in seeds])
