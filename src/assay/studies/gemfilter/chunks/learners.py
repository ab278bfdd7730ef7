"""A language model that reads long prompts in chunks: which of the facts it keeps, and what it answers from them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from assay.evaluation.prose import licence_text, package_text
from assay.methods.gemfilter import GemFilter, choose_filter_layer
from assay.methods.gemfilter.chunks import Layout
from assay.methods.gemfilter.filter import AUTO_KERNELS
from assay.networks.pretrained import Loaded
from assay.training.seeds import stream

from ..choice.learners import TUNING_SEED
from ..learners import Key, Row, Rule, anchored, recall, second_runs
from .problem import FAR, LISTED, Asked, asked, listed, moved_to, one_fact, permuted

KINDS = ("ingredient", "passcode", "activity")
#: The kind whose answer is one word.
WORD = "ingredient"
#: A kind of fact that no question is about, in words of its own.
UNASKED = "price"
#: Tokens that stay of a prompt: an eighth, and no more than the text's budget.
MOST, ONE_IN = 1024, 8
TAIL, ANCHOR = 128, 64
#: Arms that count answers draw prompts from this seed on, which no other arm reads.
FURTHER = 500_000
#: Tokens that a list may have where another answer has so many.
LIST_TOKENS, ANSWER_TOKENS = 64, 16


@dataclass(frozen=True)
class Reading:
    """The filter that is judged (layer, rule, width of pooling, size of a chunk), other sizes to compare, and the
    prompts: seeds take the depths and the haystacks in turn. A prompt that is read whole has a layer, a rule and a
    width of its own, those of chunks where none are given."""

    layer: int
    rule: Rule
    chunk: int
    sizes: tuple[int, ...]
    depths: tuple[float, ...]
    haystacks: tuple[str, ...]
    new: int
    whole_layer: int | None = None
    whole_rule: Rule | None = None
    kernel: int = 5
    whole_kernel: int | None = None

    def whole(self, length: int) -> GemFilter:
        layer = self.layer if self.whole_layer is None else self.whole_layer
        rule, kernel = self.whole_rule or self.rule, self.whole_kernel or self.kernel
        return GemFilter(layer=layer, keep=min(length // ONE_IN, MOST), rule=rule, kernel=kernel)

    def cut(self, prompt: Asked, size: int | None = None, **options: Any) -> GemFilter:
        """The filter in chunks, whose tail holds the question."""
        tail = max(TAIL, prompt.tail)
        ours: dict[str, Any] = {"layer": self.layer, "rule": self.rule, "kernel": self.kernel}
        return replace(self.whole(len(prompt.ids)), **ours, chunk=size or self.chunk, tail=tail, **options)

    def place(self, seed: int) -> tuple[float, str]:
        return self.depths[seed % len(self.depths)], self.haystacks[seed % len(self.haystacks)]

    def prompt(self, loaded: Loaded, seed: int, kind: str, length: int, question: str | None = None) -> Asked:
        """A seed's fact of this kind. Prompts that differ in the question alone hide it in the same text."""
        draw = random.Random(f"fact:{kind}:{seed}:{length}")
        task = FAR[kind](draw) if kind in FAR else one_fact(draw, kind)
        depth, haystack = self.place(seed)
        return asked(loaded.tokenizer, task, length, depth, seed=seed, haystack=haystack, question=question)


def kept_by(loaded: Loaded, prompt: Asked, filters: Mapping[str, GemFilter]) -> dict[Key, Tensor]:
    """The positions (1, keep) that each filter keeps. Filters that cut a prompt in the same way and look at it
    from the same layer in the same way read it once."""
    ids = _ids(loaded, prompt)
    known: dict[tuple[Layout | None, int | str, str, int], Tensor] = {}
    made: dict[Key, Tensor] = {}
    for name, chosen in filters.items():
        how = chosen.layout(loaded.model, len(prompt.ids)), chosen.layer, chosen.rule, chosen.kernel
        if how not in known:
            known[how] = chosen.select(loaded.model, ids).indices
        made[name] = known[how]
    return made


def size_name(size: int) -> str:
    return f"chunks of {size}"


def recall_rows(loaded: Loaded, seed: int, kind: str, length: int, reading: Reading, *, within: bool) -> list[Row]:
    """The share of a fact's tokens that is kept, and whether the question is answered from them: whole prompt
    (``within`` the context, with full attention beside it), chunks of several sizes, and chunks without overlap or with
    an anchor."""
    prompt = reading.prompt(loaded, seed, kind, length)
    filters = {"whole": reading.whole(length)} if within else {}
    filters |= {size_name(size): reading.cut(prompt, size) for size in reading.sizes}
    filters["no overlap"] = reading.cut(prompt, _even(prompt, reading.chunk), overlap=0)
    filters["anchor"] = anchored(reading.cut(prompt), ANCHOR)
    kept = kept_by(loaded, prompt, filters)
    answers = _answers(loaded, prompt, kept, reading.new, full=within)
    return [_text_row(reading, seed), *_recalls(kept, prompt.wanted), *answers]


def answer_rows(loaded: Loaded, seed: int, kind: str, length: int, reading: Reading) -> list[Row]:
    """A fact within the context, read whole and in chunks of the chosen size: what is kept of it, and the answers from
    either and with full attention."""
    prompt = reading.prompt(loaded, FURTHER + seed, kind, length)
    filters = {"whole": reading.whole(length), size_name(reading.chunk): reading.cut(prompt)}
    kept = kept_by(loaded, prompt, filters)
    return [*_recalls(kept, prompt.wanted), *_answers(loaded, prompt, kept, reading.new, full=True)]


def word_rows(loaded: Loaded, seed: int, length: int, reading: Reading) -> list[Row]:
    """A fact of one word beyond the context, read in chunks of the chosen size: what is kept of it, and the answer."""
    prompt = reading.prompt(loaded, FURTHER + seed, WORD, length)
    kept = kept_by(loaded, prompt, {size_name(reading.chunk): reading.cut(prompt)})
    return [*_recalls(kept, prompt.wanted), *_answers(loaded, prompt, kept, reading.new, full=False)]


def far_rows(loaded: Loaded, seed: int, task: str, length: int, reading: Reading) -> list[Row]:
    """Evidence in several places: the share of all of it that is kept, that of the last fact, and the answer."""
    prompt = reading.prompt(loaded, seed, task, length)
    kept = kept_by(loaded, prompt, {"whole": reading.whole(length), "chunks": reading.cut(prompt)})
    return [
        *_recalls(kept, prompt.wanted),
        *_recalls(kept, prompt.at[-1], "last_recall"),
        *_answers(loaded, prompt, kept, reading.new, full=True),
    ]


def list_rows(loaded: Loaded, seed: int, length: int, reading: Reading) -> list[Row]:
    """A list of all that the text says of one subject: the share of its mentions that is kept, and of its things that
    is named."""
    depth, haystack = reading.place(seed)
    task = listed(random.Random(f"list:{seed}:{length}"))
    prompt = asked(loaded.tokenizer, task, length, depth, seed=seed, haystack=haystack)
    kept = kept_by(loaded, prompt, {"whole": reading.whole(length), "chunks": reading.cut(prompt)})
    said = _said(loaded, prompt, kept, LIST_TOKENS * reading.new // ANSWER_TOKENS, full=True)
    named = [Row({"method": name}, {"named": task.named(text)}, trials=LISTED) for name, text in said.items()]
    return [*_recalls(kept, prompt.wanted), *named]


def control_rows(loaded: Loaded, seed: int, length: int, reading: Reading) -> list[Row]:
    """What must change the selection and what must not: no question, another fact than the one asked for, a fact that
    a boundary cuts, and another order of the chunks."""
    kind = KINDS[seed % len(KINDS)]
    prompt = reading.prompt(loaded, seed, kind, length)
    rows: list[Row] = []
    silent = reading.prompt(loaded, seed, kind, length, question="")
    other = reading.prompt(loaded, seed, UNASKED, length, question=prompt.task.question)
    for name, one in {"asked": prompt, "no question": silent, "another fact": other}.items():
        rows += _recalls(kept_by(loaded, one, {name: reading.cut(one)}), one.wanted)
    even = _even(prompt, reading.chunk)
    layout = reading.cut(prompt, even, overlap=0).layout(loaded.model, length)
    assert layout is not None, "the prompt is as long as several chunks"
    cut = moved_to(prompt, layout.starts[layout.chunks // 2] - len(prompt.at[0]) // 2)
    filters = {"cut, no overlap": reading.cut(cut, even, overlap=0), "cut, overlap": reading.cut(cut)}
    rows += _recalls(kept_by(loaded, cut, filters), cut.wanted)
    return [*rows, _permuted_row(loaded, prompt, seed, reading)]


def _permuted_row(loaded: Loaded, prompt: Asked, seed: int, reading: Reading) -> Row:
    """How many kept tokens are others when the pieces stand in another order, over how many may be: pooling mixes the
    scores of some tokens on each side of a piece's two ends, and of as many behind the last piece."""
    size = _even(prompt, reading.chunk)
    tail = max(TAIL, prompt.tail)
    count = (len(prompt.ids) - tail) // size
    # Tokens that make no whole piece are left out, in front of the tail.
    ids = prompt.ids[: count * size] + prompt.ids[len(prompt.ids) - tail :]
    shift = int(torch.randint(1, count, (), generator=stream(seed, f"order of {count}")))
    order = [(piece + shift) % count for piece in range(count)]  # no piece stays where it was
    mixed, origin = permuted(ids, [piece * size for piece in range(count)], size, order)
    chosen = replace(reading.cut(prompt, size), overlap=0, tail=tail, keep=len(ids) // ONE_IN)
    device = next(loaded.model.parameters()).device
    first, second = (
        chosen.select(loaded.model, torch.tensor([one], device=device)).indices[0].tolist() for one in (ids, mixed)
    )
    changed = len(set(first) - {origin[place] for place in second})
    return Row({}, {"changed": changed / (chosen.kernel // 2 * (2 * count + 1))})


def choice_rows(loaded: Loaded, seed: int, length: int, prompts: int, chunk: int | None) -> list[Row]:
    """The layer, rule and width of pooling that ``auto`` takes on chunks, or on whole prompts (None), chosen and judged
    on texts that no other arm reads."""
    choice = choose_filter_layer(
        loaded.model,
        loaded.tokenizer,
        keep=min(length // ONE_IN, MOST),
        length=length,
        prompts=prompts,
        texts={"licences": licence_text(), "packages": package_text()},
        base=GemFilter(layer=0, chunk=chunk),
        kernels=AUTO_KERNELS,
        seed=TUNING_SEED + seed,
        remember=False,
        warn=False,
    )
    return [
        Row({}, {"chosen_layer": float(choice.layer), "held_out_recall": choice.held_out_recall}),
        Row({}, {"chosen_kernel": float(choice.kernel)}),
        Row({}, {"chose_window": float(choice.rule == "window")}, trials=1),
    ]


def _even(prompt: Asked, chunk: int) -> int:
    """The size of as many equal pieces as chunks of this size cover the prompt's body with: neighbours share
    nothing, but for the last two, which share fewer tokens than there are pieces."""
    body = len(prompt.ids) - max(TAIL, prompt.tail)
    return -(-body // max(2, -(-body // chunk)))


def _ids(loaded: Loaded, prompt: Asked) -> Tensor:
    return torch.tensor([prompt.ids], device=next(loaded.model.parameters()).device)


def _text_row(reading: Reading, seed: int) -> Row:
    depth, haystack = reading.place(seed)
    return Row({}, {"depth": depth, "haystack": float(reading.haystacks.index(haystack))})


def _recalls(kept: Mapping[Key, Tensor], wanted: Sequence[int], metric: str = "recall") -> list[Row]:
    return [
        Row({"method": str(name)}, {metric: float(recall(places, wanted))}, trials=len(wanted))
        for name, places in kept.items()
    ]


def _answers(loaded: Loaded, prompt: Asked, kept: Mapping[Key, Tensor], new: int, *, full: bool) -> list[Row]:
    """Whether each selection answers, and the whole prompt where it is ``within`` the context."""
    return [
        Row({"method": name}, {"accuracy": float(prompt.task.right(text))}, trials=1)
        for name, text in _said(loaded, prompt, kept, new, full=full).items()
    ]


def _said(loaded: Loaded, prompt: Asked, kept: Mapping[Key, Tensor], new: int, *, full: bool) -> dict[str, str]:
    ids = _ids(loaded, prompt)
    made = second_runs(loaded.model, ids, kept, new)
    if full:
        everything = torch.arange(ids.shape[1], device=ids.device)[None]
        made |= second_runs(loaded.model, ids, {"full": everything}, new)
    return {str(name): loaded.tokenizer.decode(tokens[0], skip_special_tokens=True) for name, tokens in made.items()}
