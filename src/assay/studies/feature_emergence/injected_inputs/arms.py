"""Injected inputs: are labels learned as fast when a share of the images is replaced by Gaussian inputs?"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..params import Students, check_distinct
from . import learners
from .problem import gaussian_inputs, labelled


class Params(Students):
    fractions: tuple[Annotated[float, Field(ge=0.005, le=0.995)], ...] = Field(
        (0.25, 0.5, 0.75), description="shares of injected inputs, in batches of 200"
    )

    @model_validator(mode="after")
    def _fractions_differ(self) -> Self:
        check_distinct(fractions=self.fractions)
        return self


part = lab.Part(
    "injected_inputs",
    params=Params,
    presets={
        "smoke": lab.PartPreset(fractions=(0.5,)),
        "laptop": lab.PartPreset(fewer={"injected-inputs": 4}),
    },
)


@part.arm(
    "injected-inputs",
    over={"width": [9, 50]},
    tolerance=0.05,
    needs=lambda params: (f"data:{params.images}",),
    working_set=lambda params: 2.0 * 2**20,
)
def injected_inputs(params: Params, seeds: Seeds, record: lab.Recorder, *, width: int) -> None:
    """Students of a labelling teacher on images of which a share is replaced by Gaussian inputs."""
    train, test = params.image_sets()
    data = labelled(train, test, seeds)
    training = learners.QuadraticTraining(params.student_steps, 200, params.student_rate)
    report = learners.injected_inputs(
        data,
        gaussian_inputs(data, seeds),
        seeds,
        classes=train.classes,
        student_width=width,
        fractions=params.fractions,
        teaching=training,
        studying=training,
        evaluate_every=max(1, params.student_steps // 25),
    )
    record(trials=len(test), teacher_accuracy=report.teacher_accuracy)
    for curve in report.curves:
        steps = curve.steps.tolist()
        at = {"fraction": curve.fraction}
        record.curve(steps, at={**at, "part": "original"}, trials=len(test), part_accuracy=curve.original)
        if curve.fraction:
            record.curve(steps, at={**at, "part": "injected"}, trials=len(test), part_accuracy=curve.injected)
            record.curve(steps, at={**at, "part": "mixture"}, part_accuracy=curve.mixture)
