"""GemFilter: an early layer finds the tokens that matter, and the model answers from those alone.

Pass 1 runs the layers below the filter layer on the whole prompt and scores its tokens by the last query's attention;
pass 2 is ordinary generation on the best ``keep`` tokens in their original order, with fresh positions.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from assay.evaluation.measure import now
from assay.methods._checks import check_fields, limits
from assay.methods.gemfilter.adapter import Projected, check_layer, check_usable, read_layers, sliding_window
from assay.methods.gemfilter.prompts import Prompt, prompt_of
from assay.methods.gemfilter.scoring import best_positions, largest_row, pool, token_scores


@dataclass(frozen=True)
class Selection:
    """The tokens that a filter kept of a batch of prompts.

    ``indices`` (batch, kept) are positions in the prompt, -1 where a short prompt leaves room on the left; ``scores``
    (batch, n) are the pooled scores, -inf at padding. Where a prompt was short enough to keep whole, nothing was
    scored and ``scores`` is None.
    """

    indices: Tensor
    input_ids: Tensor
    attention_mask: Tensor
    scores: Tensor | None
    prompt_length: int
    seconds: float

    def kept(self, row: int = 0) -> list[int]:
        """The kept positions of one prompt."""
        return [int(i) for i in self.indices[row] if i >= 0]

    def tokens(self, tokenizer: Any, row: int = 0) -> list[str]:
        """The kept tokens of one prompt, as strings."""
        real = self.attention_mask[row].bool()
        return [str(token) for token in tokenizer.convert_ids_to_tokens(self.input_ids[row][real].tolist())]

    def text(self, tokenizer: Any, row: int = 0, gap: str = " … ") -> str:
        """The kept text of one prompt for a person to read, with ``gap`` wherever tokens were dropped."""
        ids = self.input_ids[row][self.attention_mask[row].bool()].tolist()
        return gap.join(tokenizer.decode([ids[i] for i in span]) for span in _spans(self.kept(row)))

    def recall(self, wanted: list[int], row: int = 0) -> float:
        """The share of the wanted positions that were kept."""
        return len(set(wanted) & set(self.kept(row))) / len(set(wanted))


def _spans(positions: list[int]) -> list[list[int]]:
    """Indices into ``positions``, cut wherever consecutive positions are not neighbours."""
    spans: list[list[int]] = []
    for i, position in enumerate(positions):
        if i and position == positions[i - 1] + 1:
            spans[-1].append(i)
        else:
            spans.append([i])
    return spans


@dataclass(frozen=True)
class GemFilter:
    """Which layer filters, how many tokens stay, and how they are scored. The defaults are the text's.

    ``layer`` counts from 0: the text's "13th layer" of LLaMA 3.1 8B is 13 here; ``auto`` measures on needle prompts,
    and takes the rule that finds them earliest. ``rule`` is ``logits`` (raw logits of the last row), ``softmax`` (its
    attention) or ``window`` (attention of the last ``window`` rows). ``row`` may be, for ablations, ``middle``,
    ``largest`` (by the query's norm), ``largest-attention`` (by the norm of its row of attention, which takes time
    quadratic in the prompt) or a position. ``mlp_chunk`` bounds the memory of pass 1.
    """

    layer: int | Literal["auto"] = field(metadata=limits(least=0))
    keep: int = field(default=1024, metadata=limits(least=1))
    rule: Literal["logits", "softmax", "window"] = "logits"
    pooling: Literal["avg", "max"] | None = "avg"
    kernel: int = field(default=5, metadata=limits(least=1))
    count_include_pad: bool = True
    row: Literal["last", "middle", "largest", "largest-attention"] | int = "last"
    window: int = field(default=16, metadata=limits(least=1))
    keep_first: int = field(default=0, metadata=limits(least=0))
    keep_last: int = field(default=0, metadata=limits(least=0))
    mlp_chunk: int | None = field(default=8192, metadata=limits(least=1))

    name = "gemfilter"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, not {self.kernel}: an even one would change the prompt's length")
        if self.keep_first + self.keep_last > self.keep:
            forced = self.keep_first + self.keep_last
            raise ValueError(f"keep_first and keep_last ask for {forced} tokens, more than keep = {self.keep}")
        if self.rule == "window" and self.row != "last":
            raise ValueError("the rule window looks at the last rows: it goes with row='last' only")

    def resolved(self, model: nn.Module, tokenizer: Any = None, length: int | None = None) -> GemFilter:
        """The same filter with ``auto`` replaced by the layer that was chosen, and the default rule by its rule.

        The layer is measured on prompts of about ``length`` tokens, eight times ``keep`` by default."""
        if self.layer != "auto":
            return self
        if tokenizer is None:
            raise ValueError("layer='auto' is measured on needle prompts and needs the tokenizer: pass tokenizer=...")
        from assay.methods.gemfilter.layers import choose_filter_layer, measured_length

        rules = ("logits", "window") if self.rule == "logits" else (self.rule,)
        size = None if length is None else measured_length(model, length)
        base = replace(self, layer=0)
        choice = choose_filter_layer(model, tokenizer, keep=self.keep, rules=rules, base=base, length=size)
        return replace(self, layer=choice.layer, rule=choice.rule)  # type: ignore[arg-type]

    def select(self, model: nn.Module, inputs: Any = None, *, tokenizer: Any = None, **given: Any) -> Selection:
        """Pass 1: the tokens that the filter layer points at. Takes ids, or what a tokenizer returns; the ``tokenizer``
        itself is needed for ``layer="auto"`` only."""
        check_usable(model)
        if self.layer != "auto":
            check_layer(model, self.layer)
        prompt = prompt_of(model, inputs, **given)
        rows = [prompt.real(row) for row in range(prompt.batch)]
        if max(len(real) for real in rows) <= self.keep:
            return _selection(prompt, rows, None, 0.0)
        return self.resolved(model, tokenizer, prompt.input_ids.shape[1])._select(model, prompt, rows)

    def _select(self, model: nn.Module, prompt: Prompt, rows: list[Tensor]) -> Selection:
        assert self.layer != "auto"
        started = now(prompt.input_ids.device)
        if (window := sliding_window(model, self.layer)) is not None and window < prompt.input_ids.shape[1]:
            warnings.warn(
                f"layer {self.layer} attends to the last {window} tokens only, so its scores of earlier ones are "
                "untrained: choose a layer with full attention",
                stacklevel=3,
            )
        scores = self.score(model, prompt)
        chosen = [
            real[best_positions(scores[row, real], self.keep, keep_first=self.keep_first, keep_last=self.keep_last)]
            for row, real in enumerate(rows)
        ]
        return _selection(prompt, chosen, scores, now(prompt.input_ids.device) - started)

    def score(self, model: nn.Module, prompt: Prompt, *, interface: bool | None = None) -> Tensor:
        """Pooled scores of every token, (batch, n), -inf at padding."""
        if self.layer == "auto":
            raise ValueError("layer='auto' must be resolved first: call resolved(model, tokenizer)")
        found: dict[int, Tensor] = {}

        def take(layer: int, projected: Projected) -> None:
            found[layer] = self.scores_of(projected, prompt)

        rows = None if self.searches_row else self._rows(prompt)
        options: dict[str, Any] = {"mlp_chunk": self.mlp_chunk, "interface": interface}
        read_layers(model, prompt.input_ids, prompt.mask, [self.layer], rows, take, **options)
        return found[self.layer]

    def scores_of(self, projected: Projected, prompt: Prompt) -> Tensor:
        """Pooled scores from a layer's queries and keys. Each prompt is scored and pooled on its real tokens alone."""
        scores = torch.full(prompt.input_ids.shape, float("-inf"), device=projected.keys.device)
        for row in range(prompt.batch):
            real = prompt.real(row)
            keys = projected.keys[row] if prompt.mask is None else projected.keys[row][:, real]
            queries = projected.queries[row][:, -len(real) :]
            last = len(real) - 1
            if self.searches_row:
                everywhere = projected.queries[row][:, real]
                if self.row == "largest":
                    last = int(everywhere.float().square().sum(dim=(0, 2)).argmax())
                else:
                    last = largest_row(self.rule, everywhere, keys, projected.scaling)
                queries = everywhere[:, last : last + 1]
            elif self.row != "last":
                last = self._position(len(real))
            raw = token_scores(self.rule, queries, keys, projected.scaling, last)
            pooled = pool(raw, self.pooling, self.kernel, count_include_pad=self.count_include_pad)
            scores[row, real] = pooled
        return scores

    @property
    def searches_row(self) -> bool:
        """Whether the row that scores is known only when all queries are."""
        return self.row in ("largest", "largest-attention")

    def _rows(self, prompt: Prompt) -> Tensor:
        """The positions whose queries are needed, (batch, rows)."""
        count = self.window if self.rule == "window" else 1
        rows = []
        for row in range(prompt.batch):
            real = prompt.real(row)
            if self.row == "last":
                # A prompt shorter than the window repeats its first row, which scores_of drops again.
                places = torch.arange(len(real) - count, len(real), device=real.device).clamp_min(0)
            else:
                places = torch.tensor([self._position(len(real))], device=real.device)
            rows.append(real[places])
        return torch.stack(rows)

    def _position(self, length: int) -> int:
        """The row of an ablation, counted in real tokens."""
        position = length // 2 if self.row == "middle" else int(self.row)
        if not -length <= position < length:
            raise ValueError(f"row {position} lies outside a prompt of {length} tokens")
        return position % length

    def generate(self, model: nn.Module, inputs: Any = None, **kwargs: Any) -> Any:
        """Both passes. Takes what ``model.generate`` takes and returns what it returns: the whole prompt with the new
        tokens behind it, so that code which cuts the prompt off goes on working."""
        given = {name: kwargs.pop(name) for name in ("input_ids", "attention_mask") if name in kwargs}
        for name, why in (("past_key_values", "answers from a fresh cache"), ("inputs_embeds", "gathers tokens")):
            if kwargs.get(name) is not None:
                raise ValueError(f"GemFilter {why}: do not pass {name}")
        selection = self.select(model, inputs, tokenizer=kwargs.get("tokenizer"), **given)
        return self.answer(model, selection, prompt_of(model, inputs, **given).input_ids, **kwargs)

    def answer(self, model: Any, selection: Selection, input_ids: Tensor, **kwargs: Any) -> Any:
        """Pass 2: generation from the kept tokens. Lengths that count the prompt count the whole one."""
        dropped = input_ids.shape[1] - selection.input_ids.shape[1]
        kwargs = _without_dropped(kwargs, dropped, model.generation_config)
        made = model.generate(input_ids=selection.input_ids, attention_mask=selection.attention_mask, **kwargs)
        bare = isinstance(made, Tensor)
        sequences = made if bare else made.sequences
        copies = sequences.shape[0] // len(input_ids)
        whole = input_ids.repeat_interleave(copies, dim=0).to(sequences.device)
        sequences = torch.cat([whole, sequences[:, selection.input_ids.shape[1] :]], dim=1)
        if bare:
            return sequences
        made.sequences = sequences
        return made

    def budget(self, length: int) -> int:
        """How many tokens of a prompt of ``length`` stay."""
        return min(self.keep, length)

    def at(self, layer: int) -> GemFilter:
        """The same filter at another layer."""
        return replace(self, layer=layer)


def _without_dropped(kwargs: dict[str, Any], dropped: int, usual: Any) -> dict[str, Any]:
    """``max_length`` and ``min_length`` count prompt and answer: shorten them by the tokens that were dropped, wherever
    they stand: in the call, in its configuration, or in the model's own."""
    kwargs = dict(kwargs)
    counted = kwargs.get("max_new_tokens") is not None
    config = copy.deepcopy(kwargs.get("generation_config") or (None if counted else usual))
    for name in ("max_length", "min_length"):
        if kwargs.get(name) is not None:
            kwargs[name] = max(1, kwargs[name] - dropped)
        elif getattr(config, name, None):
            setattr(config, name, max(1, getattr(config, name) - dropped))
            kwargs["generation_config"] = config
    return kwargs


def _selection(prompt: Prompt, chosen: list[Tensor], scores: Tensor | None, seconds: float) -> Selection:
    """Selections of unequal length, padded on the left."""
    length = max(len(places) for places in chosen)
    indices = torch.full((prompt.batch, length), -1, device=prompt.input_ids.device)
    for row, places in enumerate(chosen):
        indices[row, length - len(places) :] = places
    ids = prompt.input_ids.gather(1, indices.clamp_min(0))
    return Selection(indices, ids, (indices >= 0).long(), scores, prompt.input_ids.shape[1], seconds)
