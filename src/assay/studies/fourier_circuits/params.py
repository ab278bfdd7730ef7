"""What several parts read: the task, the training of networks, and the words by which a claim says what it is about."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import Field, model_validator

from assay import lab
from assay.methods.modular_margin import required_width

from .learners import Recipe
from .problem import ModularAddition

MOST_INPUTS = 2**24  # a split holds a permutation of all p^k inputs per seed
MOST_WEIGHTS = 2**24  # of one network
MOST_ACTIVATIONS = 2**26  # of a full batch


class Task(lab.Params):
    """Modular addition and the inputs on which it is learned."""

    learner: Literal["network", "transformer"] = Field("network", description="what a setting trains; not for --set")
    modulus: int = Field(23, ge=3, description="p, odd for networks; set it per setting, as k3.modulus=31")
    terms: int = Field(3, ge=2, description="k, the number of inputs; set it per setting, as k3.terms=4")
    train_count: int | None = Field(None, ge=2, description="training inputs (none: half of them)")
    whole: bool = Field(False, description="train on all p^k inputs, in full batches")
    steps: int = Field(2500, ge=10, description="updates; set them per setting, as k3.steps=500")
    batch: int = Field(512, ge=1, description="batch size where the data are split")

    @model_validator(mode="after")
    def _task_fits(self) -> Task:
        inputs = self.modulus**self.terms if self.terms <= 24 else MOST_INPUTS + 1
        if inputs > MOST_INPUTS:
            raise ValueError(f"{self.modulus}^{self.terms} inputs are more than the {MOST_INPUTS} that are kept here")
        if self.train_count is not None and self.train_count >= inputs:
            raise ValueError(
                f"{self.train_count} training inputs leave none of {self.modulus}^{self.terms} for testing"
            )
        return self

    @property
    def problem(self) -> ModularAddition:
        return ModularAddition(self.modulus, self.terms)

    @property
    def training_inputs(self) -> int:
        """How many inputs a setting trains on."""
        size = self.problem.size
        return size if self.whole else self.train_count or size // 2

    @property
    def sizes(self) -> str:
        return f"k = {self.terms}, p = {self.modulus}"

    def check_learner(self, learner: str) -> None:
        """Refuse a setting whose learner was changed to the other kind."""
        if self.learner != learner:
            raise lab.UserError(f"this arm trains a {learner}, so learner={self.learner} is not allowed")


class NetworkParams(Task):
    """How a one-hidden-layer network is trained, and how often it is looked at."""

    width: int | None = Field(None, ge=1, description="neurons m (none: 2^{2k−2}(p−1))")
    rate: float = Field(1e-2, gt=0, description="Adam's rate")
    penalty: float = Field(0.02, ge=0, description="λ; set it per setting, as k3.penalty=0.01")
    regulariser: Literal["norm", "sum", "decay"] = Field("norm", description="λ‖θ‖, λΣ‖θ_i‖^{k+1}, or weight decay")
    looks: int = Field(25, ge=1, description="times that a training network is looked at")
    points: int = Field(4096, ge=16, description="training inputs on which margins are followed")

    @model_validator(mode="after")
    def _network_fits(self) -> NetworkParams:
        if self.learner != "network":
            return self
        if self.modulus % 2 == 0:
            raise ValueError("p must be odd for networks, since at even p the frequency p/2 is its own conjugate")
        inputs, width = self.modulus**self.terms, self.neurons
        if (self.terms + 1) * self.modulus * width > MOST_WEIGHTS:
            raise ValueError(f"{width} neurons have more than {MOST_WEIGHTS} weights; give a smaller width")
        if self.whole and inputs * width > MOST_ACTIVATIONS:
            raise ValueError(f"{width} neurons on {inputs} inputs at once are more than {MOST_ACTIVATIONS} activations")
        return self

    @property
    def neurons(self) -> int:
        return self.width or required_width(self.modulus, self.terms)

    def network_recipe(self, penalty: float | None = None) -> Recipe:
        """The training, at the strength of the parameters or another."""
        return Recipe(
            self.steps,
            self.rate,
            self.penalty if penalty is None else penalty,
            self.regulariser,
            batch=None if self.whole else self.batch,
            every=max(1, self.steps // self.looks),
        )

    def network_bytes(self) -> float:
        """What one network touches in a step."""
        self.check_learner("network")
        batch = self.problem.size if self.whole else self.batch
        return 4.0 * self.neurons * (4 * batch + 4 * (self.terms + 1) * self.modulus)


_WORDS = {
    "terms": "k = {}",
    "modulus": "p = {}",
    "penalty": "λ = {}",
    "decay": "weight decay {}",
    "layers": "{}-layer transformers",
    "heads": "{} heads",
    "regulariser": "the regulariser {}",
    "whole": "training on all inputs",
}


def about(setting: str, *, half: bool = False, **values: Any) -> dict[str, Any]:
    """The domain of a claim about one setting with these values of its parameters; ``half``: trained on half of the
    inputs. A run with other values does not judge the claim."""
    when: dict[str, Callable[[Any], bool]] = {
        _WORDS[name].format(value): partial(_has, name, value) for name, value in values.items()
    }
    if half:
        when["half of the inputs"] = _on_half
    return {"setting": setting, "when": when}


def _has(name: str, value: Any, params: Task) -> bool:
    return bool(getattr(params, name) == value)


def _on_half(params: Task) -> bool:
    return params.training_inputs == params.problem.size // 2
