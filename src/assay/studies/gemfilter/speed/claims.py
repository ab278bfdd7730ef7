"""The claims of the source about time and memory, as they are measured on a small random model."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from . import theory
from .arms import Params, part

KERNELS = "kernels differ in speed, which a count of operations leaves out"
CLOCK = "what a busy machine makes of two times of equal work"


@part.claim(
    "C3j",
    "In a random model of 8 layers GemFilter's first pass takes the share of full attention's reading time that its 3 "
    "layers predict, within 15 %.",
    source="Theorem 9.3, Figure 9.3",
    headline=True,
)
def prefill_time_falls(m: Measurements[Params]) -> Judgement:
    found = m.final("over_cost_model", arm="speed", against="full").named("measured over predicted share of the time")
    return found.equals(1, within=0.15, because=KERNELS)


@part.claim(
    "C3k",
    "In a random model of 8 layers GemFilter's first pass takes at most 1.15 times the share of SnapKV's reading time "
    "that its 3 layers predict.",
    source="Theorem 9.3, Figure 9.3",
)
def prefill_time_falls_from_snapkv(m: Measurements[Params]) -> Judgement:
    found = m.final("over_cost_model", arm="speed", against="snapkv")
    return found.named("measured over predicted share of SnapKV's time").at_most(1.15)


@part.claim(
    "C3l",
    "In a random model of 8 layers the first token of an answer comes sooner from GemFilter, both of its passes "
    "counted, than from full attention.",
    source="Section 9.3.2",
)
def first_token_is_sooner(m: Measurements[Params]) -> Judgement:
    return m.final("first_token_ratio", arm="speed", against="full").below(1)


@part.claim(
    "C3m",
    "In a random model of 8 layers decoding a token takes GemFilter as long as SnapKV with the same budget, within "
    "10 %.",
    source="Theorem 9.3, Figure 9.3",
)
def decoding_is_snapkvs(m: Measurements[Params]) -> Judgement:
    return m.final("token_ratio", arm="speed", against="snapkv").equals(1, within=0.1, because=CLOCK)


@part.claim(
    "C3n",
    "In a random model of 8 layers decoding a token behind a long prompt takes less time with GemFilter than with full "
    "attention.",
    source="Theorem 9.3, Figure 9.3",
    headline=True,
)
def decoding_is_faster(m: Measurements[Params]) -> Judgement:
    return m.final("token_ratio", arm="speed", against="full").below(1)


@part.claim(
    "C3o",
    "In a random model of 8 layers, loaded whole, GemFilter holds fewer bytes of tensors at its peak up to the first "
    "token than SnapKV.",
    source="Theorem 9.3, Figure 9.3",
)
def peak_is_below_snapkvs(m: Measurements[Params]) -> Judgement:
    return m.exact("peak_ratio", arm="speed", against="snapkv").below(1)


@part.claim(
    "C3p",
    "In a random model of 8 layers GemFilter's peak memory up to the first token lies below full attention's by the "
    "keys and values of all layers, or of all but one.",
    source="Theorem 9.3",
)
def peak_falls_by_the_cache(m: Measurements[Params]) -> Judgement:
    saved = m.exact("layers_saved", arm="speed").named("layers' keys and values saved at the peak")
    return saved.between(theory.LAYERS - 1, theory.LAYERS)


@part.claim(
    "N10",
    "In a random model of 8 layers reading the same prompt twice with full attention, side by side, takes the same "
    "time within 10 %.",
    source="control",
)
def the_clock_is_steady(m: Measurements[Params]) -> Judgement:
    found = m.final("prefill_ratio", arm="speed", against="itself").named("time of a prefill over its repetition's")
    return found.equals(1, within=0.1, because=CLOCK)
