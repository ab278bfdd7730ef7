"""One-step features as scikit-learn estimators: a transformer, and a classifier and a regressor with a convex head.

This module can be imported without scikit-learn; fitting needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from assay._extras import extra
from assay.probes.heads import LinearHead, Ridge, fit_head
from assay.training.seeds import stream

from ._checks import number, one_of
from ._sklearn import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, as_array
from .one_step import FirstStep, OneStepLayer, first_step

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SWITCHES = (0.35, 0.7, 1.4)
_WHAT = "OneStepFeatures"


@dataclass(frozen=True)
class _Problem:
    """Training data as the step and the head want them."""

    inputs: Tensor  # (n, dim) float64
    labels: Tensor  # (n,): class indices, or numbers
    classes: int  # 0 for numbers

    def part(self, rows: Tensor) -> _Problem:
        return _Problem(self.inputs[rows], self.labels[rows], self.classes)

    def targets(self) -> Tensor:
        """(n, outputs): what a least-squares head fits."""
        return one_hot(self.labels, self.classes).double() if self.classes else self.labels.unsqueeze(1)


class OneStepEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the transformer, the classifier and the regressor share: the step, its choices, and a head where one is
    wanted. ``loss`` says what y is, and ``biases="auto"`` keeps them for classes and redraws them for numbers."""

    _head_kind: Literal["none", "softmax", "ridge"] = "none"
    loss: str = "logistic"

    def __init__(
        self,
        width: int = 512,
        bias_scale: float = 1.0,
        *,
        biases: str = "auto",
        switch: float | str = "auto",
        penalty: float | str = "auto",
        held_out: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.bias_scale = bias_scale
        self.biases = biases
        self.switch = switch
        self.penalty = penalty
        self.held_out = held_out
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Choose switch and penalty on held-out data where they are to be chosen, then take the step on all of it."""
        problem = self._problem(X, y)
        seed = int(self._random_state().randint(2**31 - 1))
        parts = self._split(problem, seed)
        switch, penalty = self.switch, self.penalty
        self.validation_: list[dict[str, float]] = []
        if parts is not None and "auto" in (switch, penalty):
            switch, penalty = self._choose(*parts, seed)
        self.switch_ = 0.7 if isinstance(switch, str) else float(switch)
        self.penalty_ = 1e-2 if isinstance(penalty, str) else float(penalty)
        self.linear_ = self._linear(problem)
        generator = stream(seed, "network")
        self.layer_: OneStepLayer = self._layer(self._step(problem, self.linear_, generator), self.switch_, generator)
        if self._head_kind != "none":
            self.head_ = self._head(problem, self.layer_, self.linear_, self.penalty_)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features (n, width)."""
        return self.layer_(self._inputs(X)).numpy()

    @property
    def _n_features_out(self) -> int:
        return len(self.layer_.weights)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "layer_")

    def _problem(self, X: Any, y: Any) -> _Problem:
        with extra("lab", _WHAT):
            from sklearn.utils.multiclass import check_classification_targets
            from sklearn.utils.validation import validate_data

        one_of("loss", self.loss, ("logistic", "squared"))
        one_of("biases", self.biases, ("auto", "keep", "redraw"))
        number("held_out", self.held_out, above=0, below=1)
        for name, value in (("switch", self.switch), ("penalty", self.penalty)):
            if value != "auto":
                number(name, value, above=0)
        numbers = self.loss == "squared"
        X, y = validate_data(self, as_array(X), as_array(y), dtype=np.float64, ensure_min_samples=2, y_numeric=numbers)
        inputs = torch.from_numpy(np.array(X))
        if numbers:
            return _Problem(inputs, torch.from_numpy(np.array(y, dtype=np.float64)), 0)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least two classes, and there is 1 class")
        return _Problem(inputs, torch.from_numpy(index.reshape(-1)), len(self.classes_))

    def _inputs(self, X: Any) -> Tensor:
        with extra("lab", _WHAT):
            from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        return torch.from_numpy(np.array(validate_data(self, as_array(X), dtype=np.float64, reset=False)))

    def _random_state(self) -> Any:
        from sklearn.utils import check_random_state

        return check_random_state(self.random_state)

    def _split(self, problem: _Problem, seed: int) -> tuple[_Problem, _Problem] | None:
        """A training and a held-out part, or None where there is too little to hold anything out."""
        n = len(problem.inputs)
        held = round(self.held_out * n)
        if held < 2 or n - held < 8:
            return None
        order = torch.randperm(n, generator=stream(seed, "held out"))
        parts = problem.part(order[held:]), problem.part(order[:held])
        alike = parts[0].labels == parts[0].labels[0]
        return None if bool(alike.all()) else parts

    def _choose(self, seen: _Problem, unseen: _Problem, seed: int) -> tuple[float, float]:
        """Switch and penalty by the held-out loss. The step, too, sees the training part alone. The switch is chosen
        with least-squares heads, which cost one decomposition for all penalties."""
        switches = SWITCHES if isinstance(self.switch, str) else (float(self.switch),)
        penalties = PENALTIES if isinstance(self.penalty, str) else (float(self.penalty),)
        generator = stream(seed, "network")
        linear = self._linear(seen)
        step = self._step(seen, linear, generator)
        best, chosen, layers = float("inf"), (switches[0], penalties[0]), {}
        for switch in switches:
            layers[switch] = self._layer(step, switch, generator)
            ridge = Ridge(layers[switch](seen.inputs), _rest(seen, linear))
            for penalty in penalties:
                guessed = ridge.head(penalty).scores(layers[switch](unseen.inputs))
                loss = float(mse_loss(guessed, _rest(unseen, linear)))
                self.validation_.append({"switch": switch, "penalty": penalty, "squared_loss": loss})
                if loss < best:
                    best, chosen = loss, (switch, penalty)
        if self._head_kind != "softmax" or len(penalties) == 1:
            return chosen
        layer = layers[chosen[0]]
        losses: dict[float, float] = {}
        start: LinearHead | None = None
        for penalty in sorted(penalties, reverse=True):
            start = _softmax(layer(seen.inputs), seen, penalty, start)
            losses[penalty] = float(cross_entropy(start.scores(layer(unseen.inputs)), unseen.labels))
            self.validation_.append({"switch": chosen[0], "penalty": penalty, "logistic_loss": losses[penalty]})
        return chosen[0], min(losses, key=lambda penalty: losses[penalty])

    def _linear(self, problem: _Problem) -> LinearHead | None:
        """The linear part of numbers, which the step is not to spend its neurons on."""
        if problem.classes:
            return None
        ridge = Ridge(problem.inputs, problem.targets())
        return ridge.head(ridge.best(PENALTIES))

    def _step(self, problem: _Problem, linear: LinearHead | None, generator: torch.Generator) -> FirstStep:
        residuals = _rest(problem, linear)
        if problem.classes == 2:
            residuals = residuals[:, 1] - residuals[:, 0]
        elif problem.classes:
            residuals = residuals - 1 / problem.classes
        return first_step(problem.inputs, residuals, generator=generator, width=self.width, bias_scale=self.bias_scale)

    def _layer(self, step: FirstStep, switch: float, generator: torch.Generator) -> OneStepLayer:
        redrawn = self.biases == "redraw" or (self.biases == "auto" and self.loss == "squared")
        return step.layer(switch, redraw=generator if redrawn else None)

    def _head(self, problem: _Problem, layer: OneStepLayer, linear: LinearHead | None, penalty: float) -> LinearHead:
        features = layer(problem.inputs)
        if problem.classes:
            return _softmax(features, problem, penalty)
        return Ridge(features, _rest(problem, linear)).head(penalty)


class OneStepFeatures(OneStepEstimator):
    """Supervised features after one gradient step of a two-layer ReLU network: a scikit-learn transformer.

    ``width`` is the number of features, a multiple of four. The larger ``bias_scale``, the fewer inputs a neuron sees
    in the step. ``switch`` is where neurons switch after it (the median, in units of the inputs' spread along them),
    and ``penalty`` that of the head; both are chosen on held-out data when "auto". ``biases`` are kept or redrawn after
    the step; "auto" keeps them for classes. ``loss`` says what y is: classes ("logistic") or numbers ("squared"), whose
    linear part is taken off.
    """

    def __init__(
        self,
        width: int = 512,
        bias_scale: float = 1.0,
        loss: str = "logistic",
        *,
        biases: str = "auto",
        switch: float | str = "auto",
        penalty: float | str = "auto",
        held_out: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(width, bias_scale, biases=biases, switch=switch, penalty=penalty, held_out=held_out)
        self.random_state = random_state
        self.loss = loss


def _softmax(features: Tensor, problem: _Problem, penalty: float, start: LinearHead | None = None) -> LinearHead:
    """Cross-entropy with ``penalty``/2 · ‖weights‖². One scale for all features: one that is seldom active stays small,
    and the penalty holds it."""
    every = torch.arange(problem.classes)
    return fit_head(features, problem.labels, scaling="rescaled", penalty=penalty / 2, start=start, classes=every)


def _rest(problem: _Problem, linear: LinearHead | None) -> Tensor:
    """The targets without their linear part."""
    return problem.targets() if linear is None else problem.targets() - linear.scores(problem.inputs)
