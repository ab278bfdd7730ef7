"""A real language model on needle prompts: which tokens each layer keeps, and what is answered from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from assay.methods.gemfilter import GemFilter, NeedlePrompt, choose_filter_layer, load_model, needle_prompt
from assay.methods.gemfilter.models import Loaded
from assay.methods.gemfilter.scoring import RULES
from assay.training.seeds import stream

from .learners import Row, answers, distance, mean_rows, random_positions, read, recall
from .problem import blocks_touched

#: Prompts on which layers are chosen come from seeds that no evaluation uses.
TUNING_SEED = 9000
ROWS = ("last", "middle", "largest")


@dataclass(frozen=True)
class Trial:
    """What is compared on a prompt: the chosen filter, the text's rule at its own best layer, and ablations.

    ``layers`` are filter layers whose answers are compared, with the chosen rule; empty where only methods are."""

    layer: int
    rule: str
    text_layer: int
    layers: tuple[int, ...]
    new: int


@lru_cache(maxsize=1)
def loaded_model(name: str, device: str) -> Loaded:
    """The model, read once per process and not once per unit."""
    return load_model(name, device=device)


def prompts_of(loaded: Loaded, seed: int, length: int, depths: tuple[float, ...], count: int) -> list[NeedlePrompt]:
    """A seed's prompts: ``count`` for every depth."""
    return [
        needle_prompt(loaded.tokenizer, length, depth, seed=100 * seed + i) for depth in depths for i in range(count)
    ]


@dataclass(frozen=True)
class Selected:
    """One prompt's selections, for a picture: the filter's (keep,), the share of SnapKV's heads that keep a token,
    (layers, n), and the needle's first and last position."""

    kept: Tensor
    heads: Tensor
    needle: Tensor


def needle_rows(loaded: Loaded, prompt: NeedlePrompt, trial: Trial, seed: int) -> tuple[list[Row], Selected]:
    """Every measurement on one prompt. Full attention, SnapKV, H2O and one-run share its prefill; these and all second
    runs are decoded together."""
    device = next(loaded.model.parameters()).device
    ids = torch.tensor([prompt.input_ids], device=device)
    n = ids.shape[1]
    keep, question = n // 8, min(32, n // 32)
    chosen = GemFilter(layer=trial.layer, keep=keep, rule=trial.rule)  # type: ignore[arg-type]
    text = GemFilter(layer=trial.text_layer, keep=keep)
    filters: dict[Any, GemFilter] = {
        (rule, layer): GemFilter(layer=layer, keep=keep, rule=rule)  # type: ignore[arg-type]
        for rule in RULES
        for layer in range(loaded.layers)
    }
    filters["text rule, question kept"] = GemFilter(layer=text.layer, keep=keep, keep_last=question)
    filters |= {("row", row): GemFilter(layer=text.layer, keep=keep, row=row) for row in ROWS}
    seen = read(loaded.model, ids, filters, chosen)
    draw = stream(seed, f"random selection {n} {prompt.depth}")
    kept: dict[Any, Tensor] = {
        "gemfilter": seen.kept[trial.rule, trial.layer],
        "text rule": seen.kept["logits", trial.text_layer],
        "text rule, question kept": seen.kept["text rule, question kept"],
        "random": random_positions(n, keep, draw, last=question).to(device),
    }
    if trial.layers:
        kept["without the needle"] = _without(kept["gemfilter"], prompt, n, draw)
        kept |= {("layer", layer): seen.kept[trial.rule, layer] for layer in trial.layers}
        kept |= {("row", row): seen.kept["row", row] for row in ROWS if row != "last"}
    answered = answers(loaded.model, seen, kept, trial.new)
    right = {name: _right(loaded, prompt, tokens) for name, tokens in answered.items()}
    right["row", "last"] = right["text rule"]
    rows = [*_method_rows(right), *_ablation_rows(right, seen.kept, prompt, trial), *_scan_rows(seen.kept, prompt)]
    rows += _selection_rows(seen.kept[trial.rule, trial.layer], seen.index_sets, prompt, n)
    return rows, _selected(kept["gemfilter"], seen.index_sets, prompt, n, loaded.layers)


def _right(loaded: Loaded, prompt: NeedlePrompt, tokens: Tensor) -> float:
    return float(prompt.right(loaded.tokenizer.decode(tokens[0], skip_special_tokens=True)))


def _without(kept: Tensor, prompt: NeedlePrompt, n: int, draw: torch.Generator) -> Tensor:
    """The same selection with the needle's tokens exchanged for others: was it read, or guessed?"""
    needle = set(prompt.needle_at)
    left = [i for i in kept[0].tolist() if i not in needle]
    spare = [i for i in torch.randperm(n, generator=draw).tolist() if i not in needle and i not in set(left)]
    places = sorted([*left, *spare[: kept.shape[1] - len(left)]])
    return torch.tensor([places], device=kept.device)


def _method_rows(right: dict[Any, float]) -> list[Row]:
    return [({"method": name}, {"accuracy": value}) for name, value in right.items() if isinstance(name, str)]


def _ablation_rows(right: dict[Any, float], kept: dict[Any, Tensor], prompt: NeedlePrompt, trial: Trial) -> list[Row]:
    if not trial.layers:
        return []
    rows: list[Row] = [({"layer": layer}, {"accuracy": right["layer", layer]}) for layer in trial.layers]
    for row in ROWS:
        share = float(recall(kept["row", row][0], prompt.needle_at))
        rows.append(({"row": row}, {"accuracy": right["row", row], "row_recall": share}))
    return rows


def _scan_rows(kept: dict[Any, Tensor], prompt: NeedlePrompt) -> list[Row]:
    """Every layer under every rule: the share of the needle kept, whether the answer was, and the distance to it."""
    rows: list[Row] = []
    for key, places in kept.items():
        if key[0] not in RULES:
            continue
        share = float(recall(places[0], prompt.needle_at))
        answer = float(recall(places[0], prompt.answer_at) == 1)
        apart = float(distance(places[0], prompt.needle_at))
        rows.append(({"rule": key[0], "layer": key[1]}, {"recall": share, "coverage": answer, "distance": apart}))
    return rows


def _selection_rows(kept: Tensor, sets: Tensor, prompt: NeedlePrompt, n: int) -> list[Row]:
    """Needle recall and spread of an index set, the mean over a method's sets, and the spread of all together."""
    rows: list[Row] = []
    for method, places in (("gemfilter", kept), ("snapkv", sets[0])):
        metrics = {
            "needle_recall": float(recall(places, prompt.needle_at).mean()),
            "spread": float(blocks_touched(places, n).mean()),
            "spread_of_all": float(blocks_touched(places.reshape(1, -1), n)),
        }
        rows.append(({"method": method}, metrics))
    return rows


def _selected(kept: Tensor, sets: Tensor, prompt: NeedlePrompt, n: int, layers: int) -> Selected:
    by_layer = sets[0].reshape(layers, -1, sets.shape[-1])
    heads = torch.zeros(layers, by_layer.shape[1], n, device=sets.device).scatter(2, by_layer, 1.0).mean(dim=1)
    return Selected(kept[0], heads, torch.tensor([prompt.needle_at[0], prompt.needle_at[-1]]))


def needle_trial(
    loaded: Loaded, seed: int, length: int, depths: tuple[float, ...], count: int, trial: Trial
) -> tuple[list[Row], Selected]:
    """One seed: means over its prompts, the accuracy of every depth, and the selections of the middle prompt."""
    prompts = prompts_of(loaded, seed, length, depths, count)
    made = [needle_rows(loaded, prompt, trial, seed) for prompt in prompts]
    rows = mean_rows([rows for rows, _ in made])
    for depth in depths:
        cell = mean_rows([_cell(one[0]) for one, prompt in zip(made, prompts, strict=True) if prompt.depth == depth])
        rows += [({**columns, "depth": depth}, {"cell_accuracy": values["accuracy"]}) for columns, values in cell]
    return rows, made[len(made) // 2][1]


def _cell(rows: list[Row]) -> list[Row]:
    return [row for row in rows if "method" in row[0] and "accuracy" in row[1]]


def choice_rows(loaded: Loaded, seed: int, length: int, prompts: int) -> list[Row]:
    """The layer and rule that tuning prompts choose, judged on other tuning prompts."""
    choice = choose_filter_layer(
        loaded.model, loaded.tokenizer, keep=length // 8, length=length, prompts=prompts, rules=("logits", "window"),
        seed=TUNING_SEED + seed, remember=False,
    )  # fmt: skip
    rows: list[Row] = [
        ({"rule": rule, "layer": layer}, {"tuning_recall": value})
        for rule, values in choice.recall.items()
        for layer, value in enumerate(values)
    ]
    found = {
        "chosen_layer": float(choice.layer),
        "chose_window": float(choice.rule == "window"),
        "held_out_recall": choice.held_out_recall,
        "held_out_coverage": choice.held_out_coverage,
    }
    return [*rows, ({}, found)]
