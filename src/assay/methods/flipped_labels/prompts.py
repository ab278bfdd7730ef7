"""Which demonstrations and queries a seed draws, whose labels are flipped, and what the prompt says.

Everything here comes from a seed and the data alone, never from a model: two models, and two shares of flipped labels,
are asked about the same draws, so that their differences are paired.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_TEXT, _LABEL = "{text}", "{label}"


@dataclass(frozen=True)
class Texts:
    """Texts and the position of each one's label among the sorted labels of the pool."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]

    def of(self, label: int) -> list[int]:
        return [at for at, each in enumerate(self.labels) if each == label]


@dataclass(frozen=True)
class Draw:
    """One seed's draw. ``queries`` are positions in the set of queries; for each query, or once for all of them, there
    are ``demonstrations``, positions in the pool, and the ``order`` in which those are flipped."""

    queries: tuple[int, ...]
    demonstrations: tuple[tuple[int, ...], ...]
    order: tuple[tuple[int, ...], ...]


def labelled_texts(data: Any, what: str) -> tuple[list[str], list[int]]:
    """Texts and integer labels of a pair, a mapping or data set with the columns text (or sentence) and label, or an
    object with ``texts`` and ``labels`` as ``assay.data.load_text`` gives."""
    columns = getattr(data, "column_names", None) or (list(data) if isinstance(data, Mapping) else None)
    if columns is not None:
        name = next((each for each in ("text", "sentence") if each in columns), None)
        if name is None or "label" not in columns:
            raise ValueError(f"{what} need the columns text (or sentence) and label, and have {', '.join(columns)}")
        texts, labels = data[name], data["label"]
    elif hasattr(data, "texts"):
        texts, labels = data.texts, data.labels
    else:
        try:
            texts, labels = data
        except (TypeError, ValueError):
            raise ValueError(f"{what} must be a pair of texts and labels, not {type(data).__name__}") from None
    texts, found = list(texts), np.asarray(labels)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the texts of {what} must be strings")
    if found.shape != (len(texts),) or (len(texts) and found.dtype.kind not in "iub"):
        raise ValueError(f"{what} need one integer label for each of {len(texts)} texts")
    return texts, [int(label) for label in found]


def template_parts(template: str) -> tuple[str, str, str, str]:
    """What stands before the text, between text and label without the blanks before the label, those blanks, and what
    stands behind the label."""
    if template.count(_TEXT) != 1 or template.count(_LABEL) != 1 or template.index(_TEXT) > template.index(_LABEL):
        raise ValueError(f"a template has {_TEXT} once and {_LABEL} once behind it, which {template!r} has not")
    before, rest = template.split(_TEXT)
    between, after = rest.split(_LABEL)
    kept = between.rstrip(" ")
    return before, kept, between[len(kept) :], after


def prompt(template: str, separator: str, shown: Sequence[tuple[str, str]], query: str) -> str:
    """Demonstrations (text, label) and the query up to where its label would begin."""
    before, between, blank, after = template_parts(template)
    lines = [f"{before}{text}{between}{blank}{label}{after}" for text, label in shown]
    return separator.join([*lines, f"{before}{query}{between}"])


def draw(
    seed: int, pool: Texts, asked: Texts, *, demonstrations: int, queries: int, balanced: bool, shared: bool
) -> Draw:
    """What ``seed`` draws. A query's own text is never among its demonstrations. With ``balanced`` every label has its
    share of the queries, of the demonstrations and of those that are flipped first."""
    classes = max(pool.labels) + 1
    at = _sample(random.Random(f"flipped-labels:queries:{seed}"), asked, queries, balanced, classes, "queries")
    sets, orders = [], []
    for number in range(1 if shared else len(at)):
        stream = random.Random(f"flipped-labels:demonstrations:{seed}:{number}")
        hidden = {asked.texts[i] for i in (at if shared else at[number : number + 1])}
        found = _sample(stream, pool, demonstrations, balanced, classes, "demonstrations", hidden)
        sets.append(tuple(found))
        orders.append(tuple(_flip_order(stream, [pool.labels[i] for i in found], balanced)))
    return Draw(tuple(at), tuple(sets), tuple(orders))


def mark(drawn: Draw, pool: Texts, asked: Texts) -> str:
    """A short mark of the texts of a draw and their order, to tell whether two models were asked the same."""
    parts = [*(asked.texts[i] for i in drawn.queries), *(pool.texts[i] for each in drawn.demonstrations for i in each)]
    flips = [str(i) for each in drawn.order for i in each]
    return hashlib.blake2b("\0".join(parts + flips).encode(), digest_size=8).hexdigest()


def shown_labels(labels: Sequence[int], order: Sequence[int], fraction: float, classes: int) -> list[int]:
    """The labels that demonstrations are shown with: the first round(fraction · n) of ``order`` have the next label in
    turn, which for two labels is the other one. What is flipped at a smaller share is flipped at a larger one too."""
    flipped = set(order[: int(fraction * len(labels) + 0.5)])
    return [(label + 1) % classes if at in flipped else label for at, label in enumerate(labels)]


def _sample(
    stream: random.Random,
    data: Texts,
    count: int,
    balanced: bool,
    classes: int,
    what: str,
    hidden: frozenset[str] | set[str] = frozenset(),
) -> list[int]:
    """``count`` different positions in random order, none with a text that is ``hidden``."""
    groups = [data.of(label) for label in range(classes)] if balanced else [list(range(len(data.texts)))]
    groups = [[at for at in group if data.texts[at] not in hidden] for group in groups]
    places = list(range(len(groups)))
    stream.shuffle(places)
    sizes = {place: count // len(groups) + (rank < count % len(groups)) for rank, place in enumerate(places)}
    for place, group in enumerate(groups):
        if len(group) < sizes[place]:
            whose = f" of label {place}" if balanced else ""
            raise ValueError(f"{sizes[place]} {what}{whose} are to be drawn, and there are only {len(group)} texts")
    found = [at for place, group in enumerate(groups) for at in stream.sample(group, sizes[place])]
    stream.shuffle(found)
    return found


def _flip_order(stream: random.Random, labels: Sequence[int], balanced: bool) -> list[int]:
    order = list(range(len(labels)))
    stream.shuffle(order)
    if not balanced:
        return order
    # In turns through the labels, so that every beginning of the order has as many of one as of another, but for one.
    names = sorted(set(labels))
    stream.shuffle(names)
    rank = {at: (sum(labels[i] == labels[at] for i in order[:place])) for place, at in enumerate(order)}
    return sorted(order, key=lambda at: (rank[at], names.index(labels[at])))
