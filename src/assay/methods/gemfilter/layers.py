"""Which layer should filter? Measured on needle prompts: one forward pass scores every layer under every rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from assay._extras import extra
from assay.evaluation.needles import NeedlePrompt, needle_prompt
from assay.methods._checks import whole
from assay.methods.gemfilter.adapter import (
    Projected,
    attentions_of,
    check_usable,
    read_layers,
    sliding_window,
)
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.prompts import Prompt
from assay.methods.gemfilter.scoring import RULES, best_positions
from assay.networks.pretrained import cache_folder, context_length

STAGES = ["search", "found", "answer"]
#: The mean share of the needle's tokens from which on a layer has found it.
FOUND = 0.9


@dataclass(frozen=True)
class LayerScan:
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
    prompts: Sequence[NeedlePrompt],
    *,
    keep: int,
    rules: Sequence[str] = RULES,
    base: GemFilter | None = None,
    progress: Callable[[str], None] | None = None,
) -> LayerScan:
    """Recall of the needle at every layer under every rule. One forward pass per prompt."""
    check_usable(model)
    base = base or GemFilter(layer=0, keep=keep)
    if base.row != "last":
        raise ValueError(f"layers are compared by their last rows; row={base.row!r} is for one layer that you name")
    filters = [replace(base, keep=keep, rule=rule) for rule in rules]  # type: ignore[arg-type]
    layers = list(range(len(attentions_of(model))))
    shape = (len(filters), len(layers), len(prompts))
    scan = LayerScan(tuple(rules), torch.zeros(shape), torch.zeros(shape), torch.zeros(shape))
    device = next(model.parameters()).device
    for number, needle in enumerate(prompts):
        if progress is not None:
            progress(f"needle prompt {number + 1} of {len(prompts)}")
        prompt = Prompt(torch.tensor([needle.input_ids], device=device))
        n = prompt.input_ids.shape[1]
        rows = torch.arange(max(0, n - base.window), n, device=device)[None]

        def take(layer: int, projected: Projected, number: int = number, prompt: Prompt = prompt) -> None:
            for which, chosen in enumerate(filters):
                scores = chosen.scores_of(projected, prompt)[0]
                forced = {"keep_first": chosen.keep_first, "keep_last": chosen.keep_last}
                kept = set(best_positions(scores, keep, **forced).tolist())
                needle = prompts[number]
                scan.recall[which, layer, number] = len(kept & set(needle.needle_at)) / len(needle.needle_at)
                scan.covered[which, layer, number] = float(kept >= set(needle.answer_at))
                scan.distance[which, layer, number] = min(abs(i - j) for i in needle.needle_at for j in kept)

        read_layers(model, prompt.input_ids, None, layers, rows, take, mlp_chunk=base.mlp_chunk)
    return scan


@dataclass(frozen=True)
class LayerChoice:
    """The chosen layer and rule, and how far to trust them: the share of the needle's tokens that were kept, and the
    share of prompts whose answer was kept whole, on prompts that had no part in the choice."""

    layer: int
    rule: str
    keep: int
    length: int
    layers: int
    reliability: float
    held_out_recall: float
    held_out_coverage: float
    calibrated: bool
    prompts: int
    recall: dict[str, list[float]] = field(repr=False)

    def filter(self, **options: Any) -> GemFilter:
        """The filter that was chosen."""
        return GemFilter(**{"layer": self.layer, "keep": self.keep, "rule": self.rule, **options})

    def sentence(self) -> str:
        """The choice for a person to read."""
        trust = f"kept {self.held_out_recall:.0%} of the needle's tokens in {self.prompts} held-out prompts"
        text = (
            f"layer {self.layer} of 0 to {self.layers - 1} with the rule '{self.rule}' {trust} of {self.length} tokens"
        )
        return text if self.calibrated else f"no layer kept {self.reliability:.0%} of the needles; the best, {text}"


def choose_filter_layer(
    model: nn.Module,
    tokenizer: Any,
    *,
    keep: int = 1024,
    length: int | None = None,
    prompts: int = 16,
    rules: Sequence[str] = ("logits", "window"),
    reliability: float = 0.9,
    seed: int = 0,
    base: GemFilter | None = None,
    remember: bool = True,
    progress: Callable[[str], None] | None = None,
) -> LayerChoice:
    """The first layer that keeps at least ``reliability`` of the needles' tokens, over a set of needle prompts.

    Half of the prompts choose, the other half say how far the choice can be trusted. A layer qualifies when the lower
    end of a 95 % interval of its mean recall does: among many layers and rules the best of a few prompts is otherwise
    often luck. ``length`` is that of the prompts: eight times ``keep`` unless the model's context is shorter. Of two
    rules that reach it at the same layer the earlier in ``rules`` wins. The choice is remembered in the cache folder,
    per model, tokenizer and settings.
    """
    whole("prompts", prompts, 4)  # half of them choose, half judge, and an interval needs two
    length = length or min(8 * keep, context_length(model, 8 * keep))
    if length <= keep:
        raise ValueError(f"prompts of {length} tokens have nothing to filter at keep = {keep}: give a longer length")
    settings = {
        "keep": keep,
        "length": length,
        "prompts": prompts,
        "rules": list(rules),
        "reliability": reliability,
        "seed": seed,
        "base": asdict(base) if base else None,
    }
    known = _Remembered(model, tokenizer, settings)
    if remember and (choice := known.read()) is not None:
        return choice
    with extra("lab", "the choice of the filter layer"):  # said before the prompts are read, which takes minutes
        import scipy.stats  # noqa: F401
    depths = [(i + 0.5) / prompts for i in range(prompts)]
    made = [needle_prompt(tokenizer, length, depth, seed=seed * 1000 + i) for i, depth in enumerate(depths)]
    scan = layer_scan(model, made, keep=keep, rules=rules, base=base, progress=progress)
    choice = _choose(scan, model, keep, length, reliability)
    if remember:
        known.write(choice)
    return choice


def measured_length(model: nn.Module, length: int) -> int:
    """The length at which a layer is measured for prompts of ``length`` tokens: the next power of two within the
    model's context, so that prompts of about one length share a choice."""
    return min(1 << (length - 1).bit_length(), context_length(model, length))


def _choose(scan: LayerScan, model: nn.Module, keep: int, length: int, reliability: float) -> LayerChoice:
    """Even-numbered prompts choose, odd-numbered ones judge, so that both see every depth."""
    layers = scan.recall.shape[1]
    usable = [i for i in range(layers) if (window := sliding_window(model, i)) is None or window >= length]
    if not usable:
        raise ValueError("every layer of this model has a sliding window shorter than the prompt: none can filter")
    calibrate = scan.recall[..., 0::2].mean(dim=-1)
    assured = _lower_end(scan.recall[..., 0::2])
    candidates = [(i, which) for i in usable for which in range(len(scan.rules))]
    good = [pair for pair in candidates if assured[pair[1], pair[0]] >= reliability]
    # Without a reliable layer the best one is taken, the earliest of equals.
    layer, which = good[0] if good else max(candidates, key=lambda pair: (float(calibrate[pair[1], pair[0]]), -pair[0]))
    held = scan.recall[which, layer, 1::2]
    return LayerChoice(
        layer=layer,
        rule=scan.rules[which],
        keep=keep,
        length=length,
        layers=layers,
        reliability=reliability,
        held_out_recall=float(held.mean()),
        held_out_coverage=float(scan.covered[which, layer, 1::2].mean()),
        calibrated=bool(good),
        prompts=held.numel(),
        recall={rule: scan.of(rule).mean(dim=1).tolist() for rule in scan.rules},
    )


def _lower_end(recall: Tensor) -> Tensor:
    """The lower end of a one-sided 95 % Student interval of the mean over the last dimension."""
    from scipy.stats import t as student

    n = recall.shape[-1]
    margin: float = float(student.ppf(0.95, n - 1)) / n**0.5
    return recall.mean(dim=-1) - margin * recall.std(dim=-1)


class _Remembered:
    """Choices on disk, one small file per model and settings."""

    def __init__(self, model: nn.Module, tokenizer: Any, settings: dict[str, Any]) -> None:
        text = json.dumps([fingerprint(model), _words(tokenizer), settings], sort_keys=True, default=str)
        name = hashlib.blake2b(text.encode(), digest_size=10).hexdigest()
        self.path: Path = cache_folder() / "filter_layers" / f"{name}.json"

    def read(self) -> LayerChoice | None:
        try:
            return LayerChoice(**json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, choice: LayerChoice) -> None:
        """A choice that cannot be remembered is still a choice."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(asdict(choice)))
        except OSError:
            return


def fingerprint(model: nn.Module) -> str:
    """Tells models apart: configuration, and numbers from all over every parameter, so that training any part shows."""
    config: Any = model.config
    digest = hashlib.blake2b(config.to_json_string(use_diff=False).encode(), digest_size=12)
    for name, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        places = torch.linspace(0, max(len(flat) - 1, 0), min(len(flat), 64), dtype=torch.float64).round().long()
        digest.update(name.encode() + flat[places.to(flat.device)].float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _words(tokenizer: Any) -> str:
    """Tells tokenizers apart: the prompts that measured a layer are made of its tokens."""
    parts = [type(tokenizer).__name__, getattr(tokenizer, "chat_template", None)]
    if hasattr(tokenizer, "get_vocab"):
        parts.append(sorted(tokenizer.get_vocab().items()))
    text = json.dumps(parts, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
