"""scikit-learn's base classes, or empty ones where it is absent: a module of estimators can be imported all the same,
and fitting says what it needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

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


def as_array(values: Any) -> Any:
    """What scikit-learn checks: tensors as arrays, wherever they are and whether or not they train; the rest as is."""
    if not isinstance(values, Tensor):
        return values
    found = values.detach().cpu()
    return (found.float() if found.dtype == torch.bfloat16 else found).numpy()  # NumPy has no such type


__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "RegressorMixin",
    "TransformerMixin",
    "as_array",
]
