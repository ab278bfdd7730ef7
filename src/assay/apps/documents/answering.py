"""An answer from the passages that were found, word by word, and everything that a person wants to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay._extras import extra
from assay.apps.documents.library import Library
from assay.apps.documents.passages import Passage, cited
from assay.networks.pretrained import Loaded

_ASKED = "Using the text above, explain in one or two sentences:"
# Small models say everything twice without it.
_REPETITION = 1.1


@dataclass(frozen=True)
class Answered:
    """A question, its answer, the passages it was given, and what it took."""

    question: str
    answer: str
    passages: list[Passage]
    library: Library
    facts: dict[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """A row per passage, the best first: file, first and last line or page, score and text."""
        made = []
        for one in self.passages:
            text = self.library.documents[one.document].text
            unit = text.unit
            first, last = text.place(one.begin), text.place(max(one.begin, one.end - 1))
            words = text.text[one.begin : one.end]
            made.append(
                {"file": one.document, "unit": unit, "first": first, "last": last, "score": one.score} | {"text": words}
            )
        return made

    def to_dict(self) -> dict[str, Any]:
        return {"question": self.question, "answer": self.answer, **self.facts, "passages": self.rows()}


def prompt_text(question: str, chosen: Sequence[Passage], library: Library) -> str:
    """The passages file by file, in the order of their text, the best file last: nearest to the question, which stands
    behind them and is what small models look at first."""
    parts = []
    for name in reversed(dict.fromkeys(one.document for one in chosen)):
        text = library.documents[name].text
        inside = sorted((one for one in chosen if one.document == name), key=lambda one: one.begin)
        parts.append("\n…\n".join([f"From {name}:", *(text.text[one.begin : one.end] for one in inside)]))
    return "\n\n".join([*parts, f"{_ASKED} {question}"])


def answered(
    loaded: Loaded, question: str, chosen: Sequence[Passage], library: Library, *, new: int, tell: Callable[[str], None]
) -> str:
    """The model's answer, handed to ``tell`` as it comes."""
    content, tokenizer = prompt_text(question, chosen, library), loaded.tokenizer
    if getattr(tokenizer, "chat_template", None):
        turns = [{"role": "user", "content": content}]
        content = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    else:
        content += "\nAnswer:"
    given = tokenizer(content, add_special_tokens=False, return_tensors="pt", verbose=False).to(loaded.model.device)
    given.pop("token_type_ids", None)
    with torch.no_grad():
        made = loaded.model.generate(
            **given,
            max_new_tokens=new,
            do_sample=False,
            streamer=_streamer(tokenizer, tell),
            pad_token_id=_pad(tokenizer),
        )
    return str(tokenizer.decode(made[0, given["input_ids"].shape[1] :], skip_special_tokens=True)).strip()


def _pad(tokenizer: Any) -> Any:
    return tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id


def _streamer(tokenizer: Any, tell: Callable[[str], None]) -> Any:
    with extra("llm", "an answer"):
        from transformers import TextStreamer

    class Told(TextStreamer):  # type: ignore[misc]
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            tell(text)

    return Told(tokenizer, skip_prompt=True, skip_special_tokens=True)


def citation(one: Passage, library: Library) -> str:
    """``docs/x.md, lines 3–7``."""
    return f"{one.document}, {cited(one, library.documents[one.document].text)}"
