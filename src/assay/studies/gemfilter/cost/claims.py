"""The claims of the source about operations and memory, by the corrected table of costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from assay.lab import Exact, Judgement, Measurements, farthest_from

from . import theory
from .arms import Params, part

LENGTHS = {
    "prompts from 4,096 to 1,048,576 tokens": lambda p: (min(p.cost_lengths), max(p.cost_lengths)) == (4096, 2**20)
}
LONG = {"a prompt of 122,880 tokens among cost_lengths": lambda p: theory.LONG in p.cost_lengths}


def chosen(choose: Callable[[list[float]], float], numbers: Iterable[Exact], what: str) -> Exact:
    """One of some numbers, such as the largest; none where one of them is not finite."""
    values = [number.value for number in numbers]
    return Exact(choose(values) if all(map(math.isfinite, values)) else math.nan, what)


def speed_ups(m: Measurements[Params], metric: str, model: str) -> list[Exact]:
    """A number of one model for every prompt length."""
    return [m.exact(metric, arm="cost", model=model, length=length) for length in m.params.cost_lengths]


def bytes_ratios(m: Measurements[Params], ours: str, theirs: str) -> list[Exact]:
    """Prefill bytes of one method over another's at 120k tokens, for each of the source's models."""
    found = []
    for model in theory.MODELS:
        where = {"arm": "cost", "model": model, "length": theory.LONG}
        one, other = (m.exact("prefill_bytes", **where, method=method).value for method in (ours, theirs))
        found.append(Exact(one / other))
    return found


@part.claim(
    "C3d",
    "By counted operations GemFilter reads prompts of 4,096 to 1,048,576 tokens less than 2.4 times faster than full "
    "attention on at least one of the source's three models.",
    source="Figures 9.3 and 9.6",
    when=LENGTHS,
    printed="2.4 times faster for all three models",
    paper=2.4,
)
def stated_speed_up_is_out_of_reach(m: Measurements[Params]) -> Judgement:
    best = [chosen(max, speed_ups(m, "speed_up", model), model) for model in theory.MODELS]
    return chosen(min, best, "largest speed-up of the slowest of the three models").below(2.4)


@part.claim(
    "C3e",
    "By the cost model (weights and caches, 120k tokens) GemFilter's prefill takes at most 70 % of SnapKV's bytes on "
    "the source's three models, when it loads its own layers alone.",
    source="Figure 9.3",
    when=LONG,
    paper=0.70,
)
def memory_falls(m: Measurements[Params]) -> Judgement:
    ratios = bytes_ratios(m, "filter only", "snapkv")
    return chosen(max, ratios, "largest ratio of weights and caches").at_most(0.7)


@part.claim(
    "C3f",
    "By the cost model (weights and caches, 120k tokens) GemFilter's prefill saves less than 10 % of SnapKV's bytes on "
    "each of the source's three models, when the whole model is loaded.",
    source="Figure 9.3",
    when=LONG,
    printed="30 % less GPU memory than SnapKV",
    paper=0.70,
)
def resident_memory_hardly_falls(m: Measurements[Params]) -> Judgement:
    ratios = bytes_ratios(m, "gemfilter", "snapkv")
    return chosen(min, ratios, "smallest ratio of weights and caches").above(0.9)


@part.claim(
    "C3h",
    "By the cost model (weights and caches, 120k tokens) GemFilter's prefill takes at most 30 % of full attention's "
    "bytes on the source's three models, when it loads its own layers alone.",
    source="Figure 9.3",
    when=LONG,
    paper=0.30,
)
def memory_falls_from_full(m: Measurements[Params]) -> Judgement:
    ratios = bytes_ratios(m, "filter only", "full")
    return chosen(max, ratios, "largest ratio of weights and caches").at_most(0.3)


@part.claim(
    "C3i",
    "By counted operations GemFilter's prefill is faster than full attention's by the ratio of layers m/r or up to 5 % "
    "less, at every length tried from 4,096 to 1,048,576 tokens.",
    source="Theorem 9.3",
    when=LENGTHS,
)
def speed_up_has_a_ceiling(m: Measurements[Params]) -> Judgement:
    shares = [share for model in theory.MODELS for share in speed_ups(m, "share_of_ceiling", model)]
    return chosen(farthest_from(0.975), shares, "speed-up over m/r, the one nearest to a limit").between(0.95, 1)
