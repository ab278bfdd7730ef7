"""What several parts read: the dimension, the numbers of examples, and what a prompt asks for."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from assay import lab

from .problem import LinearVectorGeneration


class Dimension(lab.Params):
    dim: int = Field(4, ge=1, description="dimension d of the examples")


class Examples(Dimension):
    """Where the number of examples is varied."""

    examples: tuple[int, ...] = Field((16, 32, 64, 128), min_length=2, description="numbers n of examples in a prompt")


class Compared(Dimension):
    """Where it is not."""

    compared_examples: int = Field(32, ge=2, description="n of the step-size comparison and the controls")


class Alpha(Dimension):
    alpha: float = Field(1.0, description="the query's scalar α, not zero")

    @field_validator("alpha")
    @classmethod
    def _not_zero(cls, alpha: float) -> float:
        if alpha == 0:
            raise ValueError("α must not be 0, where the parameter cannot be read off the output")
        return alpha


class Prompts(Compared, Alpha):
    """Prompts of the one size on which constructions, steps and shortcuts are compared."""

    def problem(self, **changes: Any) -> LinearVectorGeneration:
        return LinearVectorGeneration(self.compared_examples, self.dim, self.alpha, **changes)


class Loops(Prompts):
    compared_loops: int = Field(12, ge=1, description="their T")
