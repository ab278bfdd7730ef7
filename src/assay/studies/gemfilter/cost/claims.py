"""The claims of the source about operations and memory, by the corrected table of costs."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, pick

from . import theory
from .arms import Params, part

IN_CONTEXT = {"a prompt length within 128k tokens": lambda p: min(p.cost_lengths) <= theory.CONTEXT}


def bytes_ratios(m: Measurements[Params], ours: str, theirs: str) -> list[Values]:
    """Prefill bytes of one method over another's, for each of the source's models."""
    n = theory.longest_read(m.params.cost_lengths)
    found = []
    for model in theory.MODELS:
        one, other = (m.final("prefill_bytes", arm="cost", model=model, length=n, method=x) for x in (ours, theirs))
        found.append((one / other).named(f"prefill bytes of {ours} over {theirs}, {model}"))
    return found


@part.claim(
    "C3d",
    "prefill operations fall by m/r and never by more: 2.46, 2.11 and 1.68 for the three models",
    source="Figure 9.3",
    printed="2.4 times faster for all three models",
    paper=2.4,
)
def speed_up_has_a_ceiling(m: Measurements[Params]) -> Judgement:
    return m.every("share_of_ceiling", arm="cost").between(0.95, 1)


@part.claim(
    "C3e",
    "prefill memory at 120k tokens, largest of the three models: with its own layers alone GemFilter takes at most "
    "70 % of SnapKV's (weights and caches)",
    source="Figure 9.3",
    when=IN_CONTEXT,
    printed="30 % less than SnapKV, whichever layers are loaded",
    paper=0.70,
)
def memory_falls(m: Measurements[Params]) -> Judgement:
    return pick(max, bytes_ratios(m, "filter only", "snapkv")).at_most(0.7)


@part.claim(
    "C3f",
    "with the whole model loaded the saving against SnapKV is below 10 % for all three models (weights and caches; "
    "activations can be cut for both)",
    source="Figure 9.3",
    when=IN_CONTEXT,
    printed="30 % less GPU memory than SnapKV",
    paper=0.70,
)
def resident_memory_hardly_falls(m: Measurements[Params]) -> Judgement:
    return pick(min, bytes_ratios(m, "gemfilter", "snapkv")).between(0.9, 1)


@part.claim(
    "C3h",
    "prefill memory at 120k tokens, largest of the three models: with its own layers alone GemFilter takes at most "
    "30 % of full attention's (weights and caches)",
    source="Figure 9.3",
    when=IN_CONTEXT,
    printed="prefill memory mw + 2mhd: an n is missing",
    paper=0.30,
)
def memory_falls_from_full(m: Measurements[Params]) -> Judgement:
    return pick(max, bytes_ratios(m, "filter only", "full")).at_most(0.3)
