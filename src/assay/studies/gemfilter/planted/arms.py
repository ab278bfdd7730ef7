"""Planted needles: a model whose weights are set by hand, on prompts of which every token's role is known."""

from __future__ import annotations

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import report
from ..params import DEPTHS
from .learners import chunked_rows, planted_rows
from .problem import TASKS, PlantedNeedle

#: How many places lie between the two facts of a hop: next to each other, or in different chunks.
APART = {"one-hop": None, "two-hop, side by side": 1, "two-hop, far apart": 32}


class Params(lab.Params):
    lengths: tuple[PositiveInt, ...] = Field((256, 1024), min_length=1, description="n of the planted needles; k = n/8")
    cut_lengths: tuple[PositiveInt, ...] = Field(
        (1024,), min_length=1, description="n of the planted needles that are read in chunks; k = n/8"
    )
    prompts: int = Field(4, ge=1, description="planted prompts per seed, length and depth")
    pairs: int = Field(4, ge=1, le=8, description="facts in a planted prompt, one of them asked for")

    @model_validator(mode="after")
    def _room_for_the_facts(self) -> Params:
        for task in TASKS:
            self.problem(task, min(self.lengths))  # refuses a length without room for the facts
        for task in APART:
            self.cut_problem(task, min(self.cut_lengths))
        return self

    def problem(self, task: str, length: int) -> PlantedNeedle:
        return PlantedNeedle(length, TASKS[task], pairs=self.pairs)

    def cut_problem(self, task: str, length: int) -> PlantedNeedle:
        """The same, with the two facts of a hop as far from each other as the task says."""
        return PlantedNeedle(length, TASKS[task.partition(",")[0]], pairs=self.pairs, apart=APART[task])


part = lab.Part(
    "planted",
    params=Params,
    presets={
        "smoke": lab.PartPreset(lengths=(256,), cut_lengths=(512,), prompts=1, pairs=2),
        "laptop": lab.PartPreset(prompts=2, fewer={"planted": 4, "planted-chunks": 8}),
        "paper": lab.PartPreset(
            lengths=(256, 1024, 4096),
            prompts=10,
            fewer={"planted": 20, "planted-chunks": 20},
            cut_lengths=(1024, 4096),
        ),
    },
)


@part.arm(
    "planted",
    over={"task": list(TASKS), "length": lambda p: p.lengths},
    uses=("prompts", "pairs"),
    needs=("extra:llm",),
)
def planted(params: Params, seeds: Seeds, record: lab.Recorder, *, task: str, length: int) -> None:
    """The hand-set model on planted needles: layers, rows, methods, selections."""
    problem = params.problem(task, length)
    report(record, [planted_rows(problem, seed, DEPTHS, params.prompts, seeds.device) for seed in seeds])


@part.arm(
    "planted-chunks",
    over={"task": list(APART), "length": lambda p: p.cut_lengths},
    uses=("prompts", "pairs"),
    needs=("extra:llm",),
)
def planted_chunks(params: Params, seeds: Seeds, record: lab.Recorder, *, task: str, length: int) -> None:
    """The hand-set model on planted needles, read whole and in chunks: what can be found, and what cannot."""
    problem = params.cut_problem(task, length)
    report(record, [chunked_rows(problem, seed, DEPTHS, params.prompts, seeds.device) for seed in seeds])
