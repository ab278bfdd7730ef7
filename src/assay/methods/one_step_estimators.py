"""One-step features with a convex head: a classifier and a regressor for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ._sklearn import ClassifierMixin, RegressorMixin
from .one_step_features import OneStepFeatures


class OneStepClassifier(ClassifierMixin, OneStepFeatures):  # type: ignore[misc]
    """One-step features and a softmax head on them; ``transform`` gives the features."""

    _head_kind = "softmax"

    def __init__(
        self,
        width: int = 512,
        bias_scale: float = 1.0,
        *,
        biases: str = "keep",
        switch: float | str = "auto",
        penalty: float | str = "auto",
        held_out: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            width,
            bias_scale,
            biases=biases,
            switch=switch,
            penalty=penalty,
            held_out=held_out,
            random_state=random_state,
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds: (n,) for two classes, scores (n, classes) for more."""
        scores = self._scores(X)
        return (scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores).numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, classes), in the order of ``classes_``."""
        return self._scores(X).softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of every sample."""
        best = self._scores(X).argmax(1).numpy()
        found: np.ndarray = self.classes_[best]
        return found

    def _scores(self, X: Any) -> Tensor:
        inputs = self._inputs(X)
        return self.head_.scores(self.layer_(inputs))


class OneStepRegressor(RegressorMixin, OneStepFeatures):  # type: ignore[misc]
    """One-step features of what a linear model leaves over, with a ridge head; biases are redrawn after the step."""

    _head_kind = "ridge"

    def __init__(
        self,
        width: int = 512,
        bias_scale: float = 1.0,
        *,
        biases: str = "redraw",
        switch: float | str = "auto",
        penalty: float | str = "auto",
        held_out: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            width,
            bias_scale,
            "squared",
            biases=biases,
            switch=switch,
            penalty=penalty,
            held_out=held_out,
            random_state=random_state,
        )

    def predict(self, X: Any) -> np.ndarray:
        """(n,)."""
        inputs = self._inputs(X)
        found = self.head_.scores(self.layer_(inputs))
        return (found if self.linear_ is None else found + self.linear_.scores(inputs)).squeeze(1).numpy()
