"""The linear contrast: earlier theory's centroid model on the same data, with and without a split."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS
from ..params import PROBLEM, TEST, Planted
from .learners import centroid, mean_squared_error


class Params(Planted):
    ridge: float = Field(1.0, gt=0, description="λ of the linear contrast")


part = lab.Part("linear", params=Params)


@part.arm(
    "linear",
    uses=(*PROBLEM, *TEST, "tasks", "noise_energy", "ridge"),
    working_set=lambda p: 2.0**21,
    dtype="float64",
    tolerance=1e-7,
)
def linear(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Ridge regression inside and least squares outside on the same data: the earlier theory's contrast."""
    problem = params.problem()
    tasks = problem.sample(seeds)
    unseen = problem.sample_unseen(seeds, params.unseen_tasks, problem.support + params.unseen_samples)
    for split in (*SPLITS, "support only"):
        record(at={"split": split}, linear_error=mean_squared_error(centroid(tasks, split, params.ridge), unseen))
