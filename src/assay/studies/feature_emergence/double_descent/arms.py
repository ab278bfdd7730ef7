"""Double descent: where is the first minimum of test loss over width, on images and on inputs that teachers label?"""

from __future__ import annotations

from typing import Self

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..injected_inputs.learners import QuadraticTraining
from ..injected_inputs.problem import labelled
from ..params import Students, check_distinct
from . import learners


class Params(Students):
    descent_widths: tuple[PositiveInt, ...] = Field(
        (2, 3, 5, 7, 9, 13, 20, 30, 50, 100, 200, 500), description="FC(m) sizes"
    )
    descent_teachers: tuple[PositiveInt, ...] = Field(
        (9, 50, 500), description="sizes of the teachers on Gaussian inputs"
    )

    @model_validator(mode="after")
    def _sizes_differ(self) -> Self:
        check_distinct(descent_widths=self.descent_widths, descent_teachers=self.descent_teachers)
        return self


part = lab.Part(
    "double_descent",
    params=Params,
    presets={
        "smoke": lab.PartPreset(descent_widths=(2, 5, 9), descent_teachers=(9,)),
        "laptop": lab.PartPreset(
            descent_widths=(1, 2, 3, 4, 6, 9, 13, 20, 30, 50), descent_teachers=(9, 50), fewer={"double-descent": 3}
        ),
        "paper": lab.PartPreset(arms=("double-descent",)),
    },
)


@part.arm(
    "double-descent",
    optional=True,
    tolerance=0.05,
    needs=lambda params: (f"data:{params.images}",),
    working_set=lambda params: 2.0 * 2**20,
)
def double_descent(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Test loss over width, of networks on images and on Gaussian inputs labelled by teachers of several sizes."""
    train, test = params.image_sets()
    training = QuadraticTraining(params.student_steps, 200, params.student_rate)
    points = learners.double_descent(
        labelled(train, test, seeds),
        seeds,
        widths=params.descent_widths,
        teachers=params.descent_teachers,
        classes=train.classes,
        training=training,
        teaching=training,
    )
    for point in points:
        labels = "images" if point.teacher is None else f"FC({point.teacher})"
        at: dict[str, str | int] = {"labelled_by": labels, "width": point.width}
        record(at=at, test_loss=point.test_loss)
        record(at=at, trials=len(test), width_accuracy=point.test_accuracy)
