"""Parameters that several parts read: the features of the data, the network and its training, and their sizes."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from assay import lab

from .learners import Attention, Contrastive
from .problem import Mode, TokenPairs


def check_rising(**grids: Sequence[float]) -> None:
    """Refuse a grid whose values do not rise; it is named as its parameter is."""
    for name, values in grids.items():
        if list(values) != sorted(set(values)):
            raise ValueError(f"{name} must rise and name no value twice, not {values}")


def check_frequencies(frequencies: Sequence[float]) -> None:
    if max(frequencies) > 1 or min(frequencies) <= 0:
        raise ValueError("rare features have 0 < ε ≤ 1, the ε of frequent ones")


def check_biases_are_used(bias_on: int, **steps: int) -> None:
    """Refuse a training that ends before its biases are switched on; its steps are named as their parameter is."""
    for name, count in steps.items():
        if max(bias_on, 1) >= count:
            raise ValueError(f"biases switched on at step {bias_on} are never used in {name} = {count}")


def check_decay(rate: float, decay: float) -> None:
    if rate * decay >= 1:
        raise ValueError("rate × decay must stay below 1")


class Draws(lab.Params):
    """How well the checks of the mathematics are sampled."""

    samples: int = Field(50_000, ge=500, description="Monte-Carlo draws of the theory checks")


class Features(lab.Params):
    """Sparse-coding data: how many features there are, how frequent, and in which tokens they show."""

    majority: int = Field(5, ge=1, description="frequent features (ε = 1)")
    minority: int = Field(4, ge=1, description="rare features")
    tokens: int = Field(4, ge=1, description="tokens L per view")
    token_mode: Mode = Field("all", description="tokens that show an active feature")
    base_rate: float | None = Field(0.3, gt=0, le=1, description="probability p₀ of a feature (none: log log d/d)")

    def problem(self, dim: int) -> TokenPairs:
        return TokenPairs(self.majority, self.minority, dim, self.tokens, self.base_rate, self.token_mode)


class Network(Features):
    """An encoder of such data."""

    width: int = Field(24, ge=2, description="neurons m")


class Training(Network):
    """Gradient descent on InfoNCE, with biases from some step on."""

    score_scale: float = Field(1.0, gt=0, description="scale of softmax attention's scores")
    batch: int = Field(128, ge=2, description="pairs K per step, each the others' negatives")
    rate: float = Field(0.02, gt=0, description="learning rate η")
    temperature: float = Field(4.0, gt=0, description="temperature τ")
    decay: float = Field(1e-3, ge=0, description="weight decay λ")
    init: float = Field(0.01, gt=0, description="deviation σ₀ of the initial weights")
    bias_on: int = Field(100, ge=0, description="step at which biases are switched on")
    bias: float = Field(0.2, ge=0, description="their size as a share of ‖w‖ (the proofs' √(2 log d/d) is 0.7 here)")

    @model_validator(mode="after")
    def _decay_leaves_weights(self) -> Training:
        check_decay(self.rate, self.decay)
        return self

    def recipe(self, steps: int, attention: Attention, *, looks: Sequence[int] = ()) -> Contrastive:
        """The training with these parameters."""
        return Contrastive(
            steps=steps,
            batch=self.batch,
            rate=self.rate,
            temperature=self.temperature,
            bias_on=self.bias_on,
            bias=self.bias,
            attention=attention,
            score_scale=self.score_scale,
            looks=looks,
        )


class Sweep(Training):
    """The size of a training of which many are made."""

    dim: int = Field(100, ge=3, description="input dimension d₁ of the sweeps")
    attention: Attention = Field("uniform", description="attention of the sweeps")
    steps: int = Field(400, ge=10, description="steps of the sweeps")

    @model_validator(mode="after")
    def _sweep_goes_together(self) -> Sweep:
        self.problem(self.dim)
        check_biases_are_used(self.bias_on, steps=self.steps)
        return self

    def bytes_per_seed(self, cells: int) -> float:
        """What one seed touches in a step: views of both sides, attended, and the similarities."""
        tokens = self.tokens if self.attention == "softmax" else 1
        return 4.0 * cells * self.batch * (3 * tokens * self.dim + 2 * self.batch)


class Frequencies(Sweep):
    """Such trainings side by side, over the frequency of the rare features."""

    rare: tuple[float, ...] = Field((0.1, 0.3, 0.5, 0.75, 1.0), min_length=2, description="ε of Figures 2 and 3")

    @model_validator(mode="after")
    def _frequencies_go_together(self) -> Frequencies:
        check_rising(rare=self.rare)
        check_frequencies(self.rare)
        return self


class Dynamics(Training):
    """One training that is watched step by step."""

    dynamics_dim: int = Field(500, ge=3, description="input dimension of Figures 1 and 6")
    dynamics_steps: int = Field(500, ge=10, description="their steps")
    dynamics_rare: float = Field(0.3, gt=0, le=1, description="their ε of rare features")
    dynamics_noise: float = Field(0.45, ge=0, description="their NSR")

    @model_validator(mode="after")
    def _dynamics_go_together(self) -> Dynamics:
        self.problem(self.dynamics_dim)
        check_biases_are_used(self.bias_on, dynamics_steps=self.dynamics_steps)
        return self


FEATURES = tuple(Features.model_fields)
SWEEP = tuple(Sweep.model_fields)
