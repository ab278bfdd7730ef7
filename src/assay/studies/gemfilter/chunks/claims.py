"""Claims beyond the source: what chunks keep of a fact and answer from it, and where they must lose.

A seed is one prompt of every length and kind of fact; methods are compared on the same prompts, at the same budget.
"""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part
from .learners import KINDS, size_name

#: Beyond the source: a design of this project.
OURS = "beyond the source"


def over_kinds(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """The mean over the kinds of facts, one value per seed; of shares it is a share of as many trials as all had."""
    parts = [m.final(metric, kind=kind, **where) for kind in KINDS]
    return (sum(parts[1:], parts[0]) / len(parts)).as_share()


def longest(m: Measurements[Params], metric: str, method: str) -> Values:
    """At the longest prompts within the context."""
    return over_kinds(m, metric, arm="chunks", length=max(m.params.chunk_lengths), method=method)


def chosen(m: Measurements[Params]) -> str:
    return size_name(m.params.chunk)


@part.claim(
    "X3a",
    "A real language model that reads the longest prompts of its context in chunks keeps nine tenths of a hidden "
    "fact's tokens.",
    source=OURS,
)
def chunks_find(m: Measurements[Params]) -> Judgement:
    return longest(m, "recall", chosen(m)).named("share of the fact kept").at_least(0.9)


@part.claim(
    "X3b",
    "On the longest prompts of its context a real model keeps more of a hidden fact when it reads in chunks than when "
    "it reads the whole.",
    source=OURS,
)
def chunks_find_more(m: Measurements[Params]) -> Judgement:
    gap = longest(m, "recall", chosen(m)) - longest(m, "recall", "whole")
    return gap.named("share of the fact kept, chunks − whole prompt").above(0)


@part.claims_over(
    {
        "X4a": {"other": "whole", "words": "from what the filter keeps of the whole prompt"},
        "X4b": {"other": "full", "words": "with full attention"},
    },
    statement="On the longest prompts of its context a real model answers at least as often from chunks as {words}.",
    source=OURS,
)
def chunks_answer(m: Measurements[Params], *, other: str) -> Judgement:
    gap = longest(m, "accuracy", chosen(m)) - longest(m, "accuracy", other)
    return gap.named(f"share answered, chunks − {other}").at_least(0)


@part.claim(
    "X4c",
    "On the longest prompts of its context, drawn apart from those that the margin was chosen on, a real model answers "
    "at most ten points in a hundred less often from chunks than from what the filter keeps of the whole prompt.",
    source=OURS,
)
def chunks_answer_about_as_often(m: Measurements[Params]) -> Judgement:
    ours, theirs = (over_kinds(m, "accuracy", arm="chunk-answers", method=method) for method in (chosen(m), "whole"))
    return (ours - theirs).named("share answered, chunks − whole").at_least(-0.1)


@part.claims_over(
    {
        name: {"size": size, "when": {f"chunks of {size} tokens": lambda p, size=size: size in p.chunk_sizes}}
        for name, size in {"X5a": 256, "X5b": 512, "X5c": 1024, "X5d": 2048, "X5e": 4096}.items()
    },
    statement="In chunks of {size} tokens a real model keeps nine tenths of a hidden fact, on the longest prompts of "
    "its context.",
    source=OURS,
)
def every_size_finds(m: Measurements[Params], *, size: int) -> Judgement:
    return longest(m, "recall", size_name(size)).named("share of the fact kept").at_least(0.9)


@part.claim(
    "X6a",
    "A hidden fact that the boundary between two chunks would cut is kept, nine tenths of it, when chunks overlap by "
    "an eighth.",
    source=OURS,
)
def overlap_saves(m: Measurements[Params]) -> Judgement:
    found = m.final("recall", arm="chunk-controls", method="cut, overlap")
    return found.named("share of the fact kept").at_least(0.9)


@part.claim(
    "X6b",
    "Of a hidden fact that the boundary between two chunks cuts, a real model keeps more when chunks overlap than when "
    "they do not.",
    source=OURS,
)
def overlap_is_needed(m: Measurements[Params]) -> Judgement:
    with_it, without = (
        m.final("recall", arm="chunk-controls", method=f"cut, {name}") for name in ("overlap", "no overlap")
    )
    return (with_it - without).named("share of the fact kept, overlap − none").above(0)


@part.claim(
    "X7",
    "With the prompt's first tokens in front of every chunk (an anchor) a real model keeps more of a hidden fact than "
    "without.",
    source=OURS,
)
def anchor_helps(m: Measurements[Params]) -> Judgement:
    gap = longest(m, "recall", "anchor") - longest(m, "recall", chosen(m))
    return gap.named("share of the fact kept, anchor − none").above(0)


@part.claim(
    "X8a",
    "In the longest prompts measured beyond its context, a real model that reads in chunks keeps nine tenths of a "
    "hidden fact.",
    source=OURS,
)
def found_beyond_the_context(m: Measurements[Params]) -> Judgement:
    length = max(m.params.chunk_beyond)
    found = over_kinds(m, "recall", arm="chunks-beyond", length=length, method=chosen(m))
    return found.named("share of the fact kept").at_least(0.9)


@part.claim(
    "X8b",
    "Of one-word questions about the longest prompts measured beyond its context, a real model answers nine of ten "
    "from chunks.",
    source=OURS,
)
def answered_beyond_the_context(m: Measurements[Params]) -> Judgement:
    return answered(m, max(m.params.chunk_beyond))


@part.claim(
    "X8c",
    "Of one-word questions about prompts of 32,768 tokens, four times its context, a real model answers nine of ten "
    "from chunks.",
    source=OURS,
    when={"prompts of 32,768 tokens": lambda p: 32_768 in p.chunk_beyond},
)
def answered_at_four_contexts(m: Measurements[Params]) -> Judgement:
    return answered(m, 32_768)


def answered(m: Measurements[Params], length: int) -> Judgement:
    found = m.final("accuracy", arm="chunk-words", length=length, method=chosen(m))
    return found.named("share answered").at_least(0.9)


def far(m: Measurements[Params], metric: str, task: str, method: str) -> Values:
    return m.final(metric, arm="chunks-far", task=task, method=method)


@part.claim(
    "X9a",
    "Of a fact that the question does not name, a real model keeps less when the fact that leads to it stands in "
    "another chunk.",
    source=OURS,
)
def second_hop_is_lost(m: Measurements[Params]) -> Judgement:
    near, away = (far(m, "last_recall", f"two hops, {where}", "chunks") for where in ("side by side", "far apart"))
    return (near - away).named("share of the second fact kept, side by side − far apart").above(0)


@part.claims_over(
    {
        "X9b": {"task": "four facts", "words": "four facts in different chunks"},
        "X9c": {"task": "number", "words": "all mentions that a question about their number needs"},
        "X9d": {"task": "order", "words": "both facts that a question about their order needs"},
    },
    statement="Read in chunks, a real model keeps nine tenths of {words}.",
    source=OURS,
)
def several_are_kept(m: Measurements[Params], *, task: str) -> Judgement:
    return far(m, "recall", task, "chunks").named("share of the facts kept").at_least(0.9)


@part.claims_over(
    {
        "X9e": {"task": "two hops, far apart", "words": "that need two facts far apart"},
        "X9f": {"task": "four facts", "words": "about four facts at once"},
        "X9g": {"task": "number", "words": "about a number of mentions"},
        "X9h": {"task": "order", "words": "about the order of two mentions"},
    },
    statement="A real model answers questions {words} at most ten points in a hundred less often from chunks than with "
    "full attention.",
    source=OURS,
)
def far_evidence_is_answered(m: Measurements[Params], *, task: str) -> Judgement:
    gap = far(m, "accuracy", task, "chunks") - far(m, "accuracy", task, "full")
    return gap.named("share answered, chunks − full attention").at_least(-0.1)


@part.claim(
    "X12a",
    "Read in chunks, a real model keeps nine tenths of eight mentions that stand an eighth of the text apart when a "
    "list of them is asked for.",
    source=OURS,
)
def a_list_is_kept(m: Measurements[Params]) -> Judgement:
    return m.final("recall", arm="chunk-lists", method="chunks").named("share of the mentions kept").at_least(0.9)


@part.claims_over(
    {
        "X12b": {"other": "full", "words": "with full attention"},
        "X12c": {"other": "whole", "words": "from the whole prompt's filter"},
    },
    statement="Of eight things that stand an eighth of the text apart a real model names at most ten points in a "
    "hundred fewer from chunks than {words}.",
    source=OURS,
)
def a_list_is_told(m: Measurements[Params], *, other: str) -> Judgement:
    ours, theirs = (m.final("named", arm="chunk-lists", method=method) for method in ("chunks", other))
    return (ours - theirs).named(f"share named, chunks − {other}").at_least(-0.1)


@part.claims_over(
    {
        "N11": {"other": "no question", "words": "when the chunks' tail asks no question"},
        "N12": {"other": "another fact", "words": "when the question is about something else"},
    },
    statement="Read in chunks, a real model keeps 30 points in a hundred less of a hidden fact {words}.",
    source="control",
)
def the_question_selects(m: Measurements[Params], *, other: str) -> Judgement:
    ours, theirs = (m.final("recall", arm="chunk-controls", method=method) for method in ("asked", other))
    return (ours - theirs).named(f"share of the fact kept, asked − {other}").at_least(0.3)


@part.claim(
    "N13",
    "In another order of the chunks a real model keeps the same tokens, but for those that pooling mixes at the "
    "boundaries.",
    source="control",
)
def order_of_chunks(m: Measurements[Params]) -> Judgement:
    return m.every("changed", arm="chunk-controls").named("changed tokens over those at boundaries").at_most(1)


@part.claims_over(
    {
        "N14": {"reading": "chunks", "texts": "Chunks", "how": "in chunks"},
        "N17": {"reading": "whole", "texts": "Whole prompts", "how": "whole prompts"},
    },
    statement="{texts} of other texts choose the filter layer that this study reads {how} with, within two layers.",
    source="control",
)
def chosen_on_other_texts(m: Measurements[Params], *, reading: str) -> Judgement:
    layer = m.params.chunk_layer if reading == "chunks" else m.params.whole_layer
    return m.every("chosen_layer", arm="chunk-choice", reading=reading).between(layer - 2, layer + 2)
