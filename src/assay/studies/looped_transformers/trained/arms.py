"""Does training find the construction? Adam on the step size and the weights; the source trains nothing."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.methods.looped_transformer import prompt_condition
from assay.training import Seeds

from ..params import Compared
from ..problem import LinearVectorGeneration
from .learners import Training, constructed, examples_gram
from .theory import best_cosine


class Params(Compared):
    train_loops: int = Field(4, ge=1, description="loops of the trained transformer")
    train_steps: int = Field(1500, ge=5, description="its Adam steps")
    train_batch: int = Field(128, ge=1, description="prompts per step")
    train_pool: int = Field(8192, ge=64, description="prompts to draw batches from")
    train_rate: float = Field(0.01, gt=0, description="its Adam rate")
    test_prompts: int = Field(2000, ge=50, description="fresh prompts on which trained transformers are compared")

    def training(self, free: str, start: str, loss: str) -> Training:
        sizes = self.train_loops, self.train_steps, self.train_batch, self.train_pool
        return Training(*sizes, self.train_rate, free=free, start=start, loss=loss)


part = lab.Part(
    "trained",
    params=Params,
    presets={
        "smoke": lab.PartPreset(train_steps=30, train_batch=32, train_pool=256, test_prompts=200, arms=("trained",)),
        "laptop": lab.PartPreset(fewer={"trained": 12}, arms=("trained",)),
        "paper": lab.PartPreset(
            train_steps=4000,
            train_batch=256,
            train_pool=20_000,
            test_prompts=5000,
            fewer={"trained": 12},
            arms=("trained",),
        ),
    },
)

TRAININGS = [
    {"free": "step", "start": "construction", "loss": "task"},
    {"free": "weights", "start": "construction", "loss": "task"},
    {"free": "weights", "start": "construction", "loss": "vector"},
    {"free": "weights", "start": "random", "loss": "task"},
    {"free": "weights", "start": "random", "loss": "vector"},
]


@part.arm("trained", over=TRAININGS, optional=True, tolerance=0.05)
def trained(params: Params, seeds: Seeds, record: lab.Recorder, *, free: str, start: str, loss: str) -> None:
    """Adam on the step size and the weights: is the construction found, or kept? (Not in the source.)"""
    n, dim, loops = params.compared_examples, params.dim, params.train_loops
    weights = params.training(free, start, loss).train(LinearVectorGeneration(n, dim), seeds)
    pairs = zip(weights.query_key, weights.value_output, strict=True)
    record(construction_cosine=[best_cosine(key, value) for key, value in pairs], learned_step=weights.step)
    for tested in (n // 2, n, 4 * n):
        prompts = LinearVectorGeneration(tested, dim).sample(seeds, "test", params.test_prompts)
        gram, largest = examples_gram(prompts), prompt_condition(prompts.inputs).largest / tested
        # 1/L of each prompt enters by dividing its examples' gram matrix: the construction then takes unit steps.
        told, given = gram / largest[..., None, None], constructed(seeds, dim, step=1.0)
        for tried in (loops, 2 * loops, 4 * loops):
            outputs = {"trained": weights.outputs(gram, tried), "construction": given.outputs(told, tried)}
            for who, output in outputs.items():
                task = (output * prompts.truth).sum(-1) - 1
                apart = prompts.parameter_error(output)
                record(
                    step=tried,
                    at={"tested": tested, "who": who},
                    task_rms=task.square().mean(1).sqrt(),
                    parameter_rms=apart.square().mean(1).sqrt(),
                )
