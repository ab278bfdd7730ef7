"""Full attention, SnapKV and GemFilter side by side on one prompt: seconds of the prefill and of a decoded token, and
the most bytes of tensors that are held at once. Weights are random, which no time depends on.

On a CPU the seconds are those of the processor, in which other work of the machine has little part; on a GPU they are
those of the clock. A machine that is slow for a while is slow for all: every round runs all methods, each method is
compared with another of the same round, and the median over the rounds is kept.
"""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay._extras import extra
from assay.evaluation.measure import now
from assay.methods.gemfilter import FullAttention, GemFilter, SnapKV
from assay.methods.gemfilter.adapter import after_attention, trimmed_cache, untouched_copy
from assay.methods.gemfilter.adapter.memory import chunked_mlp
from assay.methods.gemfilter.compression import Compression
from assay.methods.gemfilter.cost import Shape
from assay.training.seeds import stream

from ..learners import Row
from . import theory

Made = TypeVar("Made")


@dataclass(frozen=True)
class Setup:
    """A model, a prompt (1, n), the budget, the tokens that are decoded and the rounds that are timed."""

    model: Any
    ids: Tensor
    keep: int
    new: int
    rounds: int

    def timed(self, work: Callable[[], Made]) -> tuple[Made, float]:
        """What a piece of work returned, and the seconds that it took."""
        device = self.ids.device
        clock = time.process_time if device.type == "cpu" else partial(now, device)
        started = clock()
        made = work()
        return made, clock() - started


@dataclass(frozen=True)
class Prefill:
    """Seconds up to the selection (or the cache) and up to the first token, and what decoding goes on from."""

    read: float
    first_token: float
    cache: Any
    token: Tensor


def random_llama(shape: Shape, seed: int, device: str, positions: int) -> Any:
    """A Llama of this shape with random weights and torch's own attention kernels. On a GPU in bfloat16: none of those
    that do without a square of scores takes grouped keys in float32 there, and 32,768 tokens' scores fill 128 GiB."""
    with extra("llm", "a random Llama"):
        from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=positions,
        pad_token_id=None,
        bos_token_id=1,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config).eval()
    draw = stream(seed, "timed model")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(0.05 * torch.randn(parameter.shape, generator=draw))
    return model.to(device, torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32)


def speed_rows(seed: int, width: int, length: int, keep: int, new: int, rounds: int, device: str) -> list[Row]:
    """All measurements for one random model and prompt."""
    shape = theory.shape(width)
    model = random_llama(shape, seed, device, length + new)
    ids = torch.randint(3, shape.vocabulary, (1, length), generator=stream(seed, "timed prompt")).to(device)
    setup = Setup(model, ids, keep, new, rounds)
    prefills = [_round(setup, forth=bool(number % 2)) for number in range(rounds + 1)][1:]  # the first one warms up
    return [
        *_prefill_rows(prefills, theory.prefill_share(shape, length)),
        *_token_rows(_decoded(setup, prefills[-1])),
        *_memory_rows(setup, shape),
    ]


def _round(setup: Setup, *, forth: bool) -> dict[str, Prefill]:
    """Every method once; the order turns round by round. Full attention runs twice, to see what the clock is worth."""
    names = ["full", "snapkv", "gemfilter", "full again"]
    return {name: _METHODS[name](setup) for name in (names if forth else reversed(names))}


@torch.no_grad()
def _with_cache(setup: Setup, method: Compression) -> Prefill:
    """A prefill that compresses its cache as it goes; full attention drops nothing."""
    cache = trimmed_cache(setup.model)

    def compress(layer: Any) -> None:
        if (kept := method.positions(layer)) is not None:
            layer.cache_layer.gather(kept)

    def prefill() -> Tensor:
        with after_attention(setup.model, cache, compress):
            return _next_token(setup.model, setup.ids, cache)

    token, seconds = setup.timed(prefill)
    return Prefill(seconds, seconds, cache, token)


@torch.no_grad()
def _in_two_passes(setup: Setup) -> Prefill:
    """GemFilter: the pass that selects is its prefill; the second, short one ends with the first token."""
    chosen, cache = GemFilter(layer=theory.FILTER_LAYER, keep=setup.keep), trimmed_cache(setup.model)
    selected, first = setup.timed(lambda: chosen.select(setup.model, setup.ids))
    token, second = setup.timed(lambda: _next_token(setup.model, selected.input_ids, cache))
    return Prefill(first, first + second, cache, token)


def _next_token(model: Any, ids: Tensor, cache: Any) -> Tensor:
    logits: Tensor = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
    return logits[:, -1].argmax(dim=-1, keepdim=True)


_METHODS: dict[str, Callable[[Setup], Prefill]] = {
    "full": lambda setup: _with_cache(setup, FullAttention()),
    "full again": lambda setup: _with_cache(setup, FullAttention()),
    "snapkv": lambda setup: _with_cache(setup, SnapKV(setup.keep)),
    "gemfilter": _in_two_passes,
}


def _prefill_rows(rounds: Sequence[dict[str, Prefill]], expected: float) -> Iterator[Row]:
    for name in ("full", "snapkv", "gemfilter"):
        yield Row({"method": name}, {"prefill_seconds": statistics.median(each[name].read for each in rounds)})
    for other in ("full", "snapkv"):
        share = statistics.median(each["gemfilter"].read / each[other].read for each in rounds)
        both = statistics.median(each["gemfilter"].first_token / each[other].first_token for each in rounds)
        yield Row({"against": other}, {"prefill_ratio": share, "over_cost_model": share / expected})
        yield Row({"against": other}, {"first_token_ratio": both})
    again = statistics.median(each["full again"].read / each["full"].read for each in rounds)
    yield Row({"against": "itself"}, {"prefill_ratio": again})
    yield Row({}, {"expected_share": expected})


@torch.no_grad()
def _decoded(setup: Setup, prefills: dict[str, Prefill]) -> dict[str, list[float]]:
    """Seconds of every greedy step, the methods in turns, token by token; a first pass of all of it warms up."""
    names = ("full", "snapkv", "gemfilter")
    times: dict[str, list[float]] = {}
    for _ in ("warm", "timed"):
        times = {name: [] for name in names}
        caches = {name: untouched_copy(setup.model, prefills[name].cache) for name in names}
        tokens = {name: prefills[name].token for name in names}
        for place in range(setup.new):
            for name in names if place % 2 else reversed(names):
                tokens[name], seconds = setup.timed(partial(_next_token, setup.model, tokens[name], caches[name]))
                times[name].append(seconds)
    return times


def _token_rows(times: dict[str, list[float]]) -> Iterator[Row]:
    for name, each in times.items():
        yield Row({"method": name}, {"token_seconds": statistics.median(each)})
    for other in ("full", "snapkv"):
        ratios = [ours / theirs for ours, theirs in zip(times["gemfilter"], times[other], strict=True)]
        yield Row({"against": other}, {"token_ratio": statistics.median(ratios)})


def _memory_rows(setup: Setup, shape: Shape) -> Iterator[Row]:
    """The most bytes of tensors at once up to the first token, weights and cache included. GemFilter runs the MLPs on
    pieces of the prompt, and so do the others here."""
    weights = sum(each.numel() * each.element_size() for each in setup.model.parameters())
    peak = {}
    for name in ("full", "snapkv", "gemfilter"):
        with chunked_mlp(setup.model, GemFilter(layer=0).mlp_chunk, shape.layers), Held() as held:
            _METHODS[name](setup)
        peak[name] = weights + held.peak
        yield Row({"method": name}, {"peak_bytes": peak[name]})
    layer = theory.layer_cache_bytes(shape, setup.ids.shape[1], setup.model.dtype.itemsize)
    yield Row({"against": "snapkv"}, {"peak_ratio": peak["gemfilter"] / peak["snapkv"]})
    yield Row({"against": "full"}, {"peak_ratio": peak["gemfilter"] / peak["full"]})
    yield Row({}, {"layers_saved": (peak["full"] - peak["gemfilter"]) / layer})


class Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors that operations make, from when they are made until nobody holds them: on any
    device the same number, which no allocator and no other work of the process has a part in. What a kernel takes and
    gives back by itself is not counted."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._alive: dict[int, int] = {}
        self.held = self.peak = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        taken = {id(each) for each in _storages((args, kwargs))}
        made = func(*args, **(kwargs or {}))
        for storage in _storages(made):
            if id(storage) not in taken and id(storage) not in self._alive:
                self._alive[id(storage)] = storage.nbytes()
                self.held += storage.nbytes()
                weakref.finalize(storage, self._gone, id(storage))
        self.peak = max(self.peak, self.held)
        return made

    def _gone(self, key: int) -> None:
        self.held -= self._alive.pop(key)


def _storages(made: Any) -> list[Any]:
    return [each.untyped_storage() for each in torch.utils._pytree.tree_leaves(made) if isinstance(each, Tensor)]
