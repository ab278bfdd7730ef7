"""Log-probabilities of labels behind prompts, from any causal language model."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from assay.methods._checks import all_finite, one_of, whole
from assay.methods._models import evaluating, logits_in
from assay.networks.pretrained import context_length

Several = Literal["refuse", "sum", "mean"]
_LEAST_PREFIX = 8  # tokens that prompts must have in common before keeping their keys and values pays


@dataclass(frozen=True)
class _Job:
    """Tokens that the model reads, and runs of tokens whose probabilities are wanted, each from ``start`` on."""

    ids: list[int]
    start: int
    targets: list[list[int]]


def label_scores(
    model: nn.Module,
    tokenizer: Any,
    prompts: Sequence[str],
    labels: Sequence[str],
    *,
    batch: int = 16,
    several_tokens: Several = "refuse",
) -> Tensor:
    """Log-probability of each label right behind each prompt: (prompts, labels), float32 on the CPU.

    A label is what follows literally, with its blank (``" positive"``). One of several tokens is refused, unless
    ``several_tokens`` says that their log-probabilities are added up or averaged: a long label loses the first way, and
    wins the second. Prompts are tokenized whole; what all of them begin with is read once, and its keys and values are
    kept for the others.
    """
    whole("batch", batch, 1)
    one_of("several_tokens", several_tokens, ("refuse", "sum", "mean"))
    if not prompts or len(labels) < 2:
        raise ValueError(f"{len(prompts)} prompts and {len(labels)} labels: one prompt and two labels are the least")
    rows = [_tokens(tokenizer, prompt, labels, several_tokens) for prompt in prompts]
    _check_length(model, rows)
    single = all(len(target) == 1 for _, targets in rows for target in targets)
    if single:
        jobs = [_Job(ids, len(ids) - 1, targets) for ids, targets in rows]
    else:
        jobs = [_Job(ids + target[:-1], len(ids) - 1, [target]) for ids, targets in rows for target in targets]
    with evaluating(model), torch.no_grad():
        scores = _scored(model, jobs, batch).view(len(prompts), len(labels))
    if several_tokens == "mean":
        scores = scores / torch.tensor([[len(target) for target in targets] for _, targets in rows])
    all_finite("the scores of labels", scores)
    return scores


def _tokens(tokenizer: Any, prompt: str, labels: Sequence[str], several: Several) -> tuple[list[int], list[list[int]]]:
    """The prompt's tokens and each label's, as they stand behind it."""
    ids = list(tokenizer(prompt)["input_ids"])
    if not ids:
        raise ValueError("a prompt is empty")
    targets = []
    for label in labels:
        both = list(tokenizer(prompt + label)["input_ids"])
        target = both[len(ids) :]
        if both[: len(ids)] != ids or not target:
            raise ValueError(
                f"the label {label!r} does not begin with a token of its own behind {prompt[-12:]!r}: "
                "move the blank before it into the label, or choose another template"
            )
        if getattr(tokenizer, "unk_token_id", None) in target:
            raise ValueError(f"the label {label!r} is not in the model's vocabulary: choose another word")
        if several == "refuse" and len(target) > 1:
            pieces = ", ".join(repr(tokenizer.decode([token])) for token in target)
            raise ValueError(
                f"the label {label!r} is {len(target)} tokens ({pieces}): choose a word of one token, or say "
                "several_tokens='sum' or 'mean'"
            )
        targets.append(target)
    for at, target in enumerate(targets):
        if target in targets[:at]:
            raise ValueError(f"the labels {labels[targets.index(target)]!r} and {labels[at]!r} are the same tokens")
    return ids, targets


def _check_length(model: nn.Module, rows: Sequence[tuple[list[int], list[list[int]]]]) -> None:
    longest = max(len(ids) + max(map(len, targets)) - 1 for ids, targets in rows)
    context = context_length(model, 0) if hasattr(model, "config") else 0
    if context and longest > context:
        raise ValueError(
            f"a prompt of {longest} tokens is longer than the model's context of {context}: show fewer demonstrations, "
            "or shorter texts"
        )


def _scored(model: nn.Module, jobs: Sequence[_Job], batch: int) -> Tensor:
    """The summed log-probability of every target of every job, in order."""
    place = next((each.device for each in model.parameters()), torch.device("cpu"))
    prefix = _common(jobs)
    cache = _cached(model, jobs[0].ids[:prefix], place) if prefix >= _LEAST_PREFIX else None
    prefix = 0 if cache is None else prefix
    found: list[float] = []
    for first in range(0, len(jobs), batch):
        part = jobs[first : first + batch]
        width = max(len(job.ids) for job in part) - prefix
        # Padding stands behind the text, where a causal model does not see it.
        ids = torch.zeros(len(part), width, dtype=torch.long, device=place)
        for row, job in enumerate(part):
            ids[row, : len(job.ids) - prefix] = torch.tensor(job.ids[prefix:])
        begin = min(job.start for job in part) - prefix
        logits = _logits(model, ids, width - begin, cache)
        for row, job in enumerate(part):
            for target in job.targets:
                at = torch.arange(len(target), device=place) + (job.start - prefix - begin)
                each = logits[row, at].float().log_softmax(-1)
                found.append(float(each[torch.arange(len(target), device=place), target].sum()))
    return torch.tensor(found)


def _common(jobs: Sequence[_Job]) -> int:
    """How many tokens all jobs begin with, leaving at least the one that is read out."""
    limit = min(job.start for job in jobs)
    rows = zip(*(job.ids[:limit] for job in jobs), strict=True)
    return next((at for at, tokens in enumerate(rows) if len(set(tokens)) > 1), limit)


def _cached(model: nn.Module, ids: list[int], place: torch.device) -> Any:
    """Keys and values of the tokens, or None where the model keeps none that can be copied for several prompts."""
    if not {"past_key_values", "use_cache"} <= _parameters(model).keys():
        return None
    options = {"logits_to_keep": 1} if "logits_to_keep" in _parameters(model) else {}
    cache = getattr(model(torch.tensor([ids], device=place), use_cache=True, **options), "past_key_values", None)
    return cache if hasattr(cache, "batch_repeat_interleave") else None


def _logits(model: nn.Module, ids: Tensor, wanted: int, cache: Any) -> Tensor:
    """The logits at the last ``wanted`` positions: (batch, wanted, vocabulary)."""
    options: dict[str, Any] = {}
    if cache is not None:
        own = copy.deepcopy(cache)  # a pass writes into it
        own.batch_repeat_interleave(len(ids))
        options |= {"past_key_values": own, "use_cache": True}
    elif "use_cache" in _parameters(model):
        options["use_cache"] = False
    if "logits_to_keep" in _parameters(model):
        options["logits_to_keep"] = wanted
    logits = logits_in(model(ids, **options))
    if logits.ndim != 3 or logits.shape[0] != len(ids) or logits.shape[1] < wanted:
        raise ValueError(f"the model must return logits (batch, tokens, vocabulary), not {tuple(logits.shape)}")
    return logits[:, -wanted:]


def _parameters(model: nn.Module) -> dict[str, Any]:
    return dict(inspect.signature(model.forward).parameters)
