"""Answer one prompt with several methods, side by side: the answer, the tokens kept, times and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.evaluation.contract import Kept, Method
from assay.evaluation.needles import NeedlePrompt, rouge1
from assay.evaluation.profiling import Profile, run_profiled
from assay.networks.pretrained import Loaded


@dataclass(frozen=True)
class Answer:
    """What a method said, what it took, and what its first pass kept, if it has one."""

    text: str
    profile: Profile
    selection: Kept | None = None


def chat_ids(loaded: Loaded, text: str, question: str, *, chat: bool = True) -> tuple[list[int], bool]:
    """Token ids of a text with a question behind it, in the chat template where there is one; and whether there was."""
    content = f"{text.rstrip()}\n\nQuestion: {question}" if question else text
    tokenizer = loaded.tokenizer
    if chat and getattr(tokenizer, "chat_template", None):
        turns = [{"role": "user", "content": content}]
        rendered = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return list(tokenizer(rendered, add_special_tokens=False, verbose=False)["input_ids"]), True
    ending = f"{content}\nAnswer:" if question else content
    return list(tokenizer(ending, verbose=False)["input_ids"]), False


def answer(loaded: Loaded, ids: Sequence[int], method: Method, new: int = 50) -> Answer:
    """One prompt, both passes measured apart."""
    made = run_profiled(loaded.model, [list(ids)], method, new)
    text = loaded.tokenizer.decode(made.sequences[0, len(ids) :], skip_special_tokens=True).strip()
    return Answer(text, made.profile, made.selection)


def needle_table(
    loaded: Loaded, prompts: Sequence[NeedlePrompt], methods: Mapping[str, Method], new: int = 24
) -> Iterator[dict[str, Any]]:
    """One row per prompt and method: was the needle's answer given?"""
    for prompt in prompts:
        for name, method in methods.items():
            made = answer(loaded, prompt.input_ids, method, new)
            yield {
                "method": name,
                "length": len(prompt.input_ids),
                "depth": prompt.depth,
                "right": prompt.right(made.text),
                "rouge1": rouge1(prompt.needle.sentence, made.text),
                "recall": made.selection.recall(prompt.needle_at) if made.selection else None,
                "answer": made.text,
            }
