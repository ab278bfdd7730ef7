"""The claims of the source that are identities: every row must meet them."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C3a",
    "the matrix operations that torch counts in both prefills are those of the cost model",
    source="Table of complexities, Section 9.4",
)
def operations_counted(m: Measurements[Params]) -> Judgement:
    return m.every("operations_apart", arm="exact").at_most(0, tolerance=1e-3)


@part.claim("C3b", "the bytes of every real cache are 2·m·H_kv·d·L·bytes", source="Section 9.4")
def cache_is_counted(m: Measurements[Params]) -> Judgement:
    return m.every("cache_apart", arm="exact").between(0, 0)


@part.claim("C3c", "pass 1 runs exactly r whole layers, and no MLP from layer r on", source="Algorithm 1")
def layers_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("layers_wrong", arm="exact").between(0, 0)


@part.claim(
    "C3g", "decoding reaches position k + t with GemFilter and n + t with compressed caches", source="Section 9.3"
)
def positions_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("position_apart", arm="exact").between(0, 0)


@part.claim(
    "C7a",
    "GemFilter has one index set, SnapKV one per layer and key-value head, all different",
    source="Section 9.3",
    printed="m·h sets: the source's code repeats keys to all query heads",
)
def index_sets_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("sets_apart", arm="exact").between(0, 0)


@part.claim("N1", "a budget for the whole prompt gives the tokens of plain generation", source="control")
def whole_budget_changes_nothing(m: Measurements[Params]) -> Judgement:
    return m.every("tokens_apart", arm="exact").between(0, 0)


@part.claim("N2", "what is noted during a shared prefill is what the filter selects by itself", source="control")
def watched_is_selected(m: Measurements[Params]) -> Judgement:
    return m.every("watched_apart", arm="exact").between(0, 0)
