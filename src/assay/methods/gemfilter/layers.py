"""What would every layer keep? One forward pass over a needle prompt scores all layers under all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, curves
from assay.evaluation.needles import NeedlePrompt
from assay.methods.gemfilter.adapter import Projected, attention_at, check_usable, layers_of, read_layers
from assay.methods.gemfilter.calibration import check_prompts, listed
from assay.methods.gemfilter.chunks import Joined, Layout, read_chunks
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.prompts import Prompt
from assay.methods.gemfilter.scoring import RULES

STAGES = ["search", "found", "answer"]
#: The mean share of the needle's tokens from which on a layer has found it.
FOUND = 0.9


@dataclass(frozen=True, repr=False)
class LayerScan(Report):
    """What every layer would have kept: tensors (rules, layers, prompts).

    ``recall`` is the share of the needle's tokens that were kept, ``covered`` whether all tokens of the answer were,
    and ``distance`` how far the nearest kept token lies from the needle (0 when it was hit).
    """

    rules: tuple[str, ...]
    recall: Tensor
    covered: Tensor
    distance: Tensor

    def of(self, rule: str, what: str = "recall") -> Tensor:
        """One rule's table, (layers, prompts)."""
        table: Tensor = getattr(self, what)[self.rules.index(rule)]
        return table

    def stages(self, rule: str, found: float = FOUND) -> list[str]:
        """The stage of every layer under a rule, by its mean recall."""
        return stages_of(self.of(rule).mean(dim=1).tolist(), found)

    def best_rule(self, found: float = FOUND) -> str:
        """The rule that finds the needle in most layers; of equals the one with the higher recall on average."""
        means = {rule: self.of(rule).mean(dim=1) for rule in self.rules}
        return max(self.rules, key=lambda rule: (int((means[rule] >= found).sum()), float(means[rule].mean())))

    def sentence(self) -> str:
        """The three stages by the best rule, for a person to read."""
        rule = self.best_rule()
        stages = self.stages(rule)
        spans = [
            f"{name} in layers {stages.index(name)} to {len(stages) - 1 - stages[::-1].index(name)}"
            for name in dict.fromkeys(stages)
        ]
        return f"{', '.join(spans)} by the rule '{rule}'"

    def headline(self) -> str:
        return self.sentence()

    def table(self) -> list[dict[str, Any]]:
        """A row for every rule and layer: means over the prompts, and the layer's stage."""
        means = {what: getattr(self, what).mean(dim=2) for what in ("recall", "covered", "distance")}
        return [
            {"rule": rule, "layer": layer, "stage": stage}
            | {what: float(table[number, layer]) for what, table in means.items()}
            for number, rule in enumerate(self.rules)
            for layer, stage in enumerate(self.stages(rule))
        ]

    def figure(self) -> Any:
        """Recall by layer, a line for each rule."""
        return curves(self.table(), "layer", "recall", "rule", recall="share of the needle's tokens kept")

    def summary(self) -> dict[str, Any]:
        """Mean recall per layer under every rule, and the stages by the best one."""
        recall = {rule: self.of(rule).mean(dim=1).tolist() for rule in self.rules}
        rule = self.best_rule()
        return {"rule": rule, "stages": self.stages(rule), "recall": recall}


def stages_of(recall: Sequence[float], found: float = FOUND) -> list[str]:
    """The stage of every layer: ``search``, then ``found``, then ``answer``.

    Found is the stretch in which layers of at least that recall outnumber the others by most, the longest of equals: a
    short dip belongs to it, and one early layer that finds by luck does not begin it.
    """
    signs = [1 if share >= found else -1 for share in recall]
    ends = [(i, j) for i in range(len(signs)) for j in range(i, len(signs)) if signs[i] > 0 and signs[j] > 0]
    if not ends:
        return ["search"] * len(recall)
    first, last = max(ends, key=lambda end: (sum(signs[end[0] : end[1] + 1]), end[1] - end[0]))
    return ["search" if i < first else "found" if i <= last else "answer" for i in range(len(recall))]


def layer_scan(
    model: nn.Module,
    prompts: Iterable[NeedlePrompt],
    *,
    keep: int | float,
    rules: str | Sequence[str] = RULES,
    base: GemFilter | None = None,
    progress: Callable[[str], None] | None = None,
) -> LayerScan:
    """Recall of the needle at every layer under every rule. One forward pass per prompt; in chunks where ``base``
    reads in chunks. A layer without attention keeps nothing."""
    check_usable(model)
    rules, prompts = listed("rule", rules, str), listed("prompt", prompts, NeedlePrompt)
    check_prompts(prompts)
    filters = filters_of(base, keep, rules)
    layers = list(attention_at(model))
    shape = (len(filters), len(layers_of(model)), len(prompts))
    scan = LayerScan(tuple(rules), torch.zeros(shape), torch.zeros(shape), torch.zeros(shape))
    for number, needle in enumerate(prompts):
        if progress is not None:
            progress(f"needle prompt {number + 1} of {len(prompts)}")
        for table, column in zip(
            (scan.recall, scan.covered, scan.distance), kept_by(model, needle, filters, layers), strict=True
        ):
            table[:, layers, number] = column
    return scan


def filters_of(
    base: GemFilter | None, keep: float, rules: Sequence[str], kernels: int | Sequence[int] | None = None
) -> list[GemFilter]:
    """A filter for every rule and width of pooling (the base's own where none is given), each with the base's other
    options."""
    base = base or GemFilter(layer=0, keep=keep)
    if base.row != "last":
        raise ValueError(f"layers are compared by their last rows; row={base.row!r} is for one layer that you name")
    widths = listed("width of pooling", kernels, Integral) if kernels else [base.kernel]
    return [
        replace(base, keep=keep, rule=rule, kernel=kernel)  # type: ignore[arg-type]
        for rule in rules
        for kernel in widths
    ]


def kept_by(
    model: nn.Module, needle: NeedlePrompt, filters: Sequence[GemFilter], layers: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Recall, coverage and distance of one prompt, (filters, layers) each: no layer above the last one runs."""
    prompt = Prompt(torch.tensor([needle.input_ids], device=next(model.parameters()).device))
    found = [torch.zeros(len(filters), len(layers)) for _ in range(3)]

    def note(which: int, layer: int, scores: Tensor) -> None:
        chosen, wanted = filters[which], set(needle.needle_at)
        kept = set(chosen.best(scores).tolist())
        place = which, layers.index(layer)
        found[0][place] = len(kept & wanted) / len(wanted)
        found[1][place] = float(kept >= set(needle.answer_at))
        found[2][place] = min(abs(i - j) for i in wanted for j in kept)

    layout = filters[0].layout(model, len(needle.input_ids))
    if layout is None:
        _whole(model, prompt, filters, layers, note)
    else:
        _in_chunks(model, prompt, layout, filters, layers, note)
    return found[0], found[1], found[2]


Note = Callable[[int, int, Tensor], None]


def _whole(model: nn.Module, prompt: Prompt, filters: Sequence[GemFilter], layers: Sequence[int], note: Note) -> None:
    n, window = prompt.input_ids.shape[1], filters[0].window
    rows = torch.arange(max(0, n - window), n, device=prompt.input_ids.device)[None]

    plain = {one.rule: replace(one, pooling=None) for one in filters}

    def take(layer: int, projected: Projected) -> None:
        raw = {rule: one.scores_of(projected, prompt)[0] for rule, one in plain.items()}
        for which, chosen in enumerate(filters):
            note(which, layer, chosen.pooled(raw[chosen.rule]))

    read_layers(model, prompt.input_ids, None, layers, rows, take, mlp_chunk=filters[0].mlp_chunk)


def _in_chunks(
    model: nn.Module,
    prompt: Prompt,
    layout: Layout,
    filters: Sequence[GemFilter],
    layers: Sequence[int],
    note: Note,
) -> None:
    rules = {one.rule for one in filters}
    joined = {(rule, layer): Joined(rule, layout) for rule in rules for layer in layers}

    def take(layer: int, _: int, number: int, projected: Projected) -> None:
        for rule in rules:
            joined[rule, layer].add(number, projected)

    first = filters[0]
    options = {"memory": first.chunk_memory, "mlp_chunk": first.mlp_chunk}
    read_chunks(model, prompt, [layout], layers, first.window, take, **options)  # type: ignore[arg-type]
    for (rule, layer), part in joined.items():
        raw = part.scores()
        for which, one in enumerate(filters):
            if one.rule == rule:
                note(which, layer, one.pooled(raw))
