"""What several parts read: the size of the linear tasks and their pretraining, and checks of grids."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from assay import lab

from .learners import LinearPretraining
from .problem import LinearTasks


def check_rising(**grids: Sequence[float]) -> None:
    """Refuse a grid whose values do not rise; it is named as its parameter is."""
    for name, values in grids.items():
        if list(values) != sorted(set(values)):
            raise ValueError(f"{name} must rise and name no value twice, not {tuple(values)}")


class Linear(lab.Params):
    shared: int = Field(2, ge=1, description="features s that all linear tasks share")
    relevant: int = Field(5, ge=2, description="features r of each linear task, shared ones among them")
    spurious: int = Field(4, ge=0, description="spurious coordinates of linear data")
    linear_steps: int = Field(1200, ge=10, description="steps of projected descent on a linear representation")
    linear_batch: int = Field(1000, ge=10, description="fresh pairs per step")

    @model_validator(mode="after")
    def _features_go_together(self) -> Linear:
        if self.shared >= self.relevant:
            raise ValueError("relevant must exceed shared, or tasks have no features of their own")
        return self

    def problem(self, tasks: int) -> LinearTasks:
        return LinearTasks(self.shared, self.relevant, tasks, self.spurious)

    def pretraining(self) -> LinearPretraining:
        return LinearPretraining(self.linear_steps, self.linear_batch)
