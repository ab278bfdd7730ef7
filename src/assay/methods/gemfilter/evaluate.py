"""Answer one prompt with several methods, side by side: the answer, the tokens kept, times and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.methods.gemfilter.baselines import H2O, Compression, FullAttention, OneRun, SnapKV
from assay.methods.gemfilter.filter import GemFilter, Selection
from assay.methods.gemfilter.needles import NeedlePrompt, rouge1
from assay.methods.gemfilter.profiling import Profile, run_profiled
from assay.networks.pretrained import Loaded

BASELINES = ("full", "snapkv", "h2o", "one-run")


@dataclass(frozen=True)
class Answer:
    """What a method said, what it took, and what GemFilter kept."""

    text: str
    profile: Profile
    selection: Selection | None = None


def baseline(name: str, keep: int, chosen: GemFilter | None = None) -> Compression:
    """A baseline by name, with the filter's budget."""
    made: dict[str, Callable[[], Compression]] = {
        "full": FullAttention,
        "snapkv": lambda: SnapKV(keep, window=min(32, max(1, keep // 2))),
        "h2o": lambda: H2O(keep, window=min(32, max(1, keep // 2))),
    }
    if name == "one-run":
        if chosen is None:
            raise ValueError("one-run needs the filter that it is the one-run of")
        return OneRun(chosen)
    if name not in made:
        raise ValueError(f"the methods to compare with are {', '.join(BASELINES)}, not {name!r}")
    return made[name]()


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


def answer(loaded: Loaded, ids: Sequence[int], method: GemFilter | Compression, new: int = 50) -> Answer:
    """One prompt, both passes measured apart."""
    made = run_profiled(loaded.model, [list(ids)], method, new)
    text = loaded.tokenizer.decode(made.sequences[0, len(ids) :], skip_special_tokens=True).strip()
    return Answer(text, made.profile, made.selection)


def needle_table(
    loaded: Loaded, prompts: Sequence[NeedlePrompt], chosen: GemFilter, names: Sequence[str], new: int = 24
) -> Iterator[dict[str, Any]]:
    """One row per prompt and method: was the needle's answer given?"""
    for prompt in prompts:
        for name in names:
            method = chosen if name == "gemfilter" else baseline(name, chosen.keep, chosen)
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
