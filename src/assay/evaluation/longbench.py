"""LongBench for people who have its data: reading its files, prompts, and its metrics.

The benchmark's files are JSON lines with ``input``, ``context``, ``answers`` and, for classification, ``all_classes``.
Nothing is downloaded. ``evaluate_longbench`` runs methods over them.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.evaluation.needles import rouge1

Metric = Callable[[str, str, Sequence[str]], float]


@dataclass(frozen=True)
class Item:
    """One question of a task: a long context, a short input, and every answer that counts as right."""

    task: str
    context: str
    input: str
    answers: tuple[str, ...]
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """How a task is asked (with ``{context}`` and ``{input}``), how its answers are scored, and how many tokens they
    may have. Tasks that show examples are continued, not chatted with, and their first line counts."""

    metric: str
    new_tokens: int
    prompt: str
    examples: bool = False


_ONE_TEXT = (
    "Here is a text, and then a question about it. Answer as briefly as you can, with words of the text where possible."
    "\n\n{context}\n\nQuestion: {input}\nAnswer:"
)
_SEVERAL = (
    "Answer the question behind these passages from what they say. Give the answer alone, without a sentence around it."
    "\n\n{context}\n\nQuestion: {input}\nAnswer:"
)
#: The fourteen English tasks, with prompts in our own words; see ``read_prompts`` for the benchmark's.
TASKS = {
    "narrativeqa": Task("f1", 128, _ONE_TEXT),
    "qasper": Task(
        "f1",
        128,
        'Here is a scientific article and a question about it. Answer as briefly as you can. Write "unanswerable" '
        'when the article does not say, and "yes" or "no" to a question that asks for that.'
        "\n\n{context}\n\nQuestion: {input}\nAnswer:",
    ),
    "multifieldqa_en": Task("f1", 64, _ONE_TEXT),
    "hotpotqa": Task("f1", 32, _SEVERAL),
    "2wikimqa": Task("f1", 32, _SEVERAL),
    "musique": Task("f1", 32, _SEVERAL),
    "gov_report": Task("rouge_l", 512, "Summarise this government report on one page.\n\n{context}\n\nSummary:"),
    "qmsum": Task(
        "rouge_l",
        512,
        "Here is the transcript of a meeting, and then a request. Answer it in one or more sentences."
        "\n\n{context}\n\nRequest: {input}\nAnswer:",
    ),
    "multi_news": Task("rouge_l", 512, "Summarise these news articles on one page.\n\n{context}\n\nSummary:"),
    "trec": Task("classification", 64, "Name the type of the last question.\n\n{context}\n{input}", True),
    "triviaqa": Task(
        "f1", 32, "Answer the last question from its passage, with the answer alone.\n\n{context}\n\n{input}", True
    ),
    "samsum": Task("rouge_l", 128, "Summarise the last dialogue in a few sentences.\n\n{context}\n\n{input}", True),
    "passage_count": Task(
        "count",
        32,
        "Some of these paragraphs may be the same. How many different ones are there? Answer with the number alone."
        "\n\n{context}\n\nNumber of different paragraphs:",
    ),
    "passage_retrieval_en": Task(
        "retrieval",
        32,
        'Here are numbered paragraphs, and then a summary of one of them. Answer with "Paragraph" and its number.'
        "\n\n{context}\n\nSummary: {input}\nAnswer:",
    ),
}
#: The file in which the benchmark keeps its prompts.
PROMPTS_FILE = "dataset2prompt.json"


def read_prompts(folder: str | Path) -> dict[str, str]:
    """The benchmark's own prompts, where its file lies beside the data; scores with ours are near, but not the same."""
    path = Path(folder) / PROMPTS_FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(task): str(prompt) for task, prompt in found.items()}
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a table of prompts: {error!r}") from None


def asked(item: Item, prompts: Mapping[str, str]) -> str:
    """An item as one text."""
    parts = {"{context}": item.context, "{input}": item.input}
    template = prompts.get(item.task, TASKS[item.task].prompt)
    # In one go: a context may hold the other mark.
    return re.sub(r"\{context\}|\{input\}", lambda mark: parts[mark[0]], template)


def cut_in_the_middle(tokenizer: Any, text: str, limit: int) -> str:
    """The benchmark's rule for texts of more than ``limit`` tokens: the first half of the limit and the last."""
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    if len(ids) <= limit:
        return text
    half = limit // 2
    ends = (tokenizer.decode(part, skip_special_tokens=True) for part in (ids[:half], ids[len(ids) - half :]))
    return "".join(ends)


def read_task(folder: str | Path, task: str) -> list[Item]:
    """The items of one task from ``<folder>/<task>.jsonl``."""
    if task not in TASKS:
        raise ValueError(f"the tasks of LongBench are {', '.join(TASKS)}, not {task!r}")
    path = Path(folder) / f"{task}.jsonl"
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    items = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            answers, classes = tuple(row["answers"]), tuple(row.get("all_classes") or ())
            items.append(Item(task, row["context"], row["input"], answers, classes))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}, is not an item of LongBench: {error!r}") from None
    return items


def score(item: Item, response: str) -> float:
    """The best score of a response over all right answers, between 0 and 1."""
    task = TASKS[item.task]
    said = response.lstrip("\n").split("\n")[0] if task.examples else response
    return max((_METRICS[task.metric](said, answer, item.classes) for answer in item.answers), default=0.0)


def normalize(text: str) -> str:
    """Lower case, without punctuation and articles, single blanks."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(response: str, answer: str, _: Sequence[str] = ()) -> float:
    """Word overlap of normalized texts."""
    given, wanted = normalize(response).split(), normalize(answer).split()
    common = sum((Counter(given) & Counter(wanted)).values())
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def rouge_l(response: str, answer: str, _: Sequence[str] = ()) -> float:
    """F-measure of the longest common subsequence of words, over the whole text. (The package that the benchmark calls
    takes it sentence by sentence, over words that differ: its values are near, but not the same.)"""
    given, wanted = response.lower().split(), answer.lower().split()
    row = [0] * (len(wanted) + 1)
    for word in given:
        before = 0
        for j, other in enumerate(wanted, 1):
            before, row[j] = row[j], before + 1 if word == other else max(row[j], row[j - 1])
    return 2 * row[-1] / (len(given) + len(wanted)) if row[-1] else 0.0


def classification(response: str, answer: str, classes: Sequence[str]) -> float:
    """One over the number of class names in the response, when the right one is among them. A name inside the right
    one does not count against it."""
    named = [name for name in classes if name in response]
    named = [name for name in named if not (name in answer and name != answer)]
    return 1 / len(named) if answer in named else 0.0


def count(response: str, answer: str, _: Sequence[str] = ()) -> float:
    """The share of the numbers in the response that are the right one."""
    numbers = re.findall(r"\d+", response)
    return sum(number == str(answer) for number in numbers) / len(numbers) if numbers else 0.0


def retrieval(response: str, answer: str, _: Sequence[str] = ()) -> float:
    """The share of the numbers in the response that are the right paragraph's."""
    wanted = re.findall(r"Paragraph (\d+)", answer)
    return count(response, wanted[0]) if wanted else 0.0


_METRICS: dict[str, Metric] = {
    "f1": f1,
    "rouge_l": rouge_l,
    "classification": classification,
    "count": count,
    "retrieval": retrieval,
    "rouge_1": lambda response, answer, _: rouge1(answer, response),
}
