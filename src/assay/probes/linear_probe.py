"""The linear head of the probes as an estimator for scikit-learn: pipelines, searches and cross-validation take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay._extras import extra
from assay.methods._sklearn import BaseEstimator, ClassifierMixin, as_array

from .heads import LinearHead, fit_head


class LinearProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier by ``fit_head``: convex, by L-BFGS, without a seed. The module can be imported without scikit-learn;
    fitting needs it."""

    def __init__(
        self, scaling: str = "standardized", loss: str = "logistic", *, penalty: float = 1e-4, steps: int = 300
    ) -> None:
        self.scaling = scaling
        self.loss = loss
        self.penalty = penalty
        self.steps = steps

    def fit(self, X: Any, y: Any) -> LinearProbe:
        """Fit the head to features (n, dim) and class labels of any kind."""
        with extra("lab", "LinearProbe"):
            from sklearn.utils.multiclass import check_classification_targets
            from sklearn.utils.validation import validate_data

        X, y = validate_data(self, as_array(X), as_array(y), dtype=np.float64)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("LinearProbe needs samples of at least two classes, and there is 1 class")
        self.head_: LinearHead = fit_head(
            X, places, scaling=self.scaling, loss=self.loss, penalty=self.penalty, steps=self.steps
        )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes, (n, classes) for more."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, classes) of the logistic head."""
        scores = self._scores(X)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        found: np.ndarray = shares / shares.sum(1, keepdims=True)
        return found

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of every sample."""
        found: np.ndarray = self.classes_[self._scores(X).argmax(1)]
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "head_")

    def _scores(self, X: Any) -> np.ndarray:
        import torch
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        given = np.array(validate_data(self, as_array(X), dtype=np.float64, reset=False))
        return self.head_.scores(torch.from_numpy(given)).numpy()
