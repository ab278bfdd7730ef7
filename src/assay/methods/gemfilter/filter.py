"""GemFilter: an early layer finds the tokens that matter, and the model answers from those alone.

Pass 1 runs the layers below the filter layer on the whole prompt, or on chunks of it, and scores its tokens by the last
query's attention; pass 2 is ordinary generation on the best ``keep`` tokens in their original order, with fresh
positions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from assay.evaluation.measure import now
from assay.methods._checks import all_finite, check_fields, limits
from assay.methods.gemfilter.adapter import Projected, check_layer, check_usable, read_layers
from assay.methods.gemfilter.budget import budget_of, check_keep
from assay.methods.gemfilter.cautions import Once, less_shared, too_far, too_long
from assay.methods.gemfilter.chunks import AUTO_CHUNK, Joined, Layout, read_chunks, shared_tokens
from assay.methods.gemfilter.prompts import Prompt, parts_of, prompt_of, tokens_alone
from assay.methods.gemfilter.scoring import best_positions, largest_row, pool, token_scores
from assay.methods.gemfilter.second_pass import answer_from, decode_for
from assay.methods.gemfilter.selection import Selection, selection_of
from assay.networks.pretrained import context_length

#: The length from which on ``chunk="auto"`` cuts.
AUTO_LONG = 4096
#: Widths of pooling among which ``layer="auto"`` takes the one that finds needles in most layers: the text's, and wider
#: ones, since a number is wrong with one of its digits missing.
AUTO_KERNELS = (5, 9, 17)


@dataclass(frozen=True)
class GemFilter:
    """Which layer filters, how many tokens stay, and how they are scored. The defaults are the text's.

    ``layer`` counts from 0: the text's "13th layer" of LLaMA 3.1 8B is 13 here; ``auto`` measures on needle prompts,
    and takes the rule and the width of pooling (``kernel``) that find them in most layers. ``rule`` is ``logits`` (raw
    logits of the last row), ``softmax`` (its attention) or ``window`` (attention of the last ``window`` rows). ``row``
    may be, for ablations, ``middle``, ``largest`` (by the query's norm), ``largest-attention`` (by the norm of its row
    of attention, which takes time quadratic in the prompt) or a position. ``keep`` below 1 is a share of the prompt.
    ``mlp_chunk`` bounds the memory of pass 1.

    ``chunk`` reads the prompt in pieces of so many tokens, each with the prompt's last ``tail`` tokens behind it, so
    that time grows with the length and not with its square, and no prompt is too long; ``auto`` does so with prompts of
    more than 4,096 tokens or beyond the model's context. Neighbours share ``overlap`` tokens: by default an eighth of a
    chunk, 256 at most, and half of a chunk at most where ``auto`` makes it small. The first ``sink`` tokens of a chunk
    are scored by the one before it. Chunks run together as far as ``chunk_memory`` GiB of activations go.
    """

    layer: int | Literal["auto"] = field(metadata=limits(least=0))
    keep: int | float = 1024
    rule: Literal["logits", "softmax", "window"] = "logits"
    pooling: Literal["avg", "max"] | None = "avg"
    kernel: int = field(default=5, metadata=limits(least=1))
    count_include_pad: bool = True
    row: Literal["last", "middle", "largest", "largest-attention"] | int = "last"
    window: int = field(default=16, metadata=limits(least=1))
    keep_first: int = field(default=0, metadata=limits(least=0))
    keep_last: int = field(default=0, metadata=limits(least=0))
    mlp_chunk: int | None = field(default=8192, metadata=limits(least=1))
    chunk: int | Literal["auto"] | None = field(default=None, metadata=limits(least=2))
    overlap: int | None = field(default=None, metadata=limits(least=0))
    tail: int = field(default=128, metadata=limits(least=1))
    sink: int = field(default=4, metadata=limits(least=0))
    chunk_memory: float = field(default=2.0, metadata=limits(above=0))

    name = "gemfilter"
    #: Tokens of the prompt's beginning in front of every chunk: no setting, since it measured no better.
    anchor = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_keep(self.keep)
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, not {self.kernel}: an even one would change the prompt's length")
        if self.keep_first + self.keep_last > self.keep >= 1:
            forced = self.keep_first + self.keep_last
            raise ValueError(f"keep_first and keep_last ask for {forced} tokens, more than keep = {self.keep}")
        if self.rule == "window" and self.row != "last":
            raise ValueError("the rule window looks at the last rows: it goes with row='last' only")
        if self.chunk is None:
            return
        if self.row != "last":
            raise ValueError("every chunk ends in the prompt's last rows: chunks go with row='last' only")
        size = AUTO_CHUNK if self.chunk == "auto" else self.chunk
        if self.overlap is not None and self.overlap >= size:
            raise ValueError(f"overlap must be smaller than a chunk of {size} tokens, not {self.overlap}")
        if self.rule == "window" and self.tail < self.window:
            raise ValueError(f"tail must hold the {self.window} rows of the window, not {self.tail} tokens")

    def resolved(self, model: nn.Module, tokenizer: Any = None, length: int | None = None) -> GemFilter:
        """The same filter with ``auto`` replaced by the layer that was chosen, and the default rule and width of
        pooling by those that were chosen with it.

        The layer is measured on prompts of about ``length`` tokens, eight times ``keep`` by default."""
        if self.layer != "auto":
            return self
        if tokenizer is None:
            raise ValueError("layer='auto' is measured on needle prompts and needs the tokenizer: pass tokenizer=...")
        from assay.methods.gemfilter.choice import choose_filter_layer, measured_length

        rules = ("logits", "window") if self.rule == "logits" else (self.rule,)
        kernels = AUTO_KERNELS if self.pooling and self.kernel == AUTO_KERNELS[0] else (self.kernel,)
        base = replace(self, layer=0)
        if length is None and self.keep < 1:
            raise ValueError("a share of the prompt needs its length: call resolved(model, tokenizer, length)")
        size = None if length is None else measured_length(model, length, base)
        keep = self.budget(size) if size else int(self.keep)
        told = {"base": base, "length": size, "kernels": kernels, "progress": Once()}
        choice = choose_filter_layer(model, tokenizer, keep=keep, rules=rules, **told)  # type: ignore[arg-type]
        return replace(self, layer=choice.layer, rule=choice.rule, kernel=choice.kernel)  # type: ignore[arg-type]

    def layout(self, model: nn.Module, length: int) -> Layout | None:
        """How a prompt of ``length`` tokens is cut into chunks, None when it is read whole."""
        size, tail = self.chunk, self.tail
        if size == "auto":
            context = context_length(model, length)
            if length <= min(AUTO_LONG, context):
                return None
            # A model for short texts gets chunks that leave most of its context free.
            tail = min(tail, max(self.window, context // 4))
            size = max(2, min(AUTO_CHUNK, context // 2 - tail - self.anchor))
        if size is None:
            return None
        overlap = shared_tokens(size, self.overlap, auto=self.chunk == "auto")
        made = Layout.of(length, size, overlap=overlap, tail=tail, anchor=self.anchor, sink=self.sink)
        return made if made.chunks > 1 else None

    def select(self, model: nn.Module, inputs: Any = None, *, tokenizer: Any = None, **given: Any) -> Selection:
        """Pass 1: the tokens that the filter layer points at. Takes ids, or what a tokenizer returns; the ``tokenizer``
        itself is needed for ``layer="auto"`` only."""
        check_usable(model)
        if self.layer != "auto":
            check_layer(model, self.layer)
        prompt = prompt_of(model, inputs, **given)
        rows = [prompt.real(row) for row in range(prompt.batch)]
        if all(len(real) <= self.budget(len(real)) for real in rows):
            return selection_of(prompt, rows, None, 0.0)
        return self.resolved(model, tokenizer, prompt.input_ids.shape[1])._select(model, prompt, rows)

    def _select(self, model: nn.Module, prompt: Prompt, rows: list[Tensor]) -> Selection:
        assert self.layer != "auto"
        layouts = self._layouts(model, prompt)
        longest = max(layout.chunk_length for layout in layouts)
        size = max((layout.size for layout in layouts if layout.chunks > 1), default=AUTO_CHUNK)
        shared = less_shared(size, self.overlap) if self.chunk == "auto" else None
        for wrong in (too_far(model, self.layer, longest), too_long(model, longest), shared):
            if wrong:
                warnings.warn(wrong, stacklevel=3)
        started = now(prompt.input_ids.device)
        scores = self.score(model, prompt)
        chosen = [real[self.best(scores[row, real])] for row, real in enumerate(rows)]
        cut = sum(layout.chunks for layout in layouts) if _cut(layouts) else 0
        return selection_of(prompt, chosen, scores, now(prompt.input_ids.device) - started, cut)

    def _layouts(self, model: nn.Module, prompt: Prompt) -> list[Layout]:
        """One for each prompt of a batch; a single chunk where it is read whole."""
        lengths = [len(prompt.real(row)) for row in range(prompt.batch)]
        return [self.layout(model, length) or Layout.of(length, length, overlap=0, tail=0) for length in lengths]

    def score(self, model: nn.Module, prompt: Prompt, *, interface: bool | None = None) -> Tensor:
        """Pooled scores of every token, (batch, n), -inf at padding."""
        if self.layer == "auto":
            raise ValueError("layer='auto' must be resolved first: call resolved(model, tokenizer)")
        options: dict[str, Any] = {"mlp_chunk": self.mlp_chunk, "interface": interface}
        layouts = self._layouts(model, prompt)
        if _cut(layouts):
            return self._joined(model, prompt, layouts, options)
        found: dict[int, Tensor] = {}

        def take(layer: int, projected: Projected) -> None:
            found[layer] = self.scores_of(projected, prompt)

        rows = None if self.searches_row else self._rows(prompt)
        read_layers(model, prompt.input_ids, prompt.mask, [self.layer], rows, take, **options)
        return found[self.layer]

    def _joined(self, model: nn.Module, prompt: Prompt, layouts: list[Layout], options: dict[str, Any]) -> Tensor:
        joined = [Joined(self.rule, layout) for layout in layouts]

        def take(_: int, row: int, number: int, projected: Projected) -> None:
            joined[row].add(number, projected)

        assert self.layer != "auto"
        read_chunks(model, prompt, layouts, [self.layer], self.rows, take, memory=self.chunk_memory, **options)
        scores = torch.full(prompt.input_ids.shape, float("-inf"), device=prompt.input_ids.device)
        for row, part in enumerate(joined):
            scores[row, prompt.real(row)] = self.pooled(part.scores())
        return scores

    @property
    def rows(self) -> int:
        """How many rows of attention score."""
        return self.window if self.rule == "window" else 1

    def pooled(self, scores: Tensor) -> Tensor:
        """Scores of one prompt's real tokens, spread to their neighbours."""
        return pool(scores, self.pooling, self.kernel, count_include_pad=self.count_include_pad)

    def best(self, scores: Tensor) -> Tensor:
        """The positions that stay by their scores (..., n), in rising order."""
        all_finite("the scores of tokens", scores)
        budget = self.budget(scores.shape[-1])
        return best_positions(scores, budget, keep_first=self.keep_first, keep_last=self.keep_last)

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
            cap, sinks = projected.softcap, projected.sinks
            raw = token_scores(self.rule, queries, keys, projected.scaling, last, softcap=cap, sinks=sinks)
            scores[row, real] = self.pooled(raw)
        return scores

    @property
    def searches_row(self) -> bool:
        """Whether the row that scores is known only when all queries are."""
        return self.row in ("largest", "largest-attention")

    def _rows(self, prompt: Prompt) -> Tensor:
        """The positions whose queries are needed, (batch, rows)."""
        rows = []
        for row in range(prompt.batch):
            real = prompt.real(row)
            if self.row == "last":
                # A prompt shorter than the window repeats its first row, which scores_of drops again.
                places = torch.arange(len(real) - self.rows, len(real), device=real.device).clamp_min(0)
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
        tokens behind it, so that code which cuts the prompt off goes on working. Processors, stopping criteria and
        streamers see the kept tokens in place of the prompt."""
        given, others = parts_of(inputs, kwargs)
        kwargs = tokens_alone(others)
        selection = self.select(model, tokenizer=kwargs.get("tokenizer"), **given)
        return self.answer(model, selection, prompt_of(model, **given).input_ids, **kwargs)

    def answer(self, model: Any, selection: Selection, input_ids: Tensor, **kwargs: Any) -> Any:
        """Pass 2: generation from the kept tokens. Lengths that count the prompt count the whole one."""
        return answer_from(model, selection, input_ids, **kwargs)

    def __call__(self, model: Any, input_ids: Tensor, **prepared: Any) -> Any:
        """What ``model.generate(**inputs, custom_generate=gem)`` calls: the same as ``gem.generate``."""
        return decode_for(self, model, input_ids, **prepared)

    def budget(self, length: int) -> int:
        """How many tokens of a prompt of ``length`` stay."""
        room, forced = budget_of(self.keep, length), self.keep_first + self.keep_last
        if forced > room and room < length:
            share = f"keep = {self.keep} of {length} tokens is {room}"
            raise ValueError(f"{share}, and keep_first and keep_last ask for {forced} tokens")
        return room

    def at(self, layer: int) -> GemFilter:
        """The same filter at another layer."""
        return replace(self, layer=layer)


def _cut(layouts: list[Layout]) -> bool:
    return any(layout.chunks > 1 for layout in layouts)
