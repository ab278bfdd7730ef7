"""Exploratory: give a trained attention layer a smaller key-query rank, and see what it loses.

In a solvable model the small network is the large one cut to the leading directions. Here the same cut is made in a
trained model: each head's key-query matrix becomes the matrix of rank r whose scores differ least, in mean square over
what the layer reads. Nothing says that a trained model then behaves like a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, altair
from assay.methods._checks import all_finite, check_fields, limits, whole
from assay.methods._models import evaluating
from assay.methods.gemfilter.adapter.decoder import attentions_of, decoder_of
from assay.methods.rank_noise import spectrum
from assay.networks.pretrained import text_config

from ._arrays import of_tensors

_HALVES = ("LlamaAttention", "MistralAttention", "Qwen2Attention")  # rotate entry i with entry i + width / 2


@dataclass(frozen=True, repr=False)
class Truncation(Report):
    """What the cut left: the share ``kept`` (layers, heads) of the mean square of the scores, before rotation where the
    model rotates."""

    rank: int
    layers: tuple[int, ...]
    kept: Tensor

    def headline(self) -> str:
        """Rank and the least share."""
        return f"queries of rank {self.rank} keep at least {float(self.kept.min()):.1%} of any head's scores"

    def table(self) -> list[dict[str, Any]]:
        """A row per layer: the least, the mean and the largest share over its heads."""
        rows = zip(self.layers, self.kept, strict=True)
        return [
            {"layer": layer, "least": float(row.min()), "mean": float(row.mean()), "most": float(row.max())}
            for layer, row in rows
        ]

    def figure(self) -> Any:
        """The shares over the layers."""
        alt = altair("the figure of a report")
        base = alt.Chart(alt.Data(values=self.table())).encode(x=alt.X("layer:Q", axis=alt.Axis(tickMinStep=1)))
        y = alt.Y("mean:Q", title="share of the scores' mean square kept", axis=alt.Axis(format="%"))
        return base.mark_rule().encode(y="least:Q", y2="most:Q") + base.mark_line(point=True).encode(y=y)


@dataclass(frozen=True)
class LowRankAttention:
    """Cut every head of ``layers`` (all of them by default) to key-query rank ``rank``, for the time of a context.

    Exploratory. Works on Hugging Face decoders with separate query and key projections (Llama, Mistral, Qwen 2, OPT).
    Only query weights change, since several heads may share a key: a query projection of rank r makes the product one.
    ``pretraining`` is the N of the metric Γ = (1 + 1/N)Λ + tr(Λ)/N on the key side; left out it is Λ, which makes the
    error the mean square change of a score.
    """

    rank: int = field(metadata=limits(least=1))
    layers: Sequence[int] | None = None
    pretraining: float | None = field(default=None, metadata=limits(least=1))

    def __post_init__(self) -> None:
        check_fields(self)

    @contextmanager
    def attach(self, model: nn.Module, moments: Mapping[int, Tensor]) -> Iterator[Truncation]:
        """The model with the cut inside, its own weights again behind. ``moments`` come from ``attention_moments``. A
        head that is no wider than the rank keeps its weights bit for bit."""
        chosen = _chosen(model, self.layers)
        if missing := [layer for layer in chosen if layer not in moments]:
            raise ValueError(
                f"there are no moments of layer {missing[0]}: attention_moments(model, batches, layers=...)"
            )
        attentions = attentions_of(model)
        made = [self._cut(model, attentions[layer], moments[layer]) for layer in chosen]
        with ExitStack() as stack:
            stack.callback(torch.clear_autocast_cache)
            for layer, (weight, _) in zip(chosen, made, strict=True):
                projection: Any = attentions[layer].q_proj
                stack.callback(setattr, projection.weight, "data", projection.weight.data)
                projection.weight.data = weight
            torch.clear_autocast_cache()  # which may hold the weights that were there before
            yield Truncation(self.rank, tuple(chosen), torch.stack([kept for _, kept in made]))

    def _cut(self, model: nn.Module, attention: Any, moment: Tensor) -> tuple[Tensor, Tensor]:
        """The query weights of a layer and the share that each head keeps."""
        query, key = attention.q_proj.weight.data, attention.k_proj.weight.data
        width = int(getattr(attention, "head_dim", 0)) or len(query) // text_config(model).num_attention_heads
        heads, groups = len(query) // width, len(query) // len(key)
        moment = moment.to(query.device)
        parts = []
        for head in range(heads):
            own = query[head * width : (head + 1) * width]
            shared = key[head // groups * width : (head // groups + 1) * width]
            parts.append(
                truncated_queries(own, shared, moment, self.rank, self.pretraining, _rotates(model, attention))
            )
        return torch.cat([weight for weight, _ in parts]), torch.tensor([kept for _, kept in parts])


@of_tensors
def truncated_queries(
    query: Tensor, key: Tensor, moment: Tensor, rank: int, pretraining: float | None = None, rotary: bool = False
) -> tuple[Tensor, float]:
    """Query weights (width, dim) of rank at most ``rank`` whose scores with the keys of weights ``key`` differ least in
    mean square, over independent inputs with second moment ``moment`` (dim, dim); and the share of the mean square that
    they keep. With ``rotary`` the mean is over all rotations of entry i with entry i + width / 2 too."""
    if query.shape != key.shape or moment.shape != (query.shape[1],) * 2:
        shapes = (tuple(each.shape) for each in (query, key, moment))
        raise ValueError(
            "queries and keys (width, dim) and a moment (dim, dim) are needed, not {}, {}, {}".format(*shapes)
        )
    all_finite("queries and keys", query, key)
    query, key = query.detach(), key.detach().to(query)
    values, basis = spectrum(moment)
    assert basis is not None
    values, basis = values.to(query.device), basis.to(query.device)
    if whole("rank", rank, 1) >= len(query):
        return query, 1.0
    weights, keys = query.double() @ basis, key.double() @ basis
    metric = values if pretraining is None else values * ((1 + 1 / pretraining) * values + values.sum() / pretraining)
    scale = (keys * metric) @ keys.mT
    if rotary:
        halves = scale.diagonal().view(2, -1).mean(0)
        scale = torch.diag(torch.cat([halves, halves]))
    size, turn = torch.linalg.eigh(scale)
    root = values.sqrt()
    _, strength, right = torch.linalg.svd((turn * size.clamp_min(0).sqrt()).mT @ weights * root, full_matrices=False)
    read = right[:rank]
    inverse = torch.where(root > 1e-8 * root.max(), 1 / root.clamp_min(torch.finfo(root.dtype).tiny), 0.0)
    made = ((weights * root) @ read.mT) @ (read * inverse)
    total = strength.square().sum()
    kept = float(strength[:rank].square().sum() / total) if total > 0 else 1.0
    return (made @ basis.mT).to(query.dtype), kept


def attention_moments(
    model: nn.Module, batches: Iterable[Any], *, layers: Sequence[int] | None = None
) -> dict[int, Tensor]:
    """E[xxᵀ] (dim, dim), float64, of what the attention of each layer reads on ``batches``: tensors of token ids, or
    mappings as tokenizers return them, whose padding is left out."""
    chosen = _chosen(model, layers)
    attentions = attentions_of(model)
    sums: dict[int, Tensor] = {}
    count, mask = 0, torch.ones(())

    def reader(layer: int) -> Any:
        def read(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            rows = given[0].detach()[mask].double()
            sums[layer] = sums.get(layer, 0) + rows.mT @ rows

        return read

    place = next(model.parameters()).device
    with evaluating(model), torch.no_grad(), ExitStack() as stack:
        for layer in chosen:
            projection: Any = attentions[layer].q_proj
            stack.callback(projection.register_forward_pre_hook(reader(layer)).remove)
        for batch in batches:
            given = dict(batch) if isinstance(batch, Mapping) else {"input_ids": torch.as_tensor(batch)}
            given = {name: torch.as_tensor(each).to(place) for name, each in given.items()}
            mask = given.get("attention_mask", torch.ones_like(given["input_ids"])).bool()
            model(**given)
            count += int(mask.sum())
    dim = next(iter(sums.values())).shape[0] if sums else 0
    if count < max(dim, 1):
        raise ValueError(f"{count} tokens do not fix the moments of {dim} dimensions: give it more text")
    return {layer: each / count for layer, each in sums.items()}


def _chosen(model: nn.Module, layers: Sequence[int] | None) -> list[int]:
    """The layers, each with projections that are understood."""
    attentions = attentions_of(model)
    chosen = [whole("a layer", each, 0, len(attentions) - 1) for each in layers or range(len(attentions))]
    for layer in chosen:
        for name in ("q_proj", "k_proj"):
            if type(getattr(attentions[layer], name, None)) is not nn.Linear:
                kind = type(attentions[layer]).__name__
                raise ValueError(f"{kind} has no plain {name}: only separate query and key projections can be cut")
        _rotates(model, attentions[layer])
    return chosen


def _rotates(model: nn.Module, attention: nn.Module) -> bool:
    """Whether queries and keys are rotated by their positions; what else happens to them is refused."""
    kind = type(attention).__name__
    if hasattr(attention, "q_norm") or hasattr(attention, "q_layernorm"):
        raise ValueError(f"{kind} normalises queries, whose scores are not linear in them")
    if kind in _HALVES:
        return True
    if any("rotary" in name for name, _ in decoder_of(model).named_modules()):
        raise ValueError(f"it is not known which entries {kind} rotates together")
    return False
