"""Answer one prompt with several methods, side by side: the answer, the tokens kept, times and memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.methods.gemfilter.baselines import H2O, Compression, FullAttention, OneRun, SnapKV
from assay.methods.gemfilter.filter import GemFilter, Selection
from assay.methods.gemfilter.models import Loaded
from assay.methods.gemfilter.needles import NeedlePrompt, rouge1
from assay.methods.gemfilter.prompts import prompt_of

BASELINES = ("full", "snapkv", "h2o", "one-run")


@dataclass(frozen=True)
class Answer:
    """What a method said, and what it took. Peak memory is the device's, or on the CPU the process's so far."""

    method: str
    text: str
    prompt_tokens: int
    kept_tokens: int
    first_pass: float
    second_pass: float
    peak_bytes: int
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


def answer_with_filter(loaded: Loaded, ids: Sequence[int], chosen: GemFilter, new: int = 50) -> Answer:
    """Both passes of GemFilter, timed apart."""
    device = next(loaded.model.parameters()).device
    inputs = torch.tensor([list(ids)], device=device)
    _reset(device)
    started = time.perf_counter()
    selection = chosen.select(loaded.model, inputs, tokenizer=loaded.tokenizer)
    _wait(device)
    middle = time.perf_counter()
    made = chosen.answer(loaded.model, selection, prompt_of(loaded.model, inputs), max_new_tokens=new, do_sample=False)
    _wait(device)
    text = loaded.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True).strip()
    kept = len(selection.kept())
    times = middle - started, time.perf_counter() - middle
    return Answer("gemfilter", text, len(ids), kept, *times, _peak(device), selection)


def answer_with_baseline(loaded: Loaded, ids: Sequence[int], method: Compression, new: int = 50) -> Answer:
    """A baseline's prefill, which is that of one token, and the rest of its decoding."""
    device = next(loaded.model.parameters()).device
    inputs = torch.tensor([list(ids)], device=device)
    first_token: list[float] = []

    class Clock:
        """Handed to generate as a streamer: it hears of the prompt at once, and of each token when it is there."""

        def put(self, _: Any) -> None:
            _wait(device)
            first_token.append(time.perf_counter())

        def end(self) -> None:
            return

    _reset(device)
    started = time.perf_counter()
    made = method.generate(loaded.model, inputs, max_new_tokens=new, do_sample=False, streamer=Clock())
    _wait(device)
    ended = time.perf_counter()
    prefilled = first_token[1] if len(first_token) > 1 else ended
    text = loaded.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True).strip()
    kept = min(getattr(method, "keep", len(ids)), len(ids))
    if isinstance(method, OneRun):
        kept = min(method.filter.keep, len(ids))
    return Answer(method.name, text, len(ids), kept, prefilled - started, ended - prefilled, _peak(device))


def needle_table(
    loaded: Loaded, prompts: Sequence[NeedlePrompt], chosen: GemFilter, names: Sequence[str], new: int = 24
) -> Iterator[dict[str, Any]]:
    """One row per prompt and method: was the needle's answer given?"""
    for prompt in prompts:
        for name in names:
            if name == "gemfilter":
                made = answer_with_filter(loaded, prompt.input_ids, chosen, new)
            else:
                method = baseline(name, chosen.keep, chosen)
                made = answer_with_baseline(loaded, prompt.input_ids, method, new)
            yield {
                "method": name,
                "length": len(prompt.input_ids),
                "depth": prompt.depth,
                "right": prompt.right(made.text),
                "rouge1": rouge1(prompt.needle.sentence, made.text),
                "recall": made.selection.recall(prompt.needle_at) if made.selection else None,
                "answer": made.text,
            }


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _reset(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
