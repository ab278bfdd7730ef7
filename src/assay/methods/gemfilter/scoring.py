"""Which tokens does a row of attention point at? Scores of the prompt's tokens from queries and keys of one layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

RULES = ("logits", "softmax", "window")
_BLOCK = 16_384


def logit_scores(query: Tensor, keys: Tensor) -> Tensor:
    """Σ_h q_h·K_kv(h), raw and unscaled: query (heads, width), keys (kv_heads, n, width) -> (n,).

    Queries are summed within a key's group before the product, which is the same by linearity and needs no repeated
    keys; long prompts are scored in blocks, in float32 whatever the model's dtype.
    """
    grouped = query.reshape(keys.shape[0], -1, query.shape[-1]).float().sum(dim=1)
    with torch.autocast(keys.device.type, enabled=False):
        blocks = [torch.einsum("gd,gnd->n", grouped, block.float()) for block in torch.split(keys, _BLOCK, dim=1)]
    return torch.cat(blocks)


def attention_rows(
    queries: Tensor,
    keys: Tensor,
    scaling: float,
    last: int | None = None,
    *,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Softmax attention of some rows: queries (heads, rows, width), keys (kv_heads, n, width) -> (heads, rows, n).

    The rows are consecutive positions; ``last`` is the last one's position (the end of the prompt by default), and
    keys after a row's own position are masked. ``softcap`` bounds the logits as the model does, c·tanh(logits/c), and
    ``sinks`` (heads,) are logits that stand beside those of the keys and draw attention off them.
    """
    logits = causal_logits(queries, keys, scaling, last, softcap=softcap)
    if sinks is None:
        return logits.softmax(dim=-1)
    return torch.cat([logits, sinks[:, None, None].expand(-1, logits.shape[1], 1)], dim=-1).softmax(dim=-1)[..., :-1]


def causal_logits(
    queries: Tensor, keys: Tensor, scaling: float, last: int | None = None, *, softcap: float | None = None
) -> Tensor:
    """What ``attention_rows`` takes the softmax of: -inf at keys after a row's own position."""
    n, rows = keys.shape[1], queries.shape[1]
    last = n - 1 if last is None else last
    grouped = queries.reshape(keys.shape[0], -1, queries.shape[-1]).float() * scaling
    with torch.autocast(keys.device.type, enabled=False):
        blocks = [grouped @ block.float().transpose(1, 2) for block in torch.split(keys, _BLOCK, dim=1)]
    logits = (blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=-1)).reshape(-1, rows, n)
    if softcap is not None:
        logits = softcap * (logits / softcap).tanh()
    first = last - rows + 1
    if rows > 1 or last < n - 1:
        later = torch.arange(first, n, device=keys.device) > torch.arange(first, last + 1, device=keys.device)[:, None]
        logits[:, :, first:].masked_fill_(later, float("-inf"))
    return logits


def largest_row(rule: str, queries: Tensor, keys: Tensor, scaling: float, block: int = 256) -> int:
    """The position whose causal attention row, over all heads, has the largest norm; of equals the first.

    The row is of logits under the rule ``logits``. Under ``softmax`` it is of probabilities, and the first token wins,
    whatever the prompt: it has only itself to attend to. Rows come ``block`` at a time: queries (heads, n, width).
    """
    best, place = -1.0, 0
    for start in range(0, queries.shape[1], block):
        part = queries[:, start : start + block]
        stop = start + part.shape[1]
        rows = causal_logits(part, keys[:, :stop], scaling)
        rows = rows.softmax(dim=-1) if rule == "softmax" else rows.masked_fill(rows.isinf(), 0.0)
        norms = rows.square().sum(dim=(0, 2))
        if float(norms.max()) > best:
            best, place = float(norms.max()), start + int(norms.argmax())
    return place


def token_scores(
    rule: str,
    queries: Tensor,
    keys: Tensor,
    scaling: float,
    last: int | None = None,
    *,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """The score of every key under a rule: queries (heads, rows, width), keys (kv_heads, n, width) -> (n,).

    ``logits`` is the text's rule and looks at the last of the rows alone, as does ``softmax``; ``window`` averages the
    attention of all rows. All three sum over heads. A soft cap and sinks change attention; raw logits stay raw.
    """
    if rule == "logits":
        return logit_scores(queries[:, -1], keys)
    rows = queries[:, -1:] if rule == "softmax" else queries
    return attention_rows(rows, keys, scaling, last, softcap=softcap, sinks=sinks).mean(dim=1).sum(dim=0)


def pool(scores: Tensor, kind: str | None, kernel: int, *, count_include_pad: bool = True) -> Tensor:
    """Spread scores to neighbours, (..., n) -> (..., n). Average pooling pads with zeros, as the text's does: on signed
    logits that moves the two ends towards zero; ``count_include_pad=False`` averages real neighbours only."""
    if kind is None or kernel == 1:
        return scores
    flat = scores.reshape(-1, 1, scores.shape[-1])
    if kind == "avg":
        pooled = functional.avg_pool1d(flat, kernel, 1, kernel // 2, count_include_pad=count_include_pad)
    else:
        pooled = functional.max_pool1d(flat, kernel, 1, kernel // 2)
    return pooled.reshape(scores.shape)


def best_positions(scores: Tensor, keep: int, *, keep_first: int = 0, keep_last: int = 0) -> Tensor:
    """The ``keep`` best positions in rising order, (..., n) -> (..., min(keep, n)); of equals the earlier wins.

    The first ``keep_first`` and last ``keep_last`` positions are in whatever their scores, and count."""
    n = scores.shape[-1]
    forced = torch.zeros(n, dtype=torch.bool, device=scores.device)
    forced[:keep_first] = True
    forced[n - min(keep_last, n) :] = True
    ranked = scores.masked_fill(forced, float("inf"))
    order = ranked.sort(dim=-1, descending=True, stable=True).indices
    return order[..., : min(keep, n)].sort(dim=-1).values
