"""Claims about the choice: it is reliable, and it is the one that this study uses."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C4e",
    "real model: choose_filter_layer finds a layer whose recall on held-out prompts is 0.9",
    source="Figure 9.5, Table 9.2",
)
def choice_is_reliable(m: Measurements[Params]) -> Judgement:
    return m.final("held_out_recall", arm="choice").at_least(0.9)


@part.claim("N7", "real model: tuning prompts choose the layer of this study, within two layers", source="control")
def tuned_layer(m: Measurements[Params]) -> Judgement:
    layer = m.params.filter_layer
    return m.every("chosen_layer", arm="choice").between(layer - 2, layer + 2)


@part.claim(
    "N9",
    "real model: tuning prompts choose the rule of this study too",
    source="control",
    when={"the rule window": lambda p: p.filter_rule == "window"},
)
def tuned_rule(m: Measurements[Params]) -> Judgement:
    return m.every("chose_window", arm="choice").at_least(1)
