"""Claims about the choice: it is reliable, and it is the one that this study uses."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C4e",
    "The filter layer that a few needle prompts choose for a real model keeps nine tenths of the needle's tokens in "
    "prompts held out.",
    source="Figure 9.5, Table 9.2",
)
def choice_is_reliable(m: Measurements[Params]) -> Judgement:
    return m.final("held_out_recall", arm="choice").named("share of the needle kept").at_least(0.9)


@part.claim(
    "N7",
    "Tuning prompts of every seed choose the filter layer that this study uses for its real model, within two layers.",
    source="control",
)
def tuned_layer(m: Measurements[Params]) -> Judgement:
    layer = m.params.filter_layer
    return m.every("chosen_layer", arm="choice").between(layer - 2, layer + 2)


@part.claim(
    "N9",
    "Tuning prompts of every seed choose to score tokens by the attention of the last rows of a real model, as this "
    "study does.",
    source="control",
    when={"the rule window": lambda p: p.filter_rule == "window"},
)
def tuned_rule(m: Measurements[Params]) -> Judgement:
    return m.every("chose_window", arm="choice").at_least(1)
