"""A real language model, and the filter layer and rule that tuning prompts choose for it."""

from __future__ import annotations

from functools import lru_cache

from assay.evaluation.prose import manual_text
from assay.methods.gemfilter import choose_filter_layer
from assay.networks.pretrained import Loaded, load_model

from ..learners import Row

#: Prompts on which layers are chosen come from seeds that no evaluation uses.
TUNING_SEED = 9000


@lru_cache(maxsize=1)
def loaded_model(name: str, device: str) -> Loaded:
    """The model, read once per process and not once per unit."""
    return load_model(name, device=device)


def choice_rows(loaded: Loaded, seed: int, length: int, prompts: int) -> list[Row]:
    """The first layer that tuning prompts find reliable, as the source takes it, judged on other tuning prompts. Needle
    and text are those of the evaluation, and the same on every machine."""
    choice = choose_filter_layer(
        loaded.model,
        loaded.tokenizer,
        keep=length // 8,
        length=length,
        prompts=prompts,
        texts={"manual": manual_text()},
        needles=("ingredient",),
        rules=("logits", "window"),
        place="first",
        seed=TUNING_SEED + seed,
        remember=False,
        warn=False,
    )
    rows: list[Row] = [
        Row({"rule": rule, "layer": layer}, {"tuning_recall": value})
        for rule, values in choice.recall.items()
        for layer, value in enumerate(values)
    ]
    return [
        *rows,
        Row({}, {"chosen_layer": float(choice.layer), "held_out_recall": choice.held_out_recall}),
        Row({}, {"chose_window": float(choice.rule == "window")}, trials=1),
        Row({}, {"held_out_coverage": choice.held_out_coverage}, trials=choice.prompts),
    ]
