"""Linear vector generation: examples (X, y = Xθ*) and a scalar α; wanted is a vector q with ⟨q, θ*⟩ = α.

The features are known: θ* itself, and the eigen-directions of XᵀX, each of which is learned at its own rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.methods.looped_transformer import make_prompt
from assay.training.seeds import Seeds

INPUTS = ("gaussian", "signs", "heavy-tailed", "sparse", "spectrum")
TRUTHS = ("uniform", "weakest")


@dataclass(frozen=True)
class Prompts:
    """Sampled prompts: inputs (seeds, ..., n, dim), targets (seeds, ..., n), truth (seeds, ..., dim)."""

    inputs: Tensor
    targets: Tensor
    truth: Tensor
    alpha: float

    @property
    def gram(self) -> Tensor:
        """XᵀX: (seeds, ..., dim, dim)."""
        return self.inputs.mT @ self.inputs

    def matrix(self, start: Tensor | None = None) -> Tensor:
        """[[X, y], [qᵀ, α]] (seeds, ..., n+1, dim+1), with q = −α·start."""
        return make_prompt(self.inputs, self.targets, self.alpha, start)

    def least_squares(self) -> Tensor:
        """The minimiser of ‖y − Xθ‖: (seeds, ..., dim); θ* where there is no noise."""
        # torch's own lstsq gives other last digits from call to call, with where its memory happens to lie.
        left, right = torch.linalg.qr(self.inputs)
        solution: Tensor = torch.linalg.solve_triangular(right, left.mT @ self.targets.unsqueeze(-1), upper=True)
        return solution.squeeze(-1)

    def parameter_error(self, estimate: Tensor) -> Tensor:
        """‖θ − θ*‖ of estimates (..., seeds, ..., dim), for unit θ* and descent from zero also the relative error."""
        error: Tensor = torch.linalg.vector_norm(estimate - self.truth, dim=-1)
        return error

    def task_error(self, output: Tensor) -> Tensor:
        """|⟨q, θ*⟩ − α| of outputs (..., seeds, ..., dim)."""
        return ((output * self.truth).sum(-1) - self.alpha).abs()


@dataclass(frozen=True)
class LinearVectorGeneration:
    """``inputs`` names the distribution of X: ``gaussian`` (the source's), ``signs`` (±1), ``heavy-tailed`` (Student
    with three degrees of freedom), ``sparse`` (three entries in four are zero) or ``spectrum`` (eigenvalues of XᵀX
    evenly spaced from 1 to ``condition``). ``truth`` is uniform on the sphere, or the ``weakest`` direction of each
    prompt. ``noise`` is the standard deviation of what is added to the targets.
    """

    examples: int
    dim: int
    alpha: float = 1.0
    inputs: str = "gaussian"
    condition: float = 100.0
    truth: str = "uniform"
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.dim < self.examples:
            raise ValueError(f"{self.examples} examples in {self.dim} dimensions: there must be 1 ≤ d < n")
        if self.alpha == 0:
            raise ValueError("α = 0 asks for nothing: every vector orthogonal to θ* answers it")
        if self.inputs not in INPUTS:
            raise ValueError(f"unknown inputs '{self.inputs}' (allowed: {', '.join(INPUTS)})")
        if self.truth not in TRUTHS:
            raise ValueError(f"unknown truth '{self.truth}' (allowed: {', '.join(TRUTHS)})")
        if self.condition < 1 or self.noise < 0:
            raise ValueError(f"condition {self.condition} must be at least 1 and noise {self.noise} at least 0")

    def sample(self, seeds: Seeds, name: str, *draws: int) -> Prompts:
        """Prompts from each seed's stream ``name``, ``draws`` of them per seed (one, without that axis, by default)."""
        # The number of examples is part of the stream's name: prompts of different length share no numbers.
        stream = f"{name}, {self.examples} examples"
        inputs = self.draw_inputs(seeds, stream, *draws)
        if self.truth == "weakest":
            truth = torch.linalg.eigh(inputs.mT @ inputs).eigenvectors[..., 0]
        else:
            truth = seeds.normal(f"{stream}, truth", *draws, self.dim, dtype=seeds.dtype)
            truth = truth / torch.linalg.vector_norm(truth, dim=-1, keepdim=True)
        targets = (inputs @ truth.unsqueeze(-1)).squeeze(-1)
        if self.noise:
            targets = targets + self.noise * seeds.normal(f"{stream}, noise", *draws, self.examples, dtype=seeds.dtype)
        return Prompts(inputs, targets, truth, self.alpha)

    def draw_inputs(self, seeds: Seeds, stream: str, *draws: int) -> Tensor:
        """X (seeds, ..., n, dim)."""
        shape = (*draws, self.examples, self.dim)
        # Drawn in full precision: products of single-precision numbers, and so the targets, would be exact in double.
        normal = seeds.normal(f"{stream}, inputs", *shape, dtype=seeds.dtype)
        if self.inputs == "signs":
            return torch.where(normal >= 0, 1.0, -1.0).to(normal)
        if self.inputs == "heavy-tailed":
            squares = seeds.normal(f"{stream}, tails", *shape, 3).square().mean(-1)
            return normal / squares.sqrt()
        if self.inputs == "sparse":
            return normal * (seeds.uniform(f"{stream}, support", *shape) < 0.25)
        if self.inputs == "spectrum":
            left = torch.linalg.qr(normal).Q
            right = torch.linalg.qr(seeds.normal(f"{stream}, directions", *draws, self.dim, self.dim)).Q
            values = torch.linspace(1, self.condition, self.dim, dtype=torch.float64).to(normal)
            drawn: Tensor = (left * values.sqrt()) @ right.mT
            return drawn
        return normal
