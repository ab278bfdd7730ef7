"""Which of the layers that were measured to take."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from assay.methods.gemfilter.adapter import attention_at, sliding_window
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.layers import stages_of


def usable_layers(model: nn.Module, base: GemFilter, length: int) -> list[int]:
    """Layers that see all that is read at once."""
    layout = base.layout(model, length)
    read = length if layout is None else layout.chunk_length
    usable = [i for i in attention_at(model) if (window := sliding_window(model, i)) is None or window >= read]
    if not usable:
        raise ValueError("every layer of this model has a sliding window shorter than the prompt: none can filter")
    return usable


def pick(recall: Tensor, usable: Sequence[int], reliability: float, place: str = "middle") -> tuple[int, int, bool]:
    """The rule, the layer and whether it qualifies, from recall (rules, layers, prompts)."""
    means, assured = recall.mean(dim=-1), _lower_end(recall)
    good = [[layer for layer in usable if assured[rule, layer] >= reliability] for rule in range(len(recall))]
    if not any(good):
        # Without a reliable layer the best one is taken, the earliest of equals.
        pairs = [(layer, rule) for layer in usable for rule in range(len(recall))]
        layer, rule = max(pairs, key=lambda pair: (float(means[pair[1], pair[0]]), -pair[0]))
        return rule, layer, False
    if place == "first":
        layer, rule = min((layers[0], rule) for rule, layers in enumerate(good) if layers)
        return rule, layer, True
    rule = max(range(len(good)), key=lambda one: len(good[one]))
    flags = [1.0 if layer in good[rule] else 0.0 for layer in range(recall.shape[1])]
    stage = [layer for layer, name in enumerate(stages_of(flags)) if name == "found"]
    middle = (stage[0] + stage[-1]) / 2
    return rule, min(good[rule], key=lambda layer: (abs(layer - middle), layer)), True


def _lower_end(recall: Tensor) -> Tensor:
    """The lower end of a one-sided 95 % Student interval of the mean over the last dimension."""
    from scipy.stats import t as student

    n = recall.shape[-1]
    margin: float = float(student.ppf(0.95, n - 1)) / n**0.5
    return recall.mean(dim=-1) - margin * recall.std(dim=-1)
