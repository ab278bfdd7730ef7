"""LongBench for people who have its data: reading its files, its prompts' parts, and its metrics.

The benchmark's files are JSON lines with ``input``, ``context``, ``answers`` and, for classification, ``all_classes``.
Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.methods.gemfilter.needles import rouge1

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
    """How a task's answers are scored, and how many tokens they may have."""

    metric: str
    new_tokens: int
    first_line: bool = False


#: The fourteen English tasks.
TASKS = {
    "narrativeqa": Task("f1", 128), "qasper": Task("f1", 128), "multifieldqa_en": Task("f1", 64),
    "hotpotqa": Task("f1", 32), "2wikimqa": Task("f1", 32), "musique": Task("f1", 32),
    "gov_report": Task("rouge_l", 512), "qmsum": Task("rouge_l", 512), "multi_news": Task("rouge_l", 512),
    "trec": Task("classification", 64, True), "triviaqa": Task("f1", 32, True), "samsum": Task("rouge_l", 128, True),
    "passage_count": Task("count", 32), "passage_retrieval_en": Task("retrieval", 32),
}  # fmt: skip


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
    said = response.lstrip("\n").split("\n")[0] if task.first_line else response
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
    """F-measure of the longest common subsequence of words."""
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
    "f1": f1, "rouge_l": rouge_l, "classification": classification, "count": count, "retrieval": retrieval,
    "rouge_1": lambda response, answer, _: rouge1(answer, response),
}  # fmt: skip
