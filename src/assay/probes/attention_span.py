"""Where does a language model look when it reads a label: at the sentence that the label is about, or beside it too?

The attention of a prompt's last token to named spans of its text, in every layer, for any Hugging Face causal model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from assay._reports import Report, altair
from assay.methods import _progress
from assay.methods._checks import all_finite, one_of, whole
from assay.methods._models import evaluating
from assay.networks.pretrained import context_length

from .intervals import Interval, median_interval, sign_test

Measure = Literal["per_token", "mass", "norm"]
MEASURES: tuple[Measure, ...] = ("per_token", "mass", "norm")


@dataclass(frozen=True)
class SpanPrompt:
    """A text and its spans by name, as ranges of characters. Prompts are told apart by their ``condition``; those of
    one ``item``, such as one sentence in two orders, count as one measurement within it."""

    text: str
    spans: Mapping[str, tuple[int, int]]
    condition: str = ""
    item: int = 0


@dataclass(frozen=True, repr=False)
class SpanReport(Report):
    """Attention of the last token, for each prompt, layer and span: ``mass``, the attention that falls on the span's
    tokens, averaged over heads; ``norm``, the Euclidean norm of its entries over heads and tokens (the source's
    measure); ``tokens`` (prompts, spans), how many there are. Longer spans have more of both, so that ``per_token``,
    mass over tokens, is what spans of different lengths are compared by."""

    model: str
    spans: tuple[str, ...]
    conditions: tuple[str, ...]
    items: tuple[int, ...]
    mass: Tensor
    norm: Tensor
    tokens: Tensor

    def values(self, measure: Measure = "per_token", *, layer: int = -1) -> Tensor:
        """The measure in one layer: (prompts, spans)."""
        one_of("measure", measure, MEASURES)
        at = whole("layer", layer, -self.mass.shape[1], self.mass.shape[1] - 1)
        if measure == "per_token":
            return self.mass[:, at] / self.tokens
        return (self.mass if measure == "mass" else self.norm)[:, at]

    def log_ratios(
        self, over: str, under: str, *, condition: str | None = None, measure: Measure = "per_token", layer: int = -1
    ) -> list[float]:
        """log(over / under) of the two spans, one number per item: the mean over its prompts."""
        for span in (over, under):
            one_of("a span", span, self.spans)
        if condition is not None:
            one_of("condition", condition, dict.fromkeys(self.conditions))
        values = self.values(measure, layer=layer).double()
        logs = values[:, self.spans.index(over)].log() - values[:, self.spans.index(under)].log()
        found: dict[tuple[str, int], list[float]] = {}
        for at, (each, item) in enumerate(zip(self.conditions, self.items, strict=True)):
            if condition in (None, each):
                found.setdefault(("" if condition is None else each, item), []).append(float(logs[at]))
        return [sum(each) / len(each) for each in found.values()]

    def ratio(
        self, over: str, under: str, *, condition: str | None = None, measure: Measure = "per_token", layer: int = -1
    ) -> Interval:
        """The median over items of over / under, with an interval that asks nothing of its distribution."""
        found = self.log_ratios(over, under, condition=condition, measure=measure, layer=layer)
        return median_interval(math.exp(each) for each in found)

    def against(
        self,
        other: SpanReport,
        over: str,
        under: str,
        *,
        condition: str | None = None,
        measure: Measure = "per_token",
        layer: int = -1,
    ) -> tuple[Interval, float]:
        """This model's ratio over the other's on the same prompts: the median with its interval, and the two-sided
        p-value of a sign test. Above 1, this model looks at ``over`` more."""
        if (self.conditions, self.items) != (other.conditions, other.items):
            raise ValueError("two models are compared on the same prompts")
        chosen: dict[str, Any] = {"condition": condition, "measure": measure, "layer": layer}
        pairs = zip(self.log_ratios(over, under, **chosen), other.log_ratios(over, under, **chosen), strict=True)
        moved = [one - two for one, two in pairs]
        return median_interval(math.exp(each) for each in moved), sign_test(moved)

    def headline(self) -> str:
        """Model and sizes."""
        prompts, layers, _ = self.mass.shape
        return f"{self.model}: attention of the last token in the last of {layers} layers, {prompts} prompts"

    def table(self, *, layer: int = -1) -> list[dict[str, Any]]:
        """Medians over prompts, a row per condition and span."""
        rows = []
        for condition in dict.fromkeys(self.conditions):
            chosen = torch.tensor([each == condition for each in self.conditions])
            for at, span in enumerate(self.spans):
                row: dict[str, Any] = {"condition": condition, "span": span}
                row |= {name: float(self.values(name, layer=layer)[chosen, at].median()) for name in MEASURES}
                rows.append({**row, "tokens": float(self.tokens[chosen, at].double().median())})
        return rows

    def figure(self, over: str | None = None, under: str | None = None, *, measure: Measure = "per_token") -> Any:
        """The median ratio of two spans (the second over the first, unless named) in every layer, with its interval."""
        alt = altair("the figure of a report")
        over, under = over or self.spans[min(1, len(self.spans) - 1)], under or self.spans[0]
        rows = []
        for condition in dict.fromkeys(self.conditions):
            for layer in range(self.mass.shape[1]):
                found = self.ratio(over, under, condition=condition, measure=measure, layer=layer)
                bounds: dict[str, float] = {"low": found.low, "high": found.high} if found.low == found.low else {}
                rows.append({"condition": condition, "layer": layer, "ratio": found.estimate, **bounds})
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X("layer:Q", title="layer", axis=alt.Axis(format="d", values=_ticks(self.mass.shape[1]))),
            color=alt.Color("condition:N", title="label"),
        )
        y = alt.Y(
            "ratio:Q", title=f"{over} / {under}, {measure.replace('_', ' ')}", scale=alt.Scale(type="log", nice=False)
        )
        even = alt.Chart(alt.Data(values=[{"y": 1}])).mark_rule(strokeDash=[4, 4], color="#888").encode(y="y:Q")
        return (
            even + base.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q") + base.mark_line(point=True).encode(y=y)
        )


def _ticks(layers: int) -> list[int]:
    return list(range(0, layers, max(1, layers // 10)))


def attention_spans(
    model: nn.Module,
    tokenizer: Any,
    prompts: Sequence[SpanPrompt],
    *,
    without_first: bool = False,
    name: str = "",
    progress: bool | None = None,
) -> SpanReport:
    """Read the attention of each prompt's last token. ``without_first`` leaves the first token out, on which heads put
    what they do not need, and divides by what is left. Fused attention returns no weights: the model computes in its
    eager form for the time of the probe."""
    if not prompts:
        raise ValueError("there are no prompts to read")
    names = tuple(prompts[0].spans)
    if not names or any(tuple(each.spans) != names for each in prompts):
        raise ValueError("every prompt needs spans, and all prompts the same names in the same order")
    found = []
    with evaluating(model), torch.no_grad(), _eager(model):
        for prompt in _progress.progress(prompts, "attention", show=progress):
            ids, sets = _tokens(tokenizer, prompt)
            rows = _last_rows(model, ids)
            if without_first:
                sets = [[at for at in each if at] for each in sets]
                rows = rows[..., 1:] / rows[..., 1:].sum(-1, keepdim=True)
                sets = [[at - 1 for at in each] for each in sets]
            _refuse_empty(prompt, sets)
            found.append(measured(rows, sets))
    mass, norm, counts = (torch.stack(each) for each in zip(*found, strict=True))
    all_finite("attention weights", mass, norm)
    conditions, items = tuple(each.condition for each in prompts), tuple(each.item for each in prompts)
    return SpanReport(name or type(model).__name__, names, conditions, items, mass, norm, counts)


def measured(rows: Tensor, sets: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Mass and norm (layers, spans) and token counts (spans,) of sets of tokens, from attention rows (layers, heads,
    tokens)."""
    parts = [rows[..., list(each)] for each in sets]
    mass = torch.stack([part.sum(-1).mean(-1) for part in parts], -1)
    norm = torch.stack([part.flatten(-2).norm(dim=-1) for part in parts], -1)
    return mass, norm, torch.tensor([len(each) for each in sets])


def _tokens(tokenizer: Any, prompt: SpanPrompt) -> tuple[list[int], list[list[int]]]:
    """Token ids, and for each span the positions of the tokens that have a character in it; a token's blank in front is
    not counted."""
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("spans are found by a fast tokenizer, which knows the characters of its tokens; this is none")
    made = tokenizer(prompt.text, return_offsets_mapping=True)
    places = [_without_blank(prompt.text, a, b) for a, b in made["offset_mapping"]]
    sets = []
    for name, (first, last) in prompt.spans.items():
        if not 0 <= first < last <= len(prompt.text):
            raise ValueError(f"the span {name!r} is no range of characters in a text of {len(prompt.text)}")
        sets.append([at for at, (a, b) in enumerate(places) if a < last and b > first and b > a])
    return list(made["input_ids"]), sets


def _without_blank(text: str, first: int, last: int) -> tuple[int, int]:
    inside = text[first:last]
    return (last - len(inside.lstrip()), last) if inside.strip() else (first, last)


def _refuse_empty(prompt: SpanPrompt, sets: Sequence[Sequence[int]]) -> None:
    for name, each in zip(prompt.spans, sets, strict=True):
        if not each:
            raise ValueError(f"no token is left in the span {name!r} of {prompt.text[:40]!r}")


def _last_rows(model: nn.Module, ids: list[int]) -> Tensor:
    """The last token's attention, (layers, heads, tokens), float32 on the CPU."""
    context = context_length(model, 0) if hasattr(model, "config") else 0
    if context and len(ids) > context:
        raise ValueError(f"a prompt of {len(ids)} tokens is longer than the model's context of {context}")
    place = next((each.device for each in model.parameters()), torch.device("cpu"))
    output = model(torch.tensor([ids], device=place), output_attentions=True, use_cache=False)
    layers = [each for each in getattr(output, "attentions", None) or () if each is not None]
    if not layers:
        raise ValueError(f"{type(model).__name__} returns no attention weights, not even in its eager form")
    if any(each.shape[-1] != len(ids) for each in layers):
        raise ValueError(f"{type(model).__name__} has layers that do not attend to the whole prompt")
    return torch.stack([each[0, :, -1].float().cpu() for each in layers])


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """The model's eager attention inside, its own again behind."""
    config, choose = getattr(model, "config", None), getattr(model, "set_attn_implementation", None)
    before = getattr(config, "_attn_implementation", None)
    if before in (None, "eager") or choose is None:
        yield
        return
    choose("eager")
    try:
        yield
    finally:
        choose(before)
