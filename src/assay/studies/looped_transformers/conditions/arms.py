"""Condition numbers: κ of Gaussian prompts, which alone decides how many loops are needed."""

from __future__ import annotations

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.methods.looped_transformer import prompt_condition
from assay.training import Seeds

from ..params import Examples
from ..problem import LinearVectorGeneration
from .theory import edge_condition


class Params(Examples):
    draws: int = Field(2000, ge=50, description="condition numbers drawn per seed")
    trials: int = Field(10, ge=2, description="trials whose mean condition number the source reports")
    ratio: int = Field(8, ge=2, description="n/d where the dimension is varied")
    dims: tuple[PositiveInt, ...] = Field((4, 16, 64), min_length=1, description="dimensions at that ratio")

    @model_validator(mode="after")
    def _enough_draws(self) -> Params:
        if self.trials > self.draws:
            raise ValueError(f"{self.draws} draws make no mean over {self.trials} trials")
        return self


part = lab.Part("conditions", params=Params, presets={"smoke": lab.PartPreset(draws=400)})


@part.arm(
    "condition-numbers",
    over={"examples": lambda p: p.examples},
    uses=("dim", "draws"),
    dtype="float64",
    tolerance=1e-9,
    working_set=lambda p: 2.0**22,
)
def condition_numbers(params: Params, seeds: Seeds, record: lab.Recorder, *, examples: int) -> None:
    """κ of Gaussian prompts, many draws."""
    problem = LinearVectorGeneration(examples, params.dim)
    found = prompt_condition(problem.draw_inputs(seeds, f"conditions {examples}", params.draws)).condition
    record(mean_condition=found.mean(1))
    record.array("conditions", found)


@part.arm(
    "dimensions",
    over={"width": lambda p: p.dims},
    uses=("ratio", "draws"),
    dtype="float64",
    tolerance=1e-9,
    working_set=lambda p: 2.0**22,
)
def dimensions(params: Params, seeds: Seeds, record: lab.Recorder, *, width: int) -> None:
    """κ at a fixed number of examples per dimension, in growing dimensions."""
    problem = LinearVectorGeneration(params.ratio * width, width)
    draws = max(10, params.draws * 4 // width**2)
    found = prompt_condition(problem.draw_inputs(seeds, f"dimensions {width}", draws)).condition
    record(mean_condition=found.mean(1), edge=edge_condition(params.ratio * width, width))
