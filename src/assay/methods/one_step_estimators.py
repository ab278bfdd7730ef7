"""One-step features with a convex head: a classifier and a regressor for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ._sklearn import ClassifierMixin, RegressorMixin
from .one_step_features import OneStepEstimator


class OneStepClassifier(ClassifierMixin, OneStepEstimator):  # type: ignore[misc]
    """One-step features and a softmax head on them; ``transform`` gives the features. The options are those of
    ``OneStepFeatures``."""

    _head_kind = "softmax"

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


class OneStepRegressor(RegressorMixin, OneStepEstimator):  # type: ignore[misc]
    """One-step features of what a linear model leaves over, with a ridge head; biases are redrawn after the step. The
    options are those of ``OneStepFeatures``."""

    _head_kind = "ridge"
    loss = "squared"

    def predict(self, X: Any) -> np.ndarray:
        """(n,)."""
        inputs = self._inputs(X)
        found = self.head_.scores(self.layer_(inputs))
        return (found if self.linear_ is None else found + self.linear_.scores(inputs)).squeeze(1).numpy()
