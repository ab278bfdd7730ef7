"""The hand-set model on planted needles: every experiment of the source on a task whose answer is known exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay.methods.gemfilter import GemFilter
from assay.training.seeds import stream

from ..learners import Key, Row, anchored, answers, blocks_touched, distance, random_positions, read, recall
from .problem import Planted, PlantedNeedle
from .theory import FOUND, LAYERS, hand_set_model

NEW = 2
#: Tokens of a chunk, behind the prompt's first one (on which heads rest) and before its last ones (the question).
CHUNK, ANCHOR, TAIL = 128, 1, 16


def planted_rows(problem: PlantedNeedle, seed: int, depths: tuple[float, ...], count: int, device: str) -> list[Row]:
    """One seed's prompts, ``count`` for every depth: layers, rows, methods, selections."""
    prompts, model = problem.sample(seed, depths, count), hand_set_model(problem, device=device)
    ids, keep, found = prompts.ids.to(device), problem.length // 8, FOUND[problem.hops][0]
    chosen = GemFilter(layer=found, keep=keep)
    filters: dict[Key, GemFilter] = {("layer", i): chosen.at(i) for i in range(LAYERS)}
    filters |= {("row", row): GemFilter(layer=found, keep=keep, row=row) for row in ("middle", "largest")}
    seen = read(model, ids, filters, chosen)
    kept = {**seen.kept, **_controls(seed, prompts, keep, device)}
    right = {name: _right(tokens, prompts) for name, tokens in answers(model, seen, kept, NEW).items()}
    right["gemfilter"] = right["layer", found]
    missing = replace(problem, absent=True).sample(seed, depths, count)
    return [
        *_layer_rows(prompts, kept, right),
        *(_answered({"row": row}, right["row", row]) for row in ("middle", "largest")),
        _answered({"row": "last"}, right["gemfilter"]),
        *_method_rows(prompts, right, depths),
        *_selection_rows(prompts, kept["layer", found], seen.index_sets, problem.length),
        _answered({"method": "absent"}, _absent(chosen, model, missing, device)),
    ]


def chunked_rows(problem: PlantedNeedle, seed: int, depths: tuple[float, ...], count: int, device: str) -> list[Row]:
    """The same prompts read whole and in chunks by the layer that finds them: is the value kept, and answered?"""
    prompts, model = problem.sample(seed, depths, count), hand_set_model(problem, device=device)
    whole = GemFilter(layer=FOUND[problem.hops][0], keep=problem.length // 8)
    rows: list[Row] = []
    cut = anchored(replace(whole, chunk=CHUNK, tail=TAIL), ANCHOR)
    for method, chosen in {"whole": whole, "chunks": cut}.items():
        selection = chosen.select(model, prompts.ids)
        made = chosen.answer(model, selection, prompts.ids, max_new_tokens=NEW, do_sample=False)
        found = [selection.recall(value, row) == 1 for row, value in enumerate(prompts.answer_at.tolist())]
        rows.append(_answered({"method": method}, torch.tensor(found).float(), "coverage"))
        rows.append(_answered({"method": method}, _right(made[:, -NEW:], prompts)))
    return rows


def _answered(columns: dict[str, Any], right: Tensor, metric: str = "accuracy") -> Row:
    """The share of prompts that were answered, of ``right`` (prompts,)."""
    return Row(columns, {metric: right.mean().item()}, trials=len(right))


def _right(tokens: Tensor, prompts: Planted) -> Tensor:
    """Whether both tokens of the value were given: (prompts,)."""
    return (tokens.cpu() == prompts.answer).all(dim=1).float()


def _controls(seed: int, prompts: Planted, keep: int, device: str) -> dict[Key, Tensor]:
    """As many tokens at random (with the question), and the first ones, which the printed listing returns."""
    n, count = prompts.ids.shape[1], len(prompts)
    draws = [random_positions(n, keep, stream(seed, f"random {i}"), last=2) for i in range(count)]
    first = torch.cat([torch.arange(keep - 2), torch.arange(n - 2, n)]).expand(count, -1)
    return {"random": torch.cat(draws).to(device), "listing": first.to(device)}


def _layer_rows(prompts: Planted, kept: dict[Key, Tensor], right: dict[Key, Tensor]) -> list[Row]:
    rows: list[Row] = []
    covered = torch.zeros(LAYERS, len(prompts))
    for layer in range(LAYERS):
        places = kept["layer", layer].cpu()
        for i, value in enumerate(prompts.answer_at.tolist()):
            covered[layer, i] = float(recall(places[i], value) == 1)
        shares = [float(recall(places[i], needle)) for i, needle in enumerate(prompts.needle_at)]
        apart = [float(distance(places[i], value)) for i, value in enumerate(prompts.answer_at.tolist())]
        rows.append(_answered({"layer": layer}, covered[layer], "coverage"))
        tokens = sum(map(len, prompts.needle_at))
        rows.append(Row({"layer": layer}, {"recall": sum(shares) / len(shares)}, trials=tokens))
        rows.append(Row({"layer": layer}, {"distance": sum(apart) / len(apart)}))
        rows.append(_answered({"layer": layer}, right["layer", layer]))
    # The end of the prompt is kept by every layer, so that a value which stands there says nothing about layers.
    inner = [i for i, depth in enumerate(prompts.depth.tolist()) if depth < 1]
    firsts = [int(covered[:, i].argmax()) if covered[:, i].any() else -1 for i in inner]
    common = max(set(firsts), key=firsts.count)
    rows.append(Row({}, {"first_layer": common}))
    rows.append(Row({}, {"first_layer_share": firsts.count(common) / len(firsts)}, trials=len(firsts)))
    return rows


def _method_rows(prompts: Planted, right: dict[Key, Tensor], depths: tuple[float, ...]) -> list[Row]:
    rows: list[Row] = []
    for method in ("full", "snapkv", "h2o", "one-run", "gemfilter", "random", "listing"):
        rows.append(_answered({"method": method}, right[method]))
        for depth in depths:
            cell = right[method][prompts.depth == depth]
            rows.append(_answered({"method": method, "depth": depth}, cell, "cell_accuracy"))
    return rows


def _selection_rows(prompts: Planted, kept: Tensor, sets: Tensor, length: int) -> list[Row]:
    """Needle recall and spread of an index set, on average over sets and prompts."""
    made: list[Row] = []
    for method, places in (("gemfilter", kept[:, None].cpu()), ("snapkv", sets.cpu())):
        shares = [float(recall(places[i], needle).mean()) for i, needle in enumerate(prompts.needle_at)]
        spread = float(blocks_touched(places, length).mean())
        tokens = places.shape[1] * sum(map(len, prompts.needle_at))
        made.append(Row({"method": method}, {"needle_recall": sum(shares) / len(shares)}, trials=tokens))
        made.append(Row({"method": method}, {"spread": spread}))
    return made


def _absent(chosen: GemFilter, model: Any, missing: Planted, device: str) -> Tensor:
    """Whether GemFilter answers when the facts about the asked key are missing: nothing is left to find."""
    made = chosen.generate(model, missing.ids.to(device), max_new_tokens=NEW, do_sample=False)
    return _right(made[:, -NEW:], missing)
