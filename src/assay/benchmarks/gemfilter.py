"""Full attention, SnapKV and GemFilter on long prompts: prefill, time per decoded token, peak memory."""

from __future__ import annotations

import copy
import gc
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from assay._extras import needs
from assay.evaluation.measure import timed
from assay.lab.errors import UserError
from assay.methods.gemfilter.adapter import after_attention, trimmed_cache
from assay.methods.gemfilter.adapter.memory import chunked_mlp, embedding_released
from assay.methods.gemfilter.baselines import FullAttention, SnapKV
from assay.methods.gemfilter.compression import share_prefill
from assay.methods.gemfilter.filter import GemFilter

# LLaMA 3.1 8B and the layer of the text; weights are random, which no time depends on.
LLAMA = dict(
    vocab_size=128_256,
    hidden_size=4096,
    intermediate_size=14_336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=131_072,
    rope_theta=500_000.0,
)
# SmolLM2-135M, and the layer that needle prompts choose for it.
SMALL = dict(
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    head_dim=64,
    max_position_embeddings=8192,
    rope_theta=100_000.0,
    tie_word_embeddings=True,
)


@dataclass(frozen=True)
class Plan:
    """What is measured: a model's shape, the filter's layer, prompt lengths and budgets."""

    shape: dict[str, Any]
    layer: int
    lengths: tuple[int, ...]
    keep: int
    new: int
    repeats: int


@dataclass(frozen=True)
class Measured:
    """Seconds of the prefill, peak bytes of the prefills, seconds of a second prefill."""

    prefill: float
    peak: float
    second: float = 0.0


@dataclass
class Decoding:
    """What decoding goes on from: the cache that a method leaves, and the next token."""

    cache: Any
    token: torch.Tensor

    def fresh(self) -> Decoding:
        """To decode from again: a step makes new keys and values and leaves these as they are."""
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in cache.layers]
        return Decoding(cache, self.token)


GPU = Plan(LLAMA, 13, (16_384, 32_768, 65_536, 122_880), 1024, 64, 3)
CPU = Plan(SMALL, 14, (2048,), 256, 24, 7)


def run(device: str) -> dict[str, Any]:
    """Rows per prompt length, the methods interleaved. On the CPU ratios are what counts."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise UserError(needs("the benchmark gemfilter", "llm")) from None
    plan = GPU if device == "cuda" else CPU
    rows = _rows(plan, device)
    if device == "cuda":
        for row, peak in zip(rows, _filter_only_peaks(plan, device), strict=True):
            row["filter only GiB"] = peak
    return {"layer": plan.layer, "layers": plan.shape["num_hidden_layers"], "keep": plan.keep, "rows": rows}


def model_of(shape: dict[str, Any], device: str, *, layers: int | None = None) -> Any:
    """A Llama of this shape with random weights; with ``layers`` only so many, and no head."""
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

    config = LlamaConfig(**{**shape, **({"num_hidden_layers": layers} if layers else {})}, attn_implementation="sdpa")
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    before = torch.get_default_dtype()
    torch.set_default_dtype(kind)
    try:
        with torch.device(device):
            return (LlamaModel if layers else LlamaForCausalLM)(config).eval()
    finally:
        torch.set_default_dtype(before)


def _rows(plan: Plan, device: str) -> list[dict[str, Any]]:
    model = model_of(plan.shape, device)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    rows = []
    for length in plan.lengths:
        ids = torch.randint(3, plan.shape["vocab_size"], (1, length), device=device)
        measured: dict[str, list[Measured]] = {name: [] for name in _METHODS}
        warm: dict[str, Decoding] = {}
        for repeat in range(plan.repeats + 1):
            for name, method in _METHODS.items():
                print(f"assay: {length} tokens, round {repeat} of {plan.repeats}, {name}", file=sys.stderr)
                gc.collect()
                found, decoding = method(model, ids, plan, device)
                if repeat:
                    measured[name].append(found)
                else:  # the first round warms up, and its caches are what decoding is timed on
                    warm[name] = decoding
                del decoding
            if not repeat:
                tokens = _decode(model, warm, plan.new, device)
                warm.clear()
        row = _row(plan, length, measured, tokens, weights, device)
        if device == "cuda":
            row |= {
                f"{name} with same savings GiB": _same_savings(model, ids, plan, name, device)
                for name in ("full", "snapkv")
            }
        rows.append(row)
    return rows


def _row(
    plan: Plan,
    length: int,
    measured: dict[str, list[Measured]],
    tokens: dict[str, list[float]],
    weights: int,
    device: str,
) -> dict[str, Any]:
    prefill, peak, second = (
        {name: statistics.median(getattr(part, field) for part in parts) for name, parts in measured.items()}
        for field in ("prefill", "peak", "second")
    )
    layers = plan.shape["num_hidden_layers"]
    pairs = list(zip(measured["full"], measured["gemfilter"], strict=True))
    speed = [full.prefill / gem.prefill for full, gem in pairs]
    row: dict[str, Any] = {
        "tokens": length,
        "prefill speed-up": round(statistics.median(speed), 3),
        "range": [round(min(speed), 3), round(max(speed), 3)],
        "with pass 2": round(statistics.median(full.prefill / (gem.prefill + gem.second) for full, gem in pairs), 3),
        "ceiling": round(layers / plan.layer, 3),
        "over prediction": round(1 / statistics.median(speed) / ((plan.layer + 0.2) / layers), 3),
        "token time to snapkv": _ratio(tokens["gemfilter"], tokens["snapkv"]),
        "token time to full": _ratio(tokens["gemfilter"], tokens["full"]),
    }
    if device == "cuda":
        row |= {f"{name} prefill s": round(value, 3) for name, value in prefill.items()}
        row |= {f"{name} ms per token": round(1000 * statistics.median(each), 2) for name, each in tokens.items()}
        row |= {f"{name} GiB": round(value / 2**30, 2) for name, value in peak.items()}
        row["second prefill s"] = round(second["gemfilter"], 3)
        row["weights GiB"] = round(weights / 2**30, 2)
    return row


def _ratio(times: list[float], others: list[float]) -> float:
    """Of steps side by side: a machine that is slow for a while is slow for both."""
    return round(statistics.median(one / other for one, other in zip(times, others, strict=True)), 3)


def _full(model: Any, ids: torch.Tensor, plan: Plan, device: str) -> tuple[Measured, Decoding]:
    return _with_cache(model, ids, FullAttention(), plan, device)


def _snapkv(model: Any, ids: torch.Tensor, plan: Plan, device: str) -> tuple[Measured, Decoding]:
    return _with_cache(model, ids, SnapKV(plan.keep), plan, device)


@torch.no_grad()
def _with_cache(model: Any, ids: torch.Tensor, method: Any, plan: Plan, device: str) -> tuple[Measured, Decoding]:
    """A prefill that compresses as it goes."""
    cache = trimmed_cache(model)

    def compress(layer: Any) -> None:
        if (kept := method.positions(layer)) is not None:
            layer.cache_layer.gather(kept)

    def prefill() -> torch.Tensor:
        with after_attention(model, cache, compress):
            logits: torch.Tensor = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits

    read = timed(prefill, device)
    return Measured(read.seconds, read.peak_bytes or 0), Decoding(cache, read.made[:, -1].argmax(-1, keepdim=True))


def _same_savings(model: Any, ids: torch.Tensor, plan: Plan, name: str, device: str) -> float:
    """A baseline's peak in GiB when it, too, runs MLPs in chunks and gives the embedded prompt back."""
    gc.collect()
    with embedding_released(model), chunked_mlp(model, 8192, plan.shape["num_hidden_layers"]):
        taken, _ = _METHODS[name](model, ids, plan, device)
    return round(taken.peak / 2**30, 2)


@torch.no_grad()
def _gemfilter(model: Any, ids: torch.Tensor, plan: Plan, device: str) -> tuple[Measured, Decoding]:
    """Pass 1 is the prefill that is compared; pass 2 prefills the kept tokens and decodes."""
    chosen = GemFilter(layer=plan.layer, keep=plan.keep)
    first = timed(lambda: chosen.select(model, ids), device)
    kept = first.made.input_ids
    second = timed(lambda: share_prefill(model, kept, [FullAttention()])[0], device)
    taken = Measured(first.seconds, max(first.peak_bytes or 0, second.peak_bytes or 0), second.seconds)
    return taken, Decoding(second.made.cache, second.made.first.reshape(1, 1))


_METHODS = {"full": _full, "snapkv": _snapkv, "gemfilter": _gemfilter}


def _decode(model: Any, states: dict[str, Decoding], new: int, device: str) -> dict[str, list[float]]:
    """Seconds of every greedy step. Compressed caches are of one size, and their methods take turns, token by token;
    the full cache would break up the memory they share, and decodes alone. A first pass finds that memory."""
    times: dict[str, list[float]] = {}
    for group in (("snapkv", "gemfilter"), ("full",)):
        for _ in ("warm", "timed"):
            times |= _in_turns(model, {name: states[name].fresh() for name in group}, new, device)
    return times


@torch.no_grad()
def _in_turns(model: Any, states: dict[str, Decoding], new: int, device: str) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in states}
    for place in range(new):
        for name, state in list(states.items())[:: 1 if place % 2 else -1]:  # each of them first as often
            step = timed(partial(model, state.token, past_key_values=state.cache, use_cache=True), device)
            state.token = step.made.logits[:, -1].argmax(dim=-1, keepdim=True)
            times[name].append(step.seconds)
    return times


def _filter_only_peaks(plan: Plan, device: str) -> list[float]:
    """Peak memory of pass 1 when only the filter's layers are there."""
    gc.collect()
    torch.cuda.empty_cache()
    model = model_of(plan.shape, device, layers=plan.layer + 1)
    peaks = []
    for length in plan.lengths:
        ids = torch.randint(3, plan.shape["vocab_size"], (1, length), device=device)
        chosen = GemFilter(layer=plan.layer, keep=plan.keep)
        read = timed(partial(chosen.select, model, ids), device)
        peaks.append(round((read.peak_bytes or 0) / 2**30, 2))
    return peaks
