"""Similarity of linear encoders of different mixtures on the target's data, against the formula."""

from __future__ import annotations

import torch
from pydantic import Field

from assay import lab
from assay.probes import linear_cka
from assay.training import Seeds

from ..params import Linear
from ..problem import LinearTasks
from ..theory import canonical, foreign_cka, mixture_cka

LARGEST = 4  # tasks of the largest mixture


class Params(Linear):
    cka_samples: int = Field(4000, ge=50, description="target inputs on which encoders are compared")


part = lab.Part("similarity", params=Params, presets={"smoke": lab.PartPreset(cka_samples=1000)})


def encoder_of(problem: LinearTasks, *tasks: int) -> torch.Tensor:
    """The encoder of an even mixture of these tasks, in coordinates of z (k, d)."""
    weights = [1 / len(tasks) if t in tasks else 0.0 for t in range(problem.tasks)]
    return canonical(problem, (1.0, *weights))


@part.arm("linear-cka", uses=("shared", "relevant", "spurious", "cka_samples"), dtype="float64", tolerance=1e-6)
def linear(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """CKA of encoders of growing mixtures, and of single other tasks, on data of task 0."""
    problem = params.problem(LARGEST)
    basis = problem.basis(seeds)
    inputs = problem.pairs(seeds, "target inputs", params.cka_samples, task=0)[0] @ basis.mT
    s, r = problem.shared, problem.relevant

    def features(*tasks: int) -> torch.Tensor:
        """Of the encoder of these tasks, turned by a rotation of its own: an optimum is one up to an orthonormal Q."""
        turn = torch.linalg.qr(seeds.normal(f"rotation of {tasks}", problem.features, problem.features))[0]
        found: torch.Tensor = inputs @ basis @ encoder_of(problem, *tasks).to(inputs).T @ turn
        return found

    def note(row: str, column: str, first: torch.Tensor, second: torch.Tensor, predicted: float) -> None:
        pairs = zip(first, second, strict=True)
        record(at={"row": row, "column": column}, cka=[linear_cka(x, y) for x, y in pairs], predicted=predicted)

    grown = [features(*range(count)) for count in range(1, LARGEST + 1)]
    for i, first in enumerate(grown, 1):
        for j, second in enumerate(grown, 1):
            note(f"{i} tasks", f"{j} tasks", first, second, mixture_cka(s, r, i, j))
    alone = [features(t) for t in range(3)]
    note("target", "another task", alone[0], alone[1], foreign_cka(s, r))
    note("another task", "a third task", alone[1], alone[2], 1.0)
    pairs = list(zip(grown[0][:, :300], grown[-1][:, :300], strict=True))
    differences = [linear_cka(x, y, form="features") - linear_cka(x, y, form="gram") for x, y in pairs]
    record(form_difference=[abs(difference) for difference in differences])
