"""What a method takes on a long prompt: times and peak memory of both passes, and the bytes of its cache."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from assay.evaluation.contract import Kept, Method, TwoPass
from assay.evaluation.measure import now, peak_bytes, reset_peak, stored_bytes, timed


@dataclass(frozen=True)
class Profile:
    """Seconds and bytes of one method on one prompt.

    ``first_pass`` reads the whole prompt: the pass that selects, or a prefill up to its first token.
    ``second_prefill`` reads the selected tokens again, up to the first token of the answer; a method of one pass has
    none.
    ``token`` is the median time of the tokens after the first, 0 when there is none. Peaks are of the two passes; what
    they count differs between devices, see ``measure.peak_counts``. ``cache_bytes`` is the cache when decoding ends,
    ``chunks`` the pieces in which a first pass read the prompt, 0 when it read it whole.
    """

    method: str
    prompt_tokens: int
    kept_tokens: int
    new_tokens: int
    first_pass: float
    second_prefill: float
    second_pass: float
    token: float
    first_peak: int | None
    second_peak: int | None
    cache_bytes: int
    chunks: int = 0

    @property
    def peak_bytes(self) -> int | None:
        """The larger of the two peaks."""
        known = [peak for peak in (self.first_peak, self.second_peak) if peak is not None]
        return max(known, default=None)


@dataclass(frozen=True)
class Run:
    """The tokens that a method returned, what it took, and what it selected where it has a pass for that."""

    sequences: Tensor
    profile: Profile
    selection: Kept | None = None


class _Streamer:
    """Handed to generate: it hears of the prompt at once, and of each token when it is there."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.heard: list[float] = []
        self.prefill_peak: int | None = None

    def put(self, _: Any) -> None:
        self.heard.append(now(self.device))
        if len(self.heard) == 2:  # the first token: the prefill is over
            self.prefill_peak = peak_bytes(self.device)
            reset_peak(self.device)

    def end(self) -> None:
        """Nothing more comes."""

    @property
    def tokens(self) -> list[float]:
        """When each new token was there."""
        return self.heard[1:]

    def per_token(self) -> float:
        gaps = [after - before for before, after in zip(self.tokens, self.tokens[1:], strict=False)]
        return statistics.median(gaps) if gaps else 0.0


def run_profiled(model: Any, input_ids: Any, method: Method, new: int = 50, **kwargs: Any) -> Run:
    """Answer one prompt, (tokens,) or (1, tokens), greedily, both passes measured apart."""
    device = next(model.parameters()).device
    ids = torch.as_tensor(input_ids, device=device)
    ids = ids[None] if ids.dim() == 1 else ids
    if len(ids) != 1:
        raise ValueError("one prompt is measured at a time")
    clock = _Streamer(device)
    options = {"max_new_tokens": new, "do_sample": False, "streamer": clock, "return_dict_in_generate": True, **kwargs}
    selection, first = None, None
    if isinstance(method, TwoPass):
        first = timed(lambda: method.select(model, ids, tokenizer=kwargs.get("tokenizer")), device)
        selection = first.made
    reset_peak(device)
    started = now(device)
    if isinstance(method, TwoPass):
        made = method.answer(model, selection, ids, **options)
    else:
        made = method.generate(model, ids, **options)
    ended, last_peak = now(device), peak_bytes(device)
    length = ids.shape[1]
    prefill = (clock.tokens[0] if clock.tokens else ended) - started
    decoding_peak = _larger(clock.prefill_peak, last_peak)
    profile = Profile(
        method=method.name,
        prompt_tokens=length,
        kept_tokens=method.budget(length) if selection is None else len(selection.kept()),
        new_tokens=made.sequences.shape[1] - length,
        first_pass=prefill if first is None else first.seconds,
        second_prefill=0.0 if first is None else prefill,
        second_pass=ended - started - (prefill if first is None else 0.0),
        token=clock.per_token(),
        first_peak=(clock.prefill_peak or last_peak) if first is None else first.peak_bytes,
        second_peak=last_peak if first is None else decoding_peak,
        # A method of two passes may withhold a cache that does not belong to the whole prompt.
        cache_bytes=stored_bytes(getattr(made, "kept_cache", None) or made.past_key_values),
        chunks=getattr(selection, "chunks", 0),
    )
    return Run(made.sequences, profile, selection)


def _larger(one: int | None, other: int | None) -> int | None:
    return max((peak for peak in (one, other) if peak is not None), default=None)


def profile(
    model: Any, lengths: Sequence[int], methods: Sequence[Method], *, new: int = 16, repeats: int = 3, seed: int = 0
) -> list[Profile]:
    """Medians over ``repeats`` rounds on random tokens, methods interleaved, after a first round that warms up.

    Times depend on the lengths alone, not on which tokens are read, so no tokenizer is needed; filters must name their
    layer."""
    if repeats < 1 or new < 1:
        raise ValueError("at least one round and one new token are measured")
    if any(getattr(method, "layer", None) == "auto" for method in methods):
        raise ValueError("a profile is on random tokens: resolve layer='auto' first")
    draw = torch.Generator().manual_seed(seed)
    found = []
    for length in lengths:
        ids = torch.randint(3, int(model.config.vocab_size), (1, length), generator=draw)
        rounds = [
            [run_profiled(model, ids, method, new, min_new_tokens=new).profile for method in methods]
            for _ in range(repeats + 1)
        ]
        found += [_median(list(runs)) for runs in zip(*rounds[1:], strict=True)]
    return found


def _median(runs: list[Profile]) -> Profile:
    """Counts are equal in every round; times and peaks are not."""
    changes: dict[str, Any] = {}
    for field in fields(Profile):
        values = [getattr(run, field.name) for run in runs]
        if field.name in ("first_pass", "second_prefill", "second_pass", "token"):
            changes[field.name] = statistics.median(values)
        elif field.name.endswith("_peak") and None not in values:
            changes[field.name] = max(values)
    return replace(runs[0], **changes)
