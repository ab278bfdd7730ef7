"""A real language model on needle prompts: which tokens each layer keeps, and what is answered from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import torch
from torch import Tensor

from assay.evaluation.needles import NeedlePrompt, needle_prompt
from assay.methods.gemfilter import GemFilter
from assay.networks.pretrained import Loaded
from assay.training.seeds import stream

from ..learners import Key, Read, Row, Rule, answers, blocks_touched, distance, random_positions, read, recall

RULES: tuple[Rule, ...] = get_args(Rule)
ROWS: Final = ("last", "middle", "largest")


@dataclass(frozen=True)
class Trial:
    """What is compared on a prompt: the chosen filter, the text's rule at its own best layer, and ablations.

    ``layers`` are filter layers whose answers are compared, with the chosen rule; empty where only methods are.
    ``chat`` wraps the prompts in the model's chat template."""

    layer: int
    rule: Rule
    text_layer: int
    layers: tuple[int, ...]
    new: int
    chat: bool = True

    def check(self, loaded: Loaded) -> None:
        """Refuse layers that the model does not have."""
        named = {"filter_layer": (self.layer,), "text_layer": (self.text_layer,), "scan_layers": self.layers}
        for name, layers in named.items():
            if beyond := [layer for layer in layers if layer >= loaded.layers]:
                raise ValueError(
                    f"{name} names layer {beyond[0]}, and {loaded.name} has {loaded.layers}: set all three for it"
                )

    def filters(self, layers: int, keep: int, question: int) -> dict[Key, GemFilter]:
        """Every layer under every rule; and the text's layer with the question kept, and with each row."""
        made: dict[Key, GemFilter] = {
            (rule, layer): GemFilter(layer=layer, keep=keep, rule=rule) for rule in RULES for layer in range(layers)
        }
        made["text rule, question kept"] = GemFilter(layer=self.text_layer, keep=keep, keep_last=question)
        return made | {("row", row): GemFilter(layer=self.text_layer, keep=keep, row=row) for row in ROWS}


@dataclass(frozen=True)
class Selected:
    """One prompt's selections, for a picture: the filter's (keep,), the share of SnapKV's heads that keep a token,
    (layers, n), and the needle's first and last position."""

    kept: Tensor
    heads: Tensor
    needle: Tensor


def prompt_of(loaded: Loaded, seed: int, length: int, depths: Sequence[float], *, chat: bool = True) -> NeedlePrompt:
    """A seed's prompt. Seeds take the depths in turn, so that as many seeds as depths have each of them once."""
    return needle_prompt(loaded.tokenizer, length, depths[seed % len(depths)], seed=100 * seed, chat=chat)


def needle_trial(
    loaded: Loaded, seeds: Sequence[int], length: int, depths: Sequence[float], trial: Trial
) -> list[tuple[list[Row], Selected]]:
    """Every measurement on the prompts of some seeds. Full attention, SnapKV, H2O and one-run share a prefill; these
    and all second runs are decoded together."""
    trial.check(loaded)
    prompts = [prompt_of(loaded, seed, length, depths, chat=trial.chat) for seed in seeds]
    ids = torch.tensor([prompt.input_ids for prompt in prompts], device=next(loaded.model.parameters()).device)
    keep, question = length // 8, min(32, length // 32)
    chosen = GemFilter(layer=trial.layer, keep=keep, rule=trial.rule)
    seen = read(loaded.model, ids, trial.filters(loaded.layers, keep, question), chosen)
    draws = [stream(seed, f"random selection {length}") for seed in seeds]
    drawn = torch.cat([random_positions(length, keep, draw, last=question) for draw in draws])
    kept = {**_compared(seen, trial), "random": drawn.to(ids.device)}
    if trial.layers:
        kept["without the needle"] = _without(kept["gemfilter"], prompts, draws)
        kept |= _ablations(seen, trial)
    answered = answers(loaded.model, seen, kept, trial.new)
    made = []
    for i, prompt in enumerate(prompts):
        right = {name: _right(loaded, prompt, tokens[i]) for name, tokens in answered.items()}
        right["row", "last"] = right["text rule"]
        places = {name: each[i] for name, each in seen.kept.items()}
        ours, theirs = places[trial.rule, trial.layer], seen.index_sets[i]
        rows: list[Row] = [Row({}, {"depth": prompt.depth}), *_method_rows(right)]
        rows += [*_ablation_rows(right, places, prompt, trial), *_scan_rows(places, prompt, loaded.layers)]
        rows += _selection_rows(ours, theirs, prompt, length)
        made.append((rows, _selected(ours, theirs, prompt, length, loaded.layers)))
    return made


def _compared(seen: Read, trial: Trial) -> dict[Key, Tensor]:
    """The selections of the chosen filter and of the text's rule."""
    return {
        "gemfilter": seen.kept[trial.rule, trial.layer],
        "text rule": seen.kept["logits", trial.text_layer],
        "text rule, question kept": seen.kept["text rule, question kept"],
    }


def _ablations(seen: Read, trial: Trial) -> dict[Key, Tensor]:
    """The selections of other layers under the chosen rule, and of other rows at the text's layer."""
    layers: dict[Key, Tensor] = {("layer", layer): seen.kept[trial.rule, layer] for layer in trial.layers}
    return layers | {("row", row): seen.kept["row", row] for row in ROWS if row != "last"}


def _right(loaded: Loaded, prompt: NeedlePrompt, tokens: Tensor) -> float:
    return float(prompt.right(loaded.tokenizer.decode(tokens, skip_special_tokens=True)))


def _without(kept: Tensor, prompts: Sequence[NeedlePrompt], draws: Sequence[torch.Generator]) -> Tensor:
    """The same selections with the needle's tokens exchanged for others: was it read, or guessed?"""
    made = []
    for places, prompt, draw in zip(kept.tolist(), prompts, draws, strict=True):
        needle = set(prompt.needle_at)
        left = [i for i in places if i not in needle]
        spare = [i for i in torch.randperm(len(prompt.input_ids), generator=draw).tolist() if i not in needle]
        spare = [i for i in spare if i not in set(left)]
        made.append(sorted([*left, *spare[: len(places) - len(left)]]))
    return torch.tensor(made, device=kept.device)


def _method_rows(right: dict[Key, float]) -> list[Row]:
    return [_answered({"method": name}, value) for name, value in right.items() if isinstance(name, str)]


def _answered(columns: dict[str, Any], right: float) -> Row:
    """Whether one prompt was answered."""
    return Row(columns, {"accuracy": right}, trials=1)


def _ablation_rows(right: dict[Key, float], kept: dict[Key, Tensor], prompt: NeedlePrompt, trial: Trial) -> list[Row]:
    if not trial.layers:
        return []
    rows = [_answered({"layer": layer}, right["layer", layer]) for layer in trial.layers]
    for row in ROWS:
        share = float(recall(kept["row", row], prompt.needle_at))
        rows += [
            _answered({"row": row}, right["row", row]),
            Row({"row": row}, {"row_recall": share}, trials=len(prompt.needle_at)),
        ]
    return rows


def _scan_rows(kept: dict[Key, Tensor], prompt: NeedlePrompt, layers: int) -> list[Row]:
    """Every layer under every rule: the share of the needle kept, whether the answer was, and the distance to it."""
    rows: list[Row] = []
    for layer in range(layers):
        for rule in RULES:
            places = kept[rule, layer]
            share = float(recall(places, prompt.needle_at))
            answer = float(recall(places, prompt.answer_at) == 1)
            apart = float(distance(places, prompt.needle_at))
            rows.append(Row({"rule": rule, "layer": layer}, {"recall": share}, trials=len(prompt.needle_at)))
            rows.append(Row({"rule": rule, "layer": layer}, {"coverage": answer}, trials=1))
            rows.append(Row({"rule": rule, "layer": layer}, {"distance": apart}))
    return rows


def _selection_rows(kept: Tensor, sets: Tensor, prompt: NeedlePrompt, n: int) -> list[Row]:
    """Needle recall and spread of an index set, the mean over a method's sets, and the spread of all together."""
    rows: list[Row] = []
    for method, places in (("gemfilter", kept[None]), ("snapkv", sets)):
        share = float(recall(places, prompt.needle_at).mean())
        rows.append(Row({"method": method}, {"needle_recall": share}, trials=len(places) * len(prompt.needle_at)))
        metrics = {
            "spread": float(blocks_touched(places, n).mean()),
            "spread_of_all": float(blocks_touched(places.reshape(1, -1), n)),
        }
        rows.append(Row({"method": method}, metrics))
    return rows


def _selected(kept: Tensor, sets: Tensor, prompt: NeedlePrompt, n: int, layers: int) -> Selected:
    by_layer = sets.reshape(layers, -1, sets.shape[-1])
    heads = torch.zeros(layers, by_layer.shape[1], n, device=sets.device).scatter(2, by_layer, 1.0).mean(dim=1)
    return Selected(kept, heads, torch.tensor([prompt.needle_at[0], prompt.needle_at[-1]]))
