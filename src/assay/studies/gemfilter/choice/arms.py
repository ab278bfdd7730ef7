"""The choice of the real model's filter layer, on prompts that no evaluation uses."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import report
from ..params import RealModel
from .learners import choice_rows, loaded_model


class Params(RealModel):
    choice_prompts: int = Field(8, ge=4, description="tuning prompts per seed: half choose, half judge")


part = lab.Part(
    "choice",
    params=Params,
    presets={
        "smoke": lab.PartPreset(choice_prompts=4),
        "laptop": lab.PartPreset(arms=("choice",), fewer={"choice": 3}),
        "paper": lab.PartPreset(arms=("choice",), fewer={"choice": 8}, choice_prompts=16),
    },
)


@part.arm(
    "choice",
    uses=("model", "real_lengths", "choice_prompts"),
    optional=True,
    needs=Params.requirements,
    chunk=1,
    tolerance=1e-3,
)
def choice(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The filter layer and rule of the real model, chosen on tuning prompts and judged on others."""
    loaded = loaded_model(params.model, seeds.device)
    report(record, [choice_rows(loaded, seed, params.real_lengths[0], params.choice_prompts) for seed in seeds])
