"""What the words of a claim fix: a run with other values does not judge it."""

from __future__ import annotations

from functools import partial
from typing import Any

_WORDS = {"terms": "k = {}", "modulus": "p = {}", "penalty": "λ = {}", "decay": "weight decay {}",
          "layers": "{}-layer transformers", "heads": "{} heads", "regulariser": "the regulariser {}"}  # fmt: skip


def about(setting: str, *, half: bool = False, **values: Any) -> dict[str, Any]:
    """The domain of a claim about one setting with these values of its parameters; ``half``: trained on half of the
    inputs."""
    when = {_WORDS[name].format(value): partial(_has, name, value) for name, value in values.items()}
    if half:
        when["half of the inputs"] = _on_half
    return {"setting": setting, "when": when}


def training_inputs(params: Any) -> int:
    """How many inputs a setting trains on."""
    size: int = params.modulus**params.terms
    return size if params.whole else params.train_count or size // 2


def _has(name: str, value: Any, params: Any) -> bool:
    return bool(getattr(params, name) == value)


def _on_half(params: Any) -> bool:
    return training_inputs(params) == params.modulus**params.terms // 2
