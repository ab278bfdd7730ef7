"""Claims beyond the source: a filter that reads in chunks against retrievers, at the same budget of tokens.

A seed is one prompt of every length and wording. The retrievers' windows were chosen on prompts of their own.
"""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, pick

from .arms import Params, part

OURS = "beyond the source"
SAME, OTHER = "same words", "other words"
_RIVALS = {"bm25": "BM25 over windows of the text", "encoder": "a sentence encoder over windows of the text"}


def gap(m: Measurements[Params], metric: str, wording: str, rival: str) -> Values:
    """What chunks keep or answer at the first length, less what a rival does."""
    where = {"arm": "rivals", "wording": wording, "length": m.params.rival_lengths[0]}
    ours, theirs = (m.final(metric, method=method, **where) for method in ("chunks", rival))
    return ours - theirs


@part.claims_over(
    {"X10a": {"rival": "bm25", "words": _RIVALS["bm25"]}, "X10b": {"rival": "encoder", "words": _RIVALS["encoder"]}},
    statement="Where a question has the fact's own words, chunks keep at most five points in a hundred less of the "
    "fact than {words}.",
    source=OURS,
)
def as_good_in_its_words(m: Measurements[Params], *, rival: str) -> Judgement:
    return gap(m, "recall", SAME, rival).named(f"share of the fact kept, chunks − {rival}").at_least(-0.05)


@part.claims_over(
    {"X10c": {"rival": "bm25", "words": _RIVALS["bm25"]}, "X10d": {"rival": "encoder", "words": _RIVALS["encoder"]}},
    statement="Where a question has other words than the fact, chunks keep more of the fact than {words}.",
    source=OURS,
)
def better_in_other_words(m: Measurements[Params], *, rival: str) -> Judgement:
    return gap(m, "recall", OTHER, rival).named(f"share of the fact kept, chunks − {rival}").above(0)


@part.claims_over(
    {"X11a": {"rival": "bm25", "words": "BM25"}, "X11b": {"rival": "encoder", "words": "a sentence encoder"}},
    statement="Where a question has other words than the fact, a real model answers more often from chunks than from "
    "what {words} finds.",
    source=OURS,
)
def answers_in_other_words(m: Measurements[Params], *, rival: str) -> Judgement:
    return gap(m, "accuracy", OTHER, rival).named(f"share answered, chunks − {rival}").above(0)


@part.claims_over(
    {
        "N15": {"rival": "bm25", "words": "BM25's windows have"},
        "N16": {"rival": "encoder", "words": "The sentence encoder's windows have"},
    },
    statement="{words} the size that keeps most on tuning prompts, within five points in a hundred.",
    source="control",
)
def windows_are_tuned(m: Measurements[Params], *, rival: str) -> Judgement:
    taken = {"bm25": m.params.bm25_window, "encoder": m.params.encoder_window}[rival]
    where = {"arm": "rival-windows", "method": rival}
    best = pick(max, [m.final("tuning_recall", window=size, **where) for size in m.params.rival_windows])
    lag = m.final("tuning_recall", window=taken, **where) - best
    return lag.named(f"share of the fact kept, windows of {taken} − the best size").at_least(-0.05)
