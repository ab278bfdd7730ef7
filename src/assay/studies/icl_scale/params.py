"""What several parts read: the spectrum of the regression tokens and its pretraining, and the size of the parity."""

from __future__ import annotations

from pydantic import Field, model_validator

from assay import lab

from .learners import Pretraining
from .problem import InContextRegression, geometric


class Regression(lab.Params):
    dim: int = Field(6, ge=2, description="dimension d of the regression tokens")
    largest: float = Field(1.8, gt=0, description="largest eigenvalue of the tokens' covariance")
    smallest: float = Field(0.36, gt=0, description="smallest eigenvalue; those between are in geometric progression")
    examples: int = Field(20, ge=1, description="examples N in a pretraining prompt")
    steps: int = Field(5000, ge=1, description="Adam steps on sampled prompts")
    batch: int = Field(256, ge=1, description="fresh prompts per step")
    rate: float = Field(0.01, gt=0, description="Adam's first rate, which falls linearly to a thousandth of it")

    @model_validator(mode="after")
    def _descending(self) -> Regression:
        if self.smallest >= self.largest:
            raise ValueError("the smallest eigenvalue must lie below the largest, or no direction is more important")
        return self

    @property
    def eigenvalues(self) -> tuple[float, ...]:
        return geometric(self.dim, self.largest, self.smallest)

    @property
    def ranks(self) -> range:
        return range(1, self.dim + 1)

    def problem(self) -> InContextRegression:
        return InContextRegression(self.eigenvalues)

    def pretraining(self) -> Pretraining:
        return Pretraining(self.examples, self.steps, self.batch, self.rate, self.rate / 1000)


class Parity(lab.Params):
    gamma: float = Field(0.2, gt=0, lt=0.25, description="bias γ of a task's pair: (1, 1) has probability 1/4 + γ")
