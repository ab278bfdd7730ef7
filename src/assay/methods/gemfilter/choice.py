"""Which layer should filter? Chosen on needle prompts, and judged on others, with other texts and wordings."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import torch
from torch import nn

from assay._extras import extra
from assay._reports import Report, curves
from assay.evaluation.needle_kinds import Needle
from assay.evaluation.needles import NeedlePrompt
from assay.methods._checks import one_of
from assay.methods.gemfilter.adapter import attention_at, check_usable, layers_of
from assay.methods.gemfilter.calibration import Calibration, calibration, listed, split
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.layers import filters_of, kept_by
from assay.methods.gemfilter.picking import pick, usable_layers
from assay.methods.gemfilter.remembered import Remembered
from assay.networks.pretrained import context_length

#: From so many prompts on, a choice that another prompt does not change is taken.
_ENOUGH = 6
#: A prompt that is read in chunks is measured at this length at most: more chunks change little and cost much. A share
#: of a prompt whose length nobody says is measured at it, too.
_LONGEST = 8192
_SHORT = 512
_BY_LAYER = ("layer", "keep", "rule", "kernel")


@dataclass(frozen=True, repr=False)
class LayerChoice(Report):
    """The chosen layer, rule and width of pooling (``kernel``), and how far to trust them, by prompts that had no part
    in the choice: the share of the needle's tokens that were kept (``held_out_recall``), on average and in the worst
    kind of prompt (``worst``, ``worst_kind``), and the share of prompts whose answer was kept whole
    (``held_out_coverage``)."""

    layer: int
    rule: str
    keep: int | float
    length: int
    layers: int
    reliability: float
    held_out_recall: float
    held_out_coverage: float
    worst: float
    worst_kind: str
    calibrated: bool
    prompts: int
    passes: float
    recall: dict[str, list[float]] = field(repr=False)
    kinds: dict[str, float] = field(repr=False)
    kernel: int = 5
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def reliable(self) -> bool:
        """Whether the layer kept enough of every kind of needle."""
        return self.calibrated and self.worst >= self.reliability

    def filter(self, **options: Any) -> GemFilter:
        """The filter that was measured."""
        chosen = {"layer": self.layer, "keep": self.keep, "rule": self.rule, "kernel": self.kernel}
        return GemFilter(**{**chosen, **self.options, **options})

    def headline(self) -> str:
        return self.sentence()

    def table(self) -> list[dict[str, Any]]:
        """Recall by rule and layer, on the prompts that chose."""
        names = {self.rule, _name(self.rule, self.kernel)}
        return [
            {"rule": rule, "layer": layer, "recall": share, "chosen": rule in names and layer == self.layer}
            for rule, shares in self.recall.items()
            for layer, share in enumerate(shares)
        ]

    def figure(self) -> Any:
        """Recall by layer, a line for each rule."""
        return curves(self.table(), "layer", "recall", "rule", recall="share of the needle's tokens kept")

    def sentence(self) -> str:
        """The choice for a person to read."""
        text = (
            f"layer {self.layer} of 0 to {self.layers - 1} with the rule '{self.rule}', pooled over {self.kernel} "
            f"tokens, kept {self.held_out_recall:.0%} of the needle's tokens in {self.prompts} held-out prompts of "
            f"{self.length} tokens, {self.worst:.0%} at worst ({self.worst_kind})"
        )
        return text if self.calibrated else f"no layer kept {self.reliability:.0%} of the needles; the best, {text}"


def choose_filter_layer(
    model: nn.Module,
    tokenizer: Any,
    *,
    keep: int | float = 1024,
    length: int | None = None,
    prompts: int | Iterable[NeedlePrompt] = 18,
    texts: Mapping[str, str] | None = None,
    needles: str | Needle | Sequence[str | Needle] | None = None,
    rules: str | Sequence[str] = ("logits", "window"),
    kernels: int | Sequence[int] | None = None,
    place: Literal["middle", "first"] = "middle",
    reliability: float = 0.9,
    seed: int = 0,
    base: GemFilter | None = None,
    remember: bool = True,
    warn: bool = True,
    progress: Callable[[str], None] | None = None,
) -> LayerChoice:
    """The layer in the middle of the stage in which at least ``reliability`` of the needles' tokens are kept.

    Half of the prompts choose; the other half, of other texts and with other wordings, say how far the choice can be
    trusted. A layer qualifies when the lower end of a 95 % interval of its mean recall does: among many layers and
    rules the best of a few prompts is otherwise often luck. Of several ``rules`` and widths of pooling (``kernels``,
    the base's own where none is given) the pair with most such layers is taken, the earlier of equals;
    ``place="first"`` takes the first such layer, as the text does. ``prompts`` may be needle prompts of your own;
    ``texts`` (by name) and ``needles`` replace ours. ``length`` is that of the prompts: eight times ``keep``, or 8,192
    where ``keep`` is a share of each prompt, unless the model's context is shorter. ``base`` holds the filter's other
    options: with its ``chunk`` the layer is chosen on chunks.

    The cost is at most a full pass for each prompt that chooses and a pass below the chosen layer for each that judges;
    ``progress`` hears of it. Choosing stops when a further prompt changes nothing. The choice is remembered in the
    cache folder, per model, tokenizer and settings, and so is every prompt that was measured before an interruption.
    A layer that is not reliable is warned about.
    """
    check_usable(model)
    one_of("place", place, ("middle", "first"))
    filters = filters_of(base, keep, listed("rule", rules, str), kernels)
    if isinstance(prompts, (Iterable, NeedlePrompt)):
        with_prompts = split(listed("prompt", prompts, NeedlePrompt))
        lengths = [len(one.input_ids) for one in (*with_prompts.choosing, *with_prompts.judging)]
        length = max(lengths)
        _check_room(filters[0], min(lengths), "longer prompts")
    else:
        length = length or _usual_length(model, filters[0])
        _check_room(filters[0], length, "a longer length")
        with_prompts = calibration(tokenizer, length, prompts, texts=texts, needles=needles, seed=seed)
    options = {name: value for name, value in asdict(filters[0]).items() if name not in _BY_LAYER}
    settings = {
        "keep": filters[0].keep,
        "prompts": _mark(with_prompts),
        "rules": list(dict.fromkeys(one.rule for one in filters)),
        "kernels": [one.kernel for one in filters],
        "place": place,
        "reliability": reliability,
        "options": options,
    }
    known = Remembered(model, tokenizer, settings, use=remember)
    choice = _read(known)
    if choice is None:
        with extra("lab", "the choice of the filter layer"):  # said before the prompts are read, which takes minutes
            import scipy.stats  # noqa: F401
        measuring = _Measuring(model, filters, length, reliability, place, known, progress)
        choice = measuring.choice(with_prompts, options)
        known.write(asdict(choice))
    if warn and not choice.reliable:
        warnings.warn(f"the filter layer is not reliable: {choice.sentence()}", stacklevel=2)
    return choice


def measured_length(model: nn.Module, length: int, base: GemFilter) -> int:
    """The length at which a layer is measured for prompts of ``length`` tokens: the next lower one of 2ⁿ and 3·2ⁿ, so
    that prompts of about one length share a choice and none costs more than the prompt itself. Short prompts, which
    leave little room for a needle, are measured at their own length."""
    most = _LONGEST if base.layout(model, length) is not None else context_length(model, length)
    below = 1 << (length.bit_length() - 1)
    step = below if length < below * 3 // 2 else below * 3 // 2
    step = length if length < _SHORT else step
    return min(step if step > base.budget(step) else length, max(most, base.budget(length) + 1))


def _usual_length(model: nn.Module, base: GemFilter) -> int:
    length = _LONGEST if base.keep < 1 else 8 * int(base.keep)
    return length if base.layout(model, length) is not None else min(length, context_length(model, length))


def _check_room(base: GemFilter, length: int, otherwise: str) -> None:
    """Of a prompt that fits into the budget everything is kept, at any layer."""
    if length <= base.budget(length):
        raise ValueError(f"prompts of {length} tokens have nothing to filter at keep = {base.keep}: give {otherwise}")


def _mark(prompts: Calibration) -> str:
    """Tells prompts apart: texts differ from machine to machine."""
    parts = [(one.input_ids, one.needle_at, one.kind) for one in (*prompts.choosing, *prompts.judging)]
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _read(known: Remembered) -> LayerChoice | None:
    """A remembered choice; one that another version wrote is made again, as is one that lost its share of a prompt."""
    made = known.read()
    if made is None or set(made) != {each.name for each in fields(LayerChoice)} or not made["keep"]:
        return None
    return LayerChoice(**made)


@dataclass
class _Measuring:
    """Prompts measured one after the other, each noted as soon as it is there."""

    model: nn.Module
    filters: Sequence[GemFilter]
    length: int
    reliability: float
    place: str
    known: Remembered
    progress: Callable[[str], None] | None
    passes: float = 0.0

    def choice(self, prompts: Calibration, options: dict[str, Any]) -> LayerChoice:
        layers, total = list(attention_at(self.model)), len(layers_of(self.model))
        usable = usable_layers(self.model, self.filters[0], self.length)
        noted, columns = self.known.noted(), []
        before, chosen = None, (0, 0, False)
        started, done = time.perf_counter(), 0
        count = len(prompts.choosing)
        self._say(f"at most {count} passes over {self.length:,} tokens, and {len(prompts.judging)} shorter ones")
        for number, needle in enumerate(prompts.choosing):
            if (name := f"choose {number}") not in noted:
                spent = (time.perf_counter() - started) / max(done, 1) * (count - number)
                self._say(f"needle prompt {number + 1} of {count}" + (f", at most {spent:.0f} s more" if done else ""))
                column = torch.zeros(len(self.filters), total)
                column[:, layers] = kept_by(self.model, needle, self.filters, layers)[0]
                noted[name] = column.tolist()
                self.known.note(name, noted[name])
                done += 1
                self.passes += 1
            columns.append(torch.tensor(noted[name]))
            if number + 1 >= _ENOUGH or number + 1 == count:
                chosen = pick(torch.stack(columns, dim=-1), usable, self.reliability, self.place)
                if chosen[2] and chosen == before:
                    break
                before = chosen
        which, layer, good = chosen
        recall, covered = self._judged(prompts.judging, which, layer, noted)
        kinds = _by_kind(prompts.judging, recall)
        worst = min(kinds, key=lambda kind: kinds[kind])
        means = torch.stack(columns, dim=-1).mean(dim=-1)
        return LayerChoice(
            layer=layer,
            rule=self.filters[which].rule,
            keep=self.filters[0].keep,
            length=self.length,
            layers=total,
            reliability=self.reliability,
            held_out_recall=sum(recall) / len(recall),
            held_out_coverage=sum(covered) / len(covered),
            worst=kinds[worst],
            worst_kind=worst,
            calibrated=good,
            prompts=len(recall),
            passes=round(self.passes, 2),
            recall={self._named(one): means[i].tolist() for i, one in enumerate(self.filters)},
            kinds=kinds,
            kernel=self.filters[which].kernel,
            options=options,
        )

    def _named(self, one: GemFilter) -> str:
        """A rule, with its width of pooling where several were tried."""
        several = len({each.kernel for each in self.filters}) > 1
        return _name(one.rule, one.kernel) if several else one.rule

    def _judged(
        self, prompts: Sequence[NeedlePrompt], which: int, layer: int, noted: dict[str, Any]
    ) -> tuple[list[float], list[float]]:
        """Recall and coverage of the chosen layer and rule alone: nothing above the layer runs."""
        found = []
        for number, needle in enumerate(prompts):
            name = f"judge {number} {which} {layer}"
            if name not in noted:
                self._say(f"held-out prompt {number + 1} of {len(prompts)}")
                recall, covered, _ = kept_by(self.model, needle, [self.filters[which]], [layer])
                noted[name] = [float(recall), float(covered)]
                self.known.note(name, noted[name])
                self.passes += layer / len(layers_of(self.model))
            found.append(noted[name])
        return [one[0] for one in found], [one[1] for one in found]

    def _say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)


def _name(rule: str, kernel: int) -> str:
    return f"{rule} over {kernel}"


def _by_kind(prompts: Sequence[NeedlePrompt], recall: Sequence[float]) -> dict[str, float]:
    """The mean of every kind of prompt."""
    found: dict[str, list[float]] = {}
    for one, share in zip(prompts, recall, strict=True):
        found.setdefault(one.kind, []).append(share)
    return {kind: sum(shares) / len(shares) for kind, shares in found.items()}
