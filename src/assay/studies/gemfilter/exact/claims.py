"""The claims of the source that are identities: every row must meet them."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C3a",
    "The matrix operations that torch counts while small random models read a prompt are the cost model's plus the "
    "masked half of attention, for GemFilter and for full attention.",
    source="Theorem 9.3",
)
def operations_counted(m: Measurements[Params]) -> Judgement:
    return m.every("operations_apart", arm="exact").at_most(0, tolerance=1e-3)


@part.claim(
    "C3b",
    "The bytes of every method's cache are two numbers per layer, key-value head, head dimension and token kept "
    "(2·m·H_kv·d·L).",
    source="Theorem 9.3",
    printed="full attention's cache takes 2mhd: an n is missing",
)
def cache_is_counted(m: Measurements[Params]) -> Judgement:
    return m.every("cache_apart", arm="exact").between(0, 0)


@part.claim(
    "C3c",
    "GemFilter's pass over the long prompt runs exactly the r layers below its filter layer, and no MLP above these.",
    source="Algorithm 2",
)
def layers_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("layers_wrong", arm="exact").between(0, 0)


@part.claim(
    "C3g",
    "While t tokens are decoded the largest position fed (from 0) is k + t − 2 with GemFilter's k kept tokens, and n + "
    "t − 2 with a compressed cache of a prompt of n.",
    source="Appendix G.2",
)
def positions_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("position_apart", arm="exact").between(0, 0)


@part.claim(
    "C7a",
    "GemFilter has one set of kept tokens for the whole model, SnapKV a different one for every layer and key-value "
    "head.",
    source="Section 9.3.1, Appendix G.2",
    printed="m·h sets: the source's code repeats keys to all query heads",
)
def index_sets_are_counted(m: Measurements[Params]) -> Judgement:
    return m.every("sets_apart", arm="exact").between(0, 0)


@part.claim(
    "N1",
    "With a budget for the whole prompt GemFilter, in two runs or one, SnapKV and H2O give the tokens of plain "
    "generation.",
    source="control",
)
def whole_budget_changes_nothing(m: Measurements[Params]) -> Judgement:
    return m.every("tokens_apart", arm="exact").between(0, 0)


@part.claim(
    "N2",
    "The tokens that are noted during a prefill shared by all methods are those that GemFilter selects by itself.",
    source="control",
)
def watched_is_selected(m: Measurements[Params]) -> Judgement:
    return m.every("watched_apart", arm="exact").between(0, 0)
