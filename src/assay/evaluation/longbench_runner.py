"""Methods over LongBench's files: same prompts, same truncation and same budget for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay.evaluation.answering import chat_ids
from assay.evaluation.contract import Method
from assay.evaluation.longbench import TASKS, Item, asked, cut_in_the_middle, read_prompts, read_task, score
from assay.networks.pretrained import Loaded, context_length

# Room for a chat template around a prompt that was cut to the model's context.
_TEMPLATE = 128


@dataclass(frozen=True)
class TaskScore:
    """A method's mean score on a task, between 0 and 100, with what it was asked: how many items, how many of them were
    cut, whose prompts, and whether the chat template was on."""

    task: str
    method: str
    score: float
    items: int
    cut: int
    max_length: int
    benchmark_prompts: bool
    chat: bool


def evaluate_longbench(
    model: Any,
    tokenizer: Any,
    folder: str | Path,
    tasks: Sequence[str] | None = None,
    methods: Mapping[str, Method] | None = None,
    *,
    max_length: int | None = None,
    limit: int | None = None,
    chat: bool = True,
    progress: Callable[[str], None] | None = None,
) -> list[TaskScore]:
    """A score for every task and method over ``<folder>/<task>.jsonl``, the tasks that are there unless named.

    Prompts of more than ``max_length`` tokens (the model's context, less the answer) are cut in the middle, the same
    for every method: the source cut H2O's shorter. ``limit`` takes the first items only. ``chat`` wraps all tasks but
    those with examples. The benchmark's own prompts are used where ``dataset2prompt.json`` lies in the folder.
    """
    if not methods:
        raise ValueError("name at least one method, as in methods={'gemfilter': GemFilter(layer=13)}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    tasks = [name for name in TASKS if (Path(folder) / f"{name}.jsonl").is_file()] if tasks is None else list(tasks)
    if not tasks:
        raise ValueError(f"{folder} holds none of LongBench's files, such as {next(iter(TASKS))}.jsonl")
    data = {task: read_task(folder, task)[:limit] for task in tasks}
    prompts, loaded = read_prompts(folder), Loaded(model, tokenizer, "")
    found = []
    for task, items in data.items():
        if not items:
            raise ValueError(f"{folder} has no item of {task}")
        length = _room(model, task) if max_length is None else max_length
        if length < 2:
            raise ValueError(f"prompts of {length} tokens have nothing to cut from: give a larger max_length")
        templated = chat and not TASKS[task].examples and bool(getattr(tokenizer, "chat_template", None))
        texts = [asked(item, prompts) for item in items]
        short = [cut_in_the_middle(tokenizer, text, length) for text in texts]
        cut = sum(text != whole for text, whole in zip(short, texts, strict=True))
        asks = [chat_ids(loaded, text, "", chat=templated)[0] for text in short]
        for name, method in methods.items():
            scores = []
            for number, (item, ids) in enumerate(zip(items, asks, strict=True), 1):
                if progress is not None:
                    progress(f"{task}, {name}: item {number} of {len(items)}")
                scores.append(_scored(loaded, item, ids, method))
            mean = 100 * sum(scores) / len(scores)
            found.append(TaskScore(task, name, mean, len(items), cut, length, task in prompts, templated))
    return found


def averages(scores: Sequence[TaskScore]) -> dict[str, float]:
    """The mean over tasks, per method."""
    names = dict.fromkeys(row.method for row in scores)
    by_method = {name: [row.score for row in scores if row.method == name] for name in names}
    return {name: sum(values) / len(values) for name, values in by_method.items()}


def _room(model: Any, task: str) -> int:
    if not (context := context_length(model, 0)):
        raise ValueError("the model does not say how long its context is: give max_length")
    return context - TASKS[task].new_tokens - _TEMPLATE


def _scored(loaded: Loaded, item: Item, ids: list[int], method: Method) -> float:
    options: dict[str, Any] = {"max_new_tokens": TASKS[item.task].new_tokens, "do_sample": False}
    if getattr(method, "layer", None) == "auto":  # measured on prompts of this tokenizer
        options["tokenizer"] = loaded.tokenizer
    made = method.generate(loaded.model, torch.tensor([ids]), **options)
    return score(item, loaded.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True))
