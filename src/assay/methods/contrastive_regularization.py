"""Fine-tuning with a contrastive regulariser: the prediction loss plus λ times a contrastive loss on the same batch.

The regulariser asks the features to keep apart what the few labels do not ask about. It needs one more view of each
sample, and with it about twice the time of plain fine-tuning. You keep model, head, optimiser and loop:

    found = contrastive_regularized_loss(encoder, head, images, labels, augment=random_view, lambda_=0.1)
    found.total.backward()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay.training.contrastive import info_nce, logistic_contrast, nt_xent

from ._checks import number, one_of, whole
from ._class_targets import as_labels, class_targets
from ._data import split_batch
from ._features import Pool, features_and_logits, features_of, finite_features, logits_of
from .momentum_queue import MomentumQueue

Contrast = Literal["simclr", "moco", "simcse", "logistic"]
Views = Callable[[Any], Any] | Literal["dropout", "embeddings"]
# What each loss is used with where it comes from.
TEMPERATURES: dict[str, float] = {"simclr": 0.5, "moco": 0.2, "simcse": 0.05, "logistic": 1.0}


@dataclass(frozen=True)
class RegularizedLoss:
    """``total`` is what to differentiate: ``prediction`` + λ · ``contrastive``. With λ = 0 it is the prediction loss
    itself, and ``contrastive``, which was not computed, is None."""

    total: Tensor
    prediction: Tensor
    contrastive: Tensor | None
    logits: Tensor

    def __repr__(self) -> str:
        numbers = {"total": self.total, "prediction": self.prediction, "contrastive": self.contrastive}
        known = [f"{name}={float(value.detach()):.4g}" for name, value in numbers.items() if value is not None]
        return f"RegularizedLoss({', '.join(known)})"


def contrastive_regularized_loss(
    model: nn.Module,
    head: nn.Module | str,
    inputs: Any,
    labels: Any = None,
    *,
    augment: Views,
    lambda_: float | None = None,
    loss: Contrast | None = None,
    temperature: float | None = None,
    projector: nn.Module | None = None,
    queue: MomentumQueue | None = None,
    pool: Pool = "mean",
    prediction: Callable[[Tensor, Tensor], Tensor] = cross_entropy,
    generator: torch.Generator | None = None,
) -> RegularizedLoss:
    """The loss of one batch: ``prediction`` of the head's logits, and λ times how badly two views are matched.

    ``model`` returns features and ``head`` makes logits of them; or ``head`` names the module in ``model`` that makes
    the logits, whose input are the features. The first view is the batch as it is given, the second

    - ``augment(inputs)`` when that is a function,
    - with "dropout" the same batch again, through other dropout masks (text),
    - with "embeddings" another of the precomputed embeddings: inputs are (n, views, dim), the model is an adapter on
      them, whose precision they take on, and ``generator`` draws which two views make a pair.

    ``lambda_`` is 0.1 with a function and 1.0 otherwise, ``loss`` simcse for dropout and simclr otherwise, where None.
    With λ = 0 there is no second view, no second pass and no random number for them: what is left is plain fine-tuning,
    bit for bit (on views that are drawn as they are with λ > 0, where inputs are embeddings). ``projector`` maps
    features to where the contrast is taken; ``queue`` has the keys and negatives of ``moco``.
    """
    strength = (0.1 if callable(augment) else 1.0) if lambda_ is None else lambda_
    one_of("pool", pool, get_args(Pool))
    contrast = _checked(augment, strength, loss, temperature, queue)
    batch, targets = split_batch(inputs, labels)
    _some(batch)
    first, second = (_in_precision(view, model, head, augment) for view in _views(batch, augment, strength, generator))
    if not strength:
        logits = logits_of(model, head, first, pool)
        plain = _mean(prediction(logits, _targets(targets, logits, prediction)))
        return RegularizedLoss(plain, plain, None, logits)
    features, logits = features_and_logits(model, head, first, pool)
    supervised = _mean(prediction(logits, _targets(targets, logits, prediction)))
    if callable(augment):
        second = augment(batch)
    if queue is not None:
        others, negatives = queue.keys(model, projector, second, pool, head)
    else:
        others, negatives = features_of(model, head, second, pool), None
        _different(features, others, augment)
        others = others if projector is None else projector(others)
    features = features if projector is None else projector(features)
    if queue is not None:
        _different(features, others, augment)
    finite_features(torch.cat([features, others]))
    value = contrast(features, others, negatives)
    if queue is not None:
        queue.add(others)
    return RegularizedLoss(supervised + strength * value, supervised, value, logits)


def contrastive_loss(kind: Contrast, temperature: float | None = None) -> Callable[..., Tensor]:
    """(first, second, negatives=None) -> loss of the kind, at its usual temperature where none is given. Keys of
    ``moco`` get no gradient."""
    one_of("loss", kind, get_args(Contrast))
    chosen = TEMPERATURES[kind] if temperature is None else temperature
    number("temperature", chosen, above=0)

    def value(first: Tensor, second: Tensor, negatives: Tensor | None = None) -> Tensor:
        if kind == "simclr":
            return nt_xent(first, second, temperature=chosen)
        if kind == "logistic":
            return logistic_contrast(first, second, temperature=chosen, negatives=negatives)
        keys = second.detach() if kind == "moco" else second
        return info_nce(first, keys, temperature=chosen, symmetric=False, negatives=negatives)

    return value


def _different(first: Tensor, second: Tensor, augment: Views) -> None:
    if augment == "dropout" and torch.equal(first, second):
        raise ValueError("two passes gave the same features: dropout is off, so call model.train() or give augment")


def _mean(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        kind = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"prediction must give one number for the batch, as a tensor, not {kind}")
    return value


def _targets(labels: Any, logits: Tensor, prediction: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    if labels is None:
        raise ValueError("labels are missing: give them, or have them under 'labels' in the batch")
    found = as_labels(labels, logits.device)
    if len(found) != len(logits):
        raise ValueError(f"{len(logits)} inputs come with {len(found)} labels")
    return class_targets(found, logits) if prediction is cross_entropy else found


def _some(batch: Any) -> None:
    values = batch.values() if isinstance(batch, Mapping) else [batch]
    if 0 in [len(value) for value in values if isinstance(value, Tensor) and value.ndim]:
        raise ValueError("the batch holds no sample")


def _in_precision(view: Any, model: nn.Module, head: nn.Module | str, augment: Views) -> Any:
    """Precomputed embeddings in the precision of the weights that read them first."""
    if augment != "embeddings":
        return view
    modules = [model, head] if isinstance(head, nn.Module) else [model]
    weights = (weight for module in modules for weight in module.parameters() if weight.is_floating_point())
    first = next(weights, None)
    return view if first is None else view.to(first.dtype)


def _views(inputs: Any, augment: Views, strength: float, generator: torch.Generator | None) -> tuple[Any, Any]:
    """The batch to predict on, and its second view where that needs no function."""
    if augment != "embeddings":
        return inputs, inputs
    return embedding_pair(checked_views(inputs, 2 if strength else 1), generator)


def checked_views(embeddings: Any, least: int = 2) -> Tensor:
    """The same embeddings; refused where there are fewer than ``least`` views of each."""
    if not isinstance(embeddings, Tensor) or embeddings.ndim != 3:
        kind = tuple(embeddings.shape) if isinstance(embeddings, Tensor) else type(embeddings).__name__
        raise ValueError(f"embeddings must be a tensor (n, views, dim), not {kind}")
    if (views := embeddings.shape[1]) < least:
        words = "a pair needs at least two views" if least == 2 else "there must be a view"
        raise ValueError(f"{words} of each embedding, and there {'is one' if views else 'are none'}")
    return embeddings


def checked_augment(augment: Views) -> None:
    """Refuse what names no way to a second view."""
    if not callable(augment):
        one_of("augment", augment, ("dropout", "embeddings"), " or a function of the inputs")


def embedding_pair(embeddings: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Two views (n, dim) of each of the embeddings (n, views, dim), different ones where there are two. Both are drawn
    whatever they are used for, so that runs with and without a regulariser predict on the same views."""
    count, views = embeddings.shape[:2]
    if views == 1:
        return embeddings[:, 0], embeddings[:, 0]
    if generator is None:
        raise ValueError("a generator must be given: it draws which views of the embeddings make a pair")
    rows = torch.arange(count, device=embeddings.device)
    first = torch.randint(views, (count,), generator=generator)
    second = (first + torch.randint(1, views, (count,), generator=generator)) % views
    return embeddings[rows, first.to(rows.device)], embeddings[rows, second.to(rows.device)]


def _checked(
    augment: Views, strength: float, loss: Contrast | None, temperature: float | None, queue: MomentumQueue | None
) -> Callable[..., Tensor]:
    number("lambda_", strength, least=0)
    checked_augment(augment)
    kind = loss or ("simcse" if augment == "dropout" else "simclr")
    if queue is not None and kind not in ("moco", "logistic"):
        raise ValueError(f"a queue is for the losses moco and logistic, not for {kind!r}")
    return contrastive_loss(kind, temperature)


def adapter(dim: int, out: int | None = None, *, hidden: int = 1024) -> nn.Sequential:
    """Two layers with a ReLU between a frozen backbone's embeddings (n, dim) and a linear classifier."""
    whole("dim", dim, 1)
    whole("hidden", hidden, 1)
    out = dim if out is None else whole("out", out, 1)
    return nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, out))
