"""What a harness asks of a method, whatever the method is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class Method(Protocol):
    """Answers a prompt with a model: takes and returns what ``model.generate`` does."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def budget(self, length: int) -> int:
        """How many tokens of a prompt of ``length`` it answers from."""

    def generate(self, model: Any, inputs: Any = None, **options: Any) -> Any:
        """The prompt with the new tokens behind it."""


class Kept(Protocol):
    """The tokens of a prompt that a first pass kept."""

    def kept(self, row: int = 0) -> list[int]:
        """Their positions in one prompt, in rising order."""

    def recall(self, wanted: list[int], row: int = 0) -> float:
        """The share of the wanted positions that were kept."""


@runtime_checkable
class TwoPass(Protocol):
    """A method that first selects tokens of the prompt and then answers from these, so that both can be measured."""

    def select(self, model: Any, inputs: Any = None, *, tokenizer: Any = None) -> Any:
        """The first pass, which returns a ``Kept``."""

    def answer(self, model: Any, selection: Any, input_ids: Any, **options: Any) -> Any:
        """The second pass, from what the first one returned."""
