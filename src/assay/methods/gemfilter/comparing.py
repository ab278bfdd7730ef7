"""GemFilter beside its baselines, by name and with one budget, and a question that all of them answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal

from assay.evaluation.answering import Answer, answer, chat_ids
from assay.evaluation.contract import Method
from assay.evaluation.measure import peak_counts
from assay.methods._checks import one_of
from assay.methods.gemfilter.baselines import H2O, FullAttention, OneRun, SnapKV
from assay.methods.gemfilter.budget import budget_of
from assay.methods.gemfilter.cautions import too_long
from assay.methods.gemfilter.choice import choose_filter_layer, measured_length
from assay.methods.gemfilter.filter import AUTO_KERNELS, GemFilter
from assay.methods.gemfilter.selection import Selection
from assay.networks.pretrained import Loaded

METHODS = ("full", "snapkv", "h2o", "one-run", "gemfilter")
_KEEP_ONE_IN = 8
#: A tail that is made for a question has a multiple of so many tokens.
_TAIL_STEP = 16

Tell = Callable[[str], None]


def _silent(_: str) -> None:
    """Nobody wants to hear how far the work is."""


@contextmanager
def warnings_told(tell: Tell, known: str | None = None) -> Iterator[None]:
    """A method's warnings as sentences, each once, but for the one that is ``known``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for said in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)):
        if said != known:
            tell(said)


@dataclass(frozen=True)
class Comparison:
    """Which methods, and the filter whose budget they share.

    Without ``keep`` an eighth of a prompt stays; below 1 it is a share of the prompt. ``layer="auto"`` measures the
    layer on needle prompts of about the prompt's length, and the rule with it unless one is named. ``chunk`` and
    ``tail`` are GemFilter's; left out, the tail holds the question where that is longer than the usual one.
    """

    methods: Sequence[str] = ("full", "gemfilter")
    keep: int | float | None = None
    layer: int | Literal["auto"] = "auto"
    rule: str | None = None
    chunk: int | Literal["auto"] | None = None
    tail: int | None = None

    def __post_init__(self) -> None:
        for name in self.methods:
            one_of("a method", name, METHODS)
        wanted = self._wanted(1 if self.keep is None else self.keep)
        if self.tail is not None and self.chunk is None:
            raise ValueError("a tail stands behind every chunk: it goes with chunk only")
        if self.layer == "auto" and self.rule is None:
            replace(wanted, rule="window")  # one of the rules that are measured: refused before any work is done
        if self.chunk is not None and "one-run" in self.methods:
            raise ValueError("one-run reads the prompt whole: it does not go with chunks")

    def _wanted(self, keep: float) -> GemFilter:
        """The filter that was asked for, at layer 0 where one is to be measured."""
        layer = 0 if self.layer == "auto" else self.layer
        chosen = GemFilter(layer=layer, keep=keep, rule=self.rule or "logits", chunk=self.chunk)  # type: ignore[arg-type]
        return chosen if self.tail is None else replace(chosen, tail=self.tail)

    def budget(self, length: int) -> int:
        """Tokens that stay of a prompt of ``length``."""
        if self.keep is None:
            return max(1, length // _KEEP_ONE_IN)
        return int(self.keep) if self.keep >= 1 else budget_of(self.keep, length)

    def filter(self, loaded: Loaded, length: int, tell: Tell = _silent) -> GemFilter:
        """The filter for prompts of ``length`` tokens; of a measured layer ``tell`` hears how far it can be trusted."""
        wanted = self._wanted(keep := self.budget(length))
        if self.layer != "auto" or not {"gemfilter", "one-run"} & set(self.methods):
            return wanted
        if length <= keep:
            tell(f"the prompt's {length} tokens all fit into a budget of {keep}: nothing is filtered")
            return wanted
        choice = choose_filter_layer(
            loaded.model,
            loaded.tokenizer,
            keep=keep,
            rules=("logits", "window") if self.rule is None else (self.rule,),
            kernels=AUTO_KERNELS,
            base=wanted,
            length=measured_length(loaded.model, length, wanted),
            warn=False,
            progress=lambda text: tell(f"measuring the layer: {text}"),
        )
        tell(choice.sentence() if choice.reliable else f"not reliable: {choice.sentence()}")
        return choice.filter()

    def check_context(self, loaded: Loaded, length: int, tell: Tell = _silent) -> str | None:
        """``tell`` hears before the work begins of a prompt that is too long for a method which reads it whole. Comes
        back as what such methods will warn of; a filter alone says it when it reads."""
        wrong = too_long(loaded.model, length) if set(self.methods) - {"gemfilter"} else None
        if wrong:
            tell(wrong)
        return wrong

    def asking(self, chosen: GemFilter, loaded: Loaded, length: int, question: int, tell: Tell = _silent) -> GemFilter:
        """The filter whose chunks end in the whole question: the last ``question`` tokens of a prompt of ``length``, 0
        where nobody knows it. ``tell`` hears what a chunk may lack of it.

        The layer is measured with the usual tail, so that questions of all lengths share a choice."""
        if self.tail is None and question > chosen.tail:
            chosen = replace(chosen, tail=-(-question // _TAIL_STEP) * _TAIL_STEP)
        layout = chosen.layout(loaded.model, length)
        if layout is None or length <= chosen.budget(length):
            return chosen
        if question > layout.tail:
            more = "a longer tail" if layout.tail == chosen.tail else "a chunk of a stated size"
            tell(
                f"the question has {question:,} tokens with the template behind it, and every chunk ends in the last "
                f"{layout.tail:,} of them only: {more} holds all"
            )
        elif not question and self.tail is None:
            tell(
                f"no question is known apart from the text: the prompt's last {layout.tail:,} tokens stand behind "
                "every chunk, and a longer question among them needs a longer tail"
            )
        return chosen

    def made(self, chosen: GemFilter) -> dict[str, Method]:
        """The methods by name, with the filter's budget."""
        keep = int(chosen.keep)
        recent = min(32, max(1, keep // 2))
        known: dict[str, Callable[[], Method]] = {
            "full": FullAttention,
            "snapkv": lambda: SnapKV(keep, window=recent),
            "h2o": lambda: H2O(keep, window=recent),
            "one-run": lambda: OneRun(chosen),
            "gemfilter": lambda: chosen,
        }
        return {name: known[name]() for name in self.methods}


def question_tokens(loaded: Loaded, ids: Sequence[int], question: str, *, chat: bool = True) -> int:
    """How many of a prompt's last tokens are the question with the template behind it: those that it shares with the
    same question about nothing."""
    if not question:
        return 0
    alone, _ = chat_ids(loaded, "", question, chat=chat)
    ends = zip(reversed(ids), reversed(alone), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))


@dataclass(frozen=True)
class Answered:
    """What the methods said to one question, what it took, and what the filter kept of the prompt."""

    chosen: GemFilter
    ids: list[int]
    chat: bool
    answers: dict[str, Answer]
    peak_counts: str

    @property
    def selection(self) -> Selection | None:
        """What GemFilter kept, None where it was not asked."""
        found = self.answers["gemfilter"].selection if "gemfilter" in self.answers else None
        assert found is None or isinstance(found, Selection)
        return found

    def facts(self) -> str:
        """How much was kept, and by which layer, for a person to read."""
        if self.selection is None or self.selection.scores is None:
            return f"all {len(self.ids):,} tokens, since they fit: nothing was chosen"
        kept = len(self.selection.kept())
        cut = f", {self.selection.chunks} chunks" if self.selection.chunks else ""
        by = f"chosen by layer {self.chosen.layer} with '{self.chosen.rule}'{cut}"
        return f"{kept:,} of {len(self.ids):,} tokens, {by}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per method: its answer, times, memory and tokens."""
        counted = {"peak_counts": self.peak_counts}
        return [
            {**vars(made.profile), "peak_bytes": made.profile.peak_bytes, "text": made.text, **counted}
            for made in self.answers.values()
        ]


def ask(
    loaded: Loaded,
    comparison: Comparison,
    text: str,
    question: str = "",
    *,
    new: int = 50,
    chat: bool = True,
    tell: Tell = _silent,
) -> Answered:
    """Every method's answer to a question about a long text, ``new`` tokens at most."""
    if not text.strip():
        raise ValueError("the text is empty: there is nothing to read")
    ids, templated = chat_ids(loaded, text, question, chat=chat)
    known = comparison.check_context(loaded, len(ids), tell)
    chosen = comparison.filter(loaded, len(ids), tell)
    asked = question_tokens(loaded, ids, question, chat=chat)
    chosen = comparison.asking(chosen, loaded, len(ids), asked, tell)
    with warnings_told(tell, known):
        answers = {name: answer(loaded, ids, method, new) for name, method in comparison.made(chosen).items()}
    return Answered(chosen, ids, templated, answers, peak_counts(loaded.model.device))
