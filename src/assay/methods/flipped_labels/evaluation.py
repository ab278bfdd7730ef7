"""The test itself: demonstrations with a growing share of flipped labels, and queries whose labels stay true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn

from assay.methods import _progress
from assay.methods._checks import number, one_of, seed_list, whole
from assay.methods.flipped_labels.prompts import (
    Draw,
    Texts,
    draw,
    labelled_texts,
    mark,
    prompt,
    shown_labels,
    template_parts,
)
from assay.methods.flipped_labels.report import FlipReport
from assay.methods.flipped_labels.scoring import Several, label_scores
from assay.methods.flipped_labels.usual import USUAL


@dataclass(frozen=True)
class FlippedLabels:
    """A test of in-context learning: what do labels that contradict what a model knows do to its answers?

    ``labels`` are words, one for each label in ascending order: ``("negative", "positive")`` for 0 and 1. A prompt is
    ``demonstrations`` texts with labels and a query without one, in the ``template``. A share of the demonstrations,
    each of ``fractions`` in turn, has the next label in turn, with two labels the other one; the query's own label is
    never touched.

    Each of ``seeds`` draws ``queries`` and demonstrations. With ``shared`` the queries of a seed see the same
    demonstrations, which are read once; without, each sees its own, for many times the work. ``balanced`` gives every
    label its share of queries, demonstrations and flips. ``words`` (least, most) leaves out texts that are shorter or
    longer. The source has 16 demonstrations, 1,000 queries and 5 seeds.
    """

    labels: Sequence[str]
    template: str = "sentence: {text}\nThe answer is {label}."
    separator: str = "\n\n"
    demonstrations: int = 16
    fractions: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)
    seeds: int | Sequence[int] = 10
    queries: int = 100
    balanced: bool = True
    shared: bool = True
    words: tuple[int, int] | None = None
    several_tokens: Several = "refuse"
    batch: int = 16

    def __post_init__(self) -> None:
        if (
            isinstance(self.labels, str)
            or len(self.labels) < 2
            or not all(isinstance(w, str) and w for w in self.labels)
        ):
            raise ValueError(f"labels are two words or more, not {self.labels!r}")
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "seeds", seed_list(self.seeds))
        for fraction in self.fractions:
            number("a fraction", fraction, least=0, most=1)
        object.__setattr__(self, "fractions", tuple(sorted({float(each) for each in self.fractions})))
        if not self.fractions:
            raise ValueError("fractions must hold at least one share of flipped labels")
        if self.words is not None:
            least = whole("the least words of a text", self.words[0], 1)
            object.__setattr__(self, "words", (least, whole("the most words of a text", self.words[1], least)))
        template_parts(self.template)
        for name, least in (("demonstrations", 1), ("queries", 2), ("batch", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        one_of("several_tokens", self.several_tokens, get_args(Several))

    @classmethod
    def usual(cls, data: str, **changes: Any) -> FlippedLabels:
        """The test for a well-known set, ``sst2`` or ``ag_news``: its words, template and lengths."""
        one_of("data", data, USUAL)
        return cls(**{**vars(USUAL[data]), **changes})

    def flips(self) -> list[int]:
        """How many demonstrations are flipped at each of the fractions."""
        return [int(fraction * self.demonstrations + 0.5) for fraction in self.fractions]

    def run(
        self,
        model: nn.Module,
        tokenizer: Any,
        pool: Any,
        queries: Any = None,
        *,
        name: str = "",
        data: str = "",
        progress: bool | None = None,
    ) -> FlipReport:
        """Test a model. ``pool`` holds the texts for demonstrations, ``queries`` those that are asked about, by default
        the pool as well; a text is never a demonstration of itself. Both are pairs of texts and integer labels, data
        sets with such columns, or what ``assay.data.load_text`` gives. ``name`` and ``data`` go into the report."""
        shown, asked = self._data(pool, pool if queries is None else queries)
        draws = [self._draw(seed, shown, asked) for seed in self.seeds]  # type: ignore[union-attr]
        places = [(at, fraction) for at in range(len(draws)) for fraction in self.fractions]
        found = [
            self._scores(model, tokenizer, draws[at], shown, asked, fraction)
            for at, fraction in _progress.progress(places, "flipped labels", show=progress)
        ]
        size = (len(draws), len(self.fractions), self.queries, len(self.labels))
        truth = torch.tensor([[asked.labels[i] for i in each.queries] for each in draws])
        marks = tuple(mark(each, shown, asked) for each in draws)
        named = name or type(model).__name__
        return FlipReport(named, data, asdict(self), torch.stack(found).view(size), truth, marks)

    def prompts(self, pool: Any, queries: Any = None, *, seed: int = 0, fraction: float = 0.0) -> list[str]:
        """What a model is asked by one seed at one share of flipped labels, to look at: a prompt per query."""
        number("a fraction", fraction, least=0, most=1)
        shown, asked = self._data(pool, pool if queries is None else queries)
        return self._prompts(self._draw(whole("seed", seed, 0), shown, asked), shown, asked, fraction)

    def _scores(
        self, model: nn.Module, tokenizer: Any, drawn: Draw, pool: Texts, asked: Texts, fraction: float
    ) -> Tensor:
        """Log-probabilities of the labels for one draw: (queries, labels)."""
        blank = template_parts(self.template)[2]
        words = [f"{blank}{word}" for word in self.labels]
        prompts = self._prompts(drawn, pool, asked, fraction)
        options: dict[str, Any] = {"batch": self.batch, "several_tokens": self.several_tokens}
        return label_scores(model, tokenizer, prompts, words, **options)

    def _prompts(self, drawn: Draw, pool: Texts, asked: Texts, fraction: float) -> list[str]:
        made = []
        for place, query in enumerate(drawn.queries):
            at = 0 if self.shared else place
            texts, order = drawn.demonstrations[at], drawn.order[at]
            labels = shown_labels([pool.labels[i] for i in texts], order, fraction, len(self.labels))
            shown = [(pool.texts[i], self.labels[label]) for i, label in zip(texts, labels, strict=True)]
            made.append(prompt(self.template, self.separator, shown, asked.texts[query]))
        return made

    def _draw(self, seed: int, pool: Texts, asked: Texts) -> Draw:
        sizes = {"demonstrations": self.demonstrations, "queries": self.queries}
        return draw(seed, pool, asked, **sizes, balanced=self.balanced, shared=self.shared)

    def _data(self, pool: Any, queries: Any) -> tuple[Texts, Texts]:
        """Both sets, with labels counted from 0 and without texts of another length than is wanted."""
        given = {what: labelled_texts(data, what) for what, data in (("pool", pool), ("queries", queries))}
        values = sorted({label for _, labels in given.values() for label in labels})
        if len(given["pool"][0]) == 0:
            raise ValueError("the pool is empty: there is nothing to demonstrate with")
        if len(values) != len(self.labels):
            raise ValueError(f"the data have the labels {values}, and there are {len(self.labels)} words for them")
        made = []
        for what, (texts, labels) in given.items():
            low, high = self.words or (1, 10**9)
            kept = [at for at, text in enumerate(texts) if low <= len(text.split()) <= high]
            if not kept:
                raise ValueError(f"no text of the {what} has {low} to {high} words")
            made.append(Texts(tuple(texts[at].strip() for at in kept), tuple(values.index(labels[at]) for at in kept)))
        return made[0], made[1]
