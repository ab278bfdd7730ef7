"""Statements about cost and equality, counted on small random models of the Llama class with grouped heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from assay._extras import extra
from assay.evaluation.measure import stored_bytes
from assay.methods.gemfilter import H2O, FullAttention, GemFilter, OneRun, SnapKV
from assay.methods.gemfilter.compression import Compression, share_prefill
from assay.methods.gemfilter.cost import Shape, cache_bytes, cost_model
from assay.training.seeds import stream

from ..learners import Row, Watch
from . import theory

LAYERS, VOCABULARY = 6, 97


def random_model(seed: int, *, attention: str = "eager", device: str = "cpu") -> Any:
    """A decoder of six layers with 8 query and 2 key heads; large weights, so that attention is not flat."""
    with extra("llm", "a random Llama"):
        from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        pad_token_id=None,
        bos_token_id=1,
        eos_token_id=None,
        attn_implementation=attention,
    )
    model = LlamaForCausalLM(config).eval()
    draw = stream(seed, "random model")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(0.15 * torch.randn(parameter.shape, generator=draw))
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model.to(device)


def exact_rows(seed: int, layer: int, n: int, keep: int, new: int, device: str) -> list[Row]:
    """All statements for one random model and prompt; every value is 0 when the statement holds, but the counts."""
    model = random_model(seed, device=device)
    ids = torch.randint(3, VOCABULARY, (1, n), generator=stream(seed, "random prompt")).to(device)
    gem = GemFilter(layer=layer, keep=keep)
    methods = {"full": FullAttention(), "snapkv": SnapKV(keep), "h2o": H2O(keep), "one-run": OneRun(gem)}
    return [
        *_operations(model, ids, gem),
        *_layers_run(model, ids, gem),
        *_whole_budget(model, ids, layer, new),
        *_caches(model, ids, gem, methods, new),
        *_positions(model, ids, gem, methods, new),
        *_sets(model, ids, gem),
    ]


def _operations(model: Any, ids: Tensor, gem: GemFilter) -> Iterator[Row]:
    """Matrix operations of both prefills as torch counts them, against the cost model."""
    shape, n = Shape.of(model.config), ids.shape[1]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, logits_to_keep=1, use_cache=False)
    full = cost_model("full", shape, n=n).prefill_flops + theory.dense_surplus(shape, n, shape.layers)
    yield Row({"method": "full"}, {"operations_apart": abs(counter.get_total_flops() / full - 1)})
    with FlopCounterMode(display=False) as counter:
        gem.select(model, ids)
    layer = int(gem.layer)
    ours = cost_model("gemfilter", shape, n=n, layer=layer).prefill_flops + theory.dense_surplus(shape, n, layer)
    yield Row({"method": "gemfilter"}, {"operations_apart": abs(counter.get_total_flops() / ours - 1)})


def _layers_run(model: Any, ids: Tensor, gem: GemFilter) -> Iterator[Row]:
    """Layers that run to their end on the long prompt, and MLPs that run at or above the filter layer."""
    ended, late = [], []
    handles = []
    for index, layer in enumerate(model.model.layers):
        handles.append(layer.register_forward_hook(lambda *_, index=index: ended.append(index)))
        if index >= int(gem.layer):
            handles.append(layer.mlp.register_forward_hook(lambda *_, index=index: late.append(index)))
    try:
        gem.select(model, ids)
    finally:
        for handle in handles:
            handle.remove()
    wrong = abs(len(ended) - int(gem.layer)) + float(ended != sorted(ended)) + len(late)
    yield Row({"method": "gemfilter"}, {"layers_run": len(ended), "layers_wrong": wrong})


def _whole_budget(model: Any, ids: Tensor, layer: int, new: int) -> Iterator[Row]:
    """With a budget for the whole prompt every method must give the tokens of plain generation."""
    n = ids.shape[1]
    plain = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False)
    made: dict[str, Any] = {
        "gemfilter": GemFilter(layer=layer, keep=n),
        "snapkv": SnapKV(n),
        "h2o": H2O(n),
        "one-run": OneRun(GemFilter(layer=layer, keep=n)),
    }
    for name, method in made.items():
        tokens = method.generate(model, ids, max_new_tokens=new, do_sample=False)
        yield Row({"method": name}, {"tokens_apart": float((tokens != plain).sum())})


def _caches(model: Any, ids: Tensor, gem: GemFilter, methods: dict[str, Compression], new: int) -> Iterator[Row]:
    """Bytes of the real caches when decoding ends, against the formula; the last token is never cached."""
    shape = Shape.of(model.config)
    for made in share_prefill(model, ids, list(methods.values())):
        output: Any = made.generate(model, max_new_tokens=new, return_dict_in_generate=True)
        held = ids.shape[1] if made.method.name == "full" else gem.budget(ids.shape[1])
        expected = cache_bytes(shape, held + new - 1, item=4)
        yield Row({"method": made.method.name}, {"cache_apart": float(stored_bytes(output.past_key_values) - expected)})
    short = ids.gather(1, gem.select(model, ids).indices)
    output = model.generate(
        short, attention_mask=torch.ones_like(short), max_new_tokens=new, do_sample=False, return_dict_in_generate=True
    )
    expected = cache_bytes(shape, gem.budget(ids.shape[1]) + new - 1, item=4)
    yield Row({"method": "gemfilter"}, {"cache_apart": float(stored_bytes(output.past_key_values) - expected)})


@contextmanager
def _largest_position(model: Any) -> Iterator[Callable[[], int]]:
    """The largest position that the rotary embedding is asked for in decoding steps."""
    seen = [0]

    def look(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        positions: Tensor = kwargs["position_ids"] if "position_ids" in kwargs else args[1]
        if positions.shape[-1] == 1:
            seen[0] = max(seen[0], int(positions.max()))

    handle = model.model.rotary_emb.register_forward_pre_hook(look, with_kwargs=True)
    try:
        yield lambda: seen[0]
    finally:
        handle.remove()


def _positions(model: Any, ids: Tensor, gem: GemFilter, methods: dict[str, Any], new: int) -> Iterator[Row]:
    for name, method in {**methods, "gemfilter": gem}.items():
        with _largest_position(model) as largest:
            method.generate(model, ids, max_new_tokens=new, do_sample=False)
        expected = theory.position_range(name, ids.shape[1], gem.budget(ids.shape[1]), new)
        yield Row({"method": name}, {"largest_position": largest(), "position_apart": abs(largest() - expected)})


def _sets(model: Any, ids: Tensor, gem: GemFilter) -> Iterator[Row]:
    """Different index sets in one prompt; and that the shared prefill notes what ``select`` returns."""
    shape = Shape.of(model.config)
    watch = Watch({"gemfilter": gem}, SnapKV(gem.budget(ids.shape[1])))
    share_prefill(model, ids, [watch])
    sets = {tuple(places) for places in watch.index_sets()[0].tolist()}
    yield Row(
        {"method": "snapkv"}, {"index_sets": len(sets), "sets_apart": theory.index_sets("snapkv", shape) - len(sets)}
    )
    apart = (watch.kept["gemfilter"] != gem.select(model, ids).indices).sum()
    ours = len(_cached_sets(*share_prefill(model, ids, [FullAttention(), OneRun(gem)])))
    apart_sets = theory.index_sets("gemfilter", shape) - ours
    yield Row({"method": "gemfilter"}, {"index_sets": ours, "sets_apart": apart_sets, "watched_apart": float(apart)})


def _cached_sets(full: Any, one: Any) -> set[tuple[int, ...]]:
    """The different index sets of a compressed cache, over layers and heads: its keys, found among all of them."""
    found = set()
    for whole, part in zip(full.cache.layers, one.cache.layers, strict=True):
        equal = (part.keys[0][:, :, None] == whole.keys[0][:, None]).all(dim=-1)  # (heads, kept, n)
        found |= {tuple(places) for places in equal.float().argmax(dim=-1).tolist()}
    return found
