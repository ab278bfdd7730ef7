"""One-step features with a convex head: a classifier and a regressor for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from assay._extras import extra

from .one_step_features import OneStepFeatures


class OneStepClassifier(OneStepFeatures):
    """One-step features and a softmax head on them; ``transform`` gives the features."""

    _estimator_type = "classifier"

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
        found: np.ndarray = self.classes_[self._scores(X).argmax(1).numpy()]
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy."""
        with extra("lab", "OneStepClassifier"):
            from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def _scores(self, X: Any) -> Tensor:
        inputs = self._inputs(X)
        return self.head_(self.layer_(inputs))


class OneStepRegressor(OneStepFeatures):
    """One-step features of what a linear model leaves over, with a ridge head; biases are redrawn after the step."""

    _estimator_type = "regressor"

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
        found = self.head_(self.layer_(inputs))
        return (found if self.linear_ is None else found + self.linear_(inputs)).squeeze(1).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²."""
        with extra("lab", "OneStepRegressor"):
            from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
