"""A Llama whose weights are set by hand: a previous-token head and matching heads follow facts of one hop or two.

The residual stream holds four codes, one-hot over the vocabulary: T the token, P the token before it, A what the first
hop found, B what the second found; and a constant. Layer by layer:

0     the previous-token head writes P. A constant query and key make a peak at distance one under rotation.
1     the matching head finds the place whose P is the current token, and copies its T to A.
2     a second matching head finds the place whose P is A, and copies its T to B.
3     the same queries and keys as layer 2, which write nothing.
4, 5  attend to recent tokens alone.

So the last row points at the facts of one hop in layers 1 to 3, at those of two hops in layers 2 and 3, and at neither
before or after: search, found, answer preparation. Codes are matched in the slow pairs of the rotation, which hardly
turn over a prompt; where nothing matches, a head rests on bos. The output reads the values in A and B.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from assay._extras import extra

from .problem import BOS, PlantedNeedle

LAYERS, HEADS, WIDTH = 6, 4, 64
PAIRS = WIDTH // 2
FOUND = {1: (1, 2, 3), 2: (2, 3)}
_THETA = 1e12
_FAST = range(6)  # pairs that turn by 1, 0.42, ... 0.013 per token
_MIDDLE = range(3, 9)
_SLOW = [*range(14, 31), *range(14 + PAIRS, 31 + PAIRS)]  # under 6e-6 per token
_SINK = PAIRS - 1
MATCH, REST, RECENT, PREVIOUS = 400.0, 200.0, 2.0, 300.0


class _Codes:
    """Where the residual stream keeps what."""

    def __init__(self, task: PlantedNeedle) -> None:
        size = task.vocabulary
        self.size = size
        self.token, self.before, self.first, self.second = (slice(i * size, (i + 1) * size) for i in range(4))
        self.constant = 4 * size
        self.hidden = 8 * math.ceil((4 * size + 1) / 8)
        self.entities = range(2, 2 + task.entities)
        self.matched = range(2, 2 + task.entities + task.values)
        self.values = range(2 + task.entities, 2 + task.entities + task.values)
        if len(self.matched) > len(_SLOW):
            raise ValueError(f"{len(self.matched)} keys and values do not fit the {len(_SLOW)} slow coordinates")


def hand_set_model(task: PlantedNeedle, *, device: str = "cpu") -> Any:
    """The model for a task's vocabulary, of the Llama class of transformers."""
    with extra("llm", "the hand-set model"):
        from transformers import LlamaConfig, LlamaForCausalLM

    codes = _Codes(task)
    config = LlamaConfig(
        vocab_size=codes.size,
        hidden_size=codes.hidden,
        intermediate_size=8,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=WIDTH,
        max_position_embeddings=65_536,
        rms_norm_eps=1e-12,
        tie_word_embeddings=False,
        pad_token_id=None,
        bos_token_id=BOS,
        eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": _THETA},
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        _embed(model, codes)
        for index, layer in enumerate(model.model.layers):
            _set_layer(index, layer.self_attn, codes)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = BOS
    return model.to(device)


def _embed(model: Any, codes: _Codes) -> None:
    """Every token is its code and the constant. Norms divide by a length that is known at each layer: undone here."""
    table = model.model.embed_tokens.weight
    table[:, codes.token] = torch.eye(codes.size)
    table[:, codes.constant] = 1.0
    for index, layer in enumerate(model.model.layers):
        layer.input_layernorm.weight.fill_(math.sqrt(min(2 + index, 5) / codes.hidden))
        layer.post_attention_layernorm.weight.fill_(1.0)
    model.model.norm.weight.fill_(math.sqrt(5 / codes.hidden))
    for value in codes.values:
        model.lm_head.weight[value, codes.first.start + value] = 1.0
        model.lm_head.weight[value, codes.second.start + value] = 1.0


def _set_layer(index: int, attention: Any, codes: _Codes) -> None:
    if index == 0:
        _distance_head(attention, 0, codes, distance=1, gain=PREVIOUS, pairs=_FAST)
        _copy(attention, 0, codes.token, codes.before)
        return
    _distance_head(attention, 3, codes, distance=0, gain=RECENT, pairs=_MIDDLE)
    if index > 3:
        return
    _match_head(attention, 0, codes, codes.token, codes.token, codes.matched)
    _match_head(attention, 1, codes, codes.token, codes.before, codes.matched)
    if index == 1:
        _copy(attention, 1, codes.token, codes.first)
        return
    _match_head(attention, 2, codes, codes.first, codes.before, codes.entities)
    if index == 2:
        _copy(attention, 2, codes.token, codes.second)


def _rows(weight: Tensor, head: int) -> Tensor:
    return weight[head * WIDTH : (head + 1) * WIDTH]


def _distance_head(attention: Any, head: int, codes: _Codes, *, distance: int, gain: float, pairs: range) -> None:
    """Logits gain·Σ_f cos(θ_f (Δ − distance)): one peak, at that distance, whatever the tokens."""
    query, key = _rows(attention.q_proj.weight, head), _rows(attention.k_proj.weight, head)
    for pair in pairs:
        angle = distance * _THETA ** (-pair / PAIRS)
        query[pair, codes.constant] = gain * math.cos(angle)
        query[pair + PAIRS, codes.constant] = -gain * math.sin(angle)
        key[pair, codes.constant] = 1.0


def _match_head(attention: Any, head: int, codes: _Codes, asked: slice, held: slice, names: range) -> None:
    """Logit MATCH where the code ``asked`` equals the code ``held``, REST on bos, 0 elsewhere."""
    query, key = _rows(attention.q_proj.weight, head), _rows(attention.k_proj.weight, head)
    for place, name in zip(_SLOW, names, strict=False):
        query[place, asked.start + name] = MATCH
        key[place, held.start + name] = 1.0
    query[_SINK, codes.constant] = REST
    key[_SINK, codes.token.start + BOS] = 1.0


def _copy(attention: Any, head: int, source: slice, target: slice) -> None:
    """What the head attends to goes from one code to another. A value has as many entries as a head has width."""
    size = source.stop - source.start
    if size > WIDTH:
        raise ValueError(f"a vocabulary of {size} tokens does not fit a head of width {WIDTH}")
    _rows(attention.v_proj.weight, head)[torch.arange(size), torch.arange(source.start, source.stop)] = 1.0
    columns = head * WIDTH + torch.arange(size)
    attention.o_proj.weight[torch.arange(target.start, target.stop), columns] = 1.0
