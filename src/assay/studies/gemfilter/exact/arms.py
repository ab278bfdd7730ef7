"""Small random models: what the method states about its own cost, counted, and what must be equal, compared."""

from __future__ import annotations

from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import report
from .learners import exact_rows


class Params(lab.Params):
    length: int = Field(256, ge=64, description="n of the exact statements on random models")
    keep: int = Field(48, ge=33, description="their budget k")
    new: int = Field(6, ge=2, description="tokens that they decode")

    @model_validator(mode="after")
    def _budget_below_length(self) -> Params:
        if self.keep >= self.length:
            raise ValueError(f"a budget of {self.keep} leaves nothing to filter in {self.length} tokens")
        return self


part = lab.Part(
    "exact",
    params=Params,
    presets={
        "smoke": lab.PartPreset(length=128, new=3),
        "laptop": lab.PartPreset(fewer={"exact": 4}),
        "paper": lab.PartPreset(fewer={"exact": 20}),
    },
)


@part.arm("exact", over={"layer": [2, 5]}, needs=("extra:llm",))
def exact(params: Params, seeds: Seeds, record: lab.Recorder, *, layer: int) -> None:
    """Small random models: operations, layers run, cache bytes, positions, index sets, and k ≥ n."""
    made = [exact_rows(seed, layer, params.length, params.keep, params.new, seeds.device) for seed in seeds]
    report(record, made)
