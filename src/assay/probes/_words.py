"""Labels that are words, as scikit-learn takes them: each class by its place among all of them in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.methods._data import LABELS


def coded(train: Any, test: Any) -> tuple[Any, Any]:
    """Both sets with numbers in place of labels that are words; sets with numbers as they are. Labels are looked for
    in a pair (inputs, labels) and in a mapping."""
    found = [_words(each) for each in (train, test)]
    first, second = found
    if first is None and second is None:
        return train, test
    if first is None or second is None:
        raise ValueError("the labels of train and of test must both be words, or both be numbers")
    _, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    return _with(train, places[: len(first)]), _with(test, places[len(first) :])


def _words(data: Any) -> np.ndarray | None:
    labels = _labels(data)
    if not isinstance(labels, (list, tuple, np.ndarray)) and not hasattr(labels, "to_numpy"):
        return None
    found = np.asarray(labels)
    words = found.dtype.kind in "US" or (found.dtype.kind == "O" and all(isinstance(each, str) for each in found.flat))
    return found.astype(str) if words and found.ndim == 1 and len(found) else None


def _labels(data: Any) -> Any:
    if isinstance(data, Mapping):
        return next((data[name] for name in LABELS if name in data), None)
    pair = isinstance(data, (tuple, list)) and len(data) == 2 and not isinstance(data[0], (tuple, list))
    return data[1] if pair else None


def _with(data: Any, labels: np.ndarray) -> Any:
    if isinstance(data, Mapping):
        return {name: labels if name in LABELS else value for name, value in data.items()}
    return data[0], labels
