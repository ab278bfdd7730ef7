"""scikit-learn's base classes, or empty ones where it is absent: a module of estimators can be imported all the same,
and fitting says what it needs."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        RegressorMixin,
        TransformerMixin,
    )
except ModuleNotFoundError:

    def _empty(name: str) -> Any:
        return type(name, (), {})

    BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, ClassNamePrefixFeaturesOutMixin = map(
        _empty, ("BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin", "FeatureNames")
    )

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "RegressorMixin",
    "TransformerMixin",
]
