"""Forward magnitude pruning for contrastive learning on imbalanced data.

The smallest weights or neurons are masked in the forward pass that decides how hard each pair is; nothing is ever
removed. Neurons of rare features are small, so masking them makes samples with rare features look badly matched, and
the unmasked gradient then works on exactly those samples. You keep your encoder, optimiser and loop:

    pruner = ForwardMagnitudePruner(encoder, alpha=0.3)
    for first, second in views:
        loss = pruner.loss(first, second)
        loss.surrogate.backward()
        optimizer.step(); optimizer.zero_grad()
    pruner.end_epoch()
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from ._checks import number, one_of
from ._data import checked, split_batch
from ._features import features_in
from ._models import no_recomputation, output_of
from .pruned_infonce import PrunedLoss, pruned_infonce
from .pruning_masks import Layers, MaskReport, chosen_layers, keep_largest
from .trainer_callbacks import watch_lightning, watch_trainer

Granularity = Literal["neuron", "weight"]
Scope = Literal["layer", "global"]
Mode = Literal["logit_masked", "straight_through", "self_competitor"]
Refresh = Literal["step", "epoch"]
RECOMPUTES = (
    "the encoder uses gradient checkpointing, which would repeat the masked pass with unmasked weights when gradients "
    "are taken: switch it off, or use mode='logit_masked', whose masked pass has no gradient"
)


class ForwardMagnitudePruner:
    """Masks the smallest neurons or weights of an encoder in the forward pass, and gives the matching loss.

    ``alpha`` is the share that is masked, ``granularity`` what is masked: single weights, or neurons (rows or filters
    with their bias). ``scope`` compares magnitudes within each layer or over all of them. ``layers`` chooses by name or
    by a predicate ``(name, module)``; by default every linear and convolution layer that trains, never norms: a frozen
    layer's magnitudes say nothing of what is being learned. ``start`` is the first step with a mask, ``refresh`` when
    the mask is computed anew. Ties go to the lower index.

    ``mode``: ``logit_masked`` takes the softmax from the masked encoder and the gradient from the full one, so that
    masked neurons learn too; ``straight_through`` differentiates the masked encoder, so that masked weights get no
    gradient; ``self_competitor`` compares the full encoder's view with the masked encoder's.

    Weights are exchanged for θ ⊙ mask only while the masked pass runs, never changed in place. With ``separate_bn`` the
    masked encoder keeps running statistics of its own; without, its pass leaves the shared ones as they are. In
    ``straight_through`` there is no other pass than the masked one, so it writes the encoder's own statistics.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        alpha: float,
        granularity: Granularity = "weight",
        scope: Scope = "global",
        layers: Layers | None = None,
        mode: Mode = "logit_masked",
        start: int = 0,
        refresh: Refresh = "epoch",
        separate_bn: bool = True,
    ) -> None:
        number("alpha", alpha, least=0, below=1)
        number("start", start, least=0, infinite=True)
        for name, value, known in (
            ("granularity", granularity, get_args(Granularity)),
            ("scope", scope, get_args(Scope)),
            ("mode", mode, get_args(Mode)),
            ("refresh", refresh, get_args(Refresh)),
        ):
            one_of(name, value, known)
        self.encoder, self.alpha, self.granularity, self.scope = encoder, alpha, granularity, scope
        self.mode, self.start, self.refresh, self.separate_bn = mode, start, refresh, separate_bn
        self.layers = chosen_layers(encoder, layers)
        self.steps = 0
        self.masks: dict[str, Tensor] = {}
        self._statistics: dict[str, Tensor] = {}
        if not any(self.update_mask().pruned.values()) and alpha:
            warnings.warn(f"alpha = {alpha} rounds to no {granularity} at all: nothing is masked", stacklevel=2)

    @torch.no_grad()
    def update_mask(self) -> MaskReport:
        """Compute the mask from the present magnitudes: 1 keeps, 0 prunes."""
        sizes = {name: self._magnitudes(layer.weight, layer.axis) for name, layer in self.layers.items()}
        if self.scope == "global":
            kept = keep_largest(torch.cat([size.reshape(-1) for size in sizes.values()]), self.alpha)
            parts = torch.split(kept, [size.numel() for size in sizes.values()])
        else:
            parts = tuple(keep_largest(size.reshape(-1), self.alpha) for size in sizes.values())
        self.masks = {name: part.reshape(sizes[name].shape) for name, part in zip(sizes, parts, strict=True)}
        if empty := [name for name, mask in self.masks.items() if not bool(mask.any())]:
            warnings.warn(f"every {self.granularity} of {', '.join(empty)} is pruned: try scope='layer'", stacklevel=2)
        return self.report()

    def report(self) -> MaskReport:
        """What the present mask hides, layer by layer; the mask is as old as its last refresh."""
        return MaskReport(
            {name: int((~mask).sum()) for name, mask in self.masks.items()},
            {name: mask.numel() for name, mask in self.masks.items()},
        )

    @property
    def active(self) -> bool:
        """Whether the next step masks anything."""
        return self.alpha > 0 and self.steps >= self.start and not all(bool(m.all()) for m in self.masks.values())

    def _magnitudes(self, weight: Tensor, axis: int = 0) -> Tensor:
        if self.granularity == "weight":
            return weight.abs()
        found: Tensor = torch.linalg.vector_norm(weight.movedim(axis, 0).flatten(1), dim=1)
        return found

    @contextmanager
    def applied(self) -> Iterator[nn.Module]:
        """Within the context the encoder computes with masked weights (and, with ``separate_bn``, its own statistics).
        Afterwards every parameter and buffer is the object that it was, with the value that it had, whatever was
        raised inside. Only in ``straight_through`` are buffers left to the pass. A pass that would be computed anew for
        its gradient (gradient checkpointing) is refused, since the true weights are back by then."""
        masked = self._masked_tensors()
        taken: list[tuple[dict[str, Any], str, Any]] = []
        copies: dict[int, Tensor] = {}  # buffers that modules share stay shared
        try:
            for prefix, module in self.encoder.named_modules():
                for name, parameter in module._parameters.items():
                    if id(parameter) in masked:
                        taken.append((module._parameters, name, parameter))
                        module._parameters[name] = masked[id(parameter)]
                if self.mode == "straight_through":
                    continue
                norm = self.separate_bn and isinstance(module, nn.modules.batchnorm._NormBase)
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        taken.append((module._buffers, name, buffer))
                        if id(buffer) not in copies:
                            copies[id(buffer)] = self._own(f"{prefix}.{name}", buffer) if norm else buffer.clone()
                        module._buffers[name] = copies[id(buffer)]
            with no_recomputation(self.encoder, RECOMPUTES):
                yield self.encoder
        finally:
            for shelf, name, original in reversed(taken):
                shelf[name] = original

    def _masked_tensors(self) -> dict[int, Tensor]:
        """θ ⊙ mask of every chosen weight, and of its bias when whole neurons are masked, by the identity of θ."""
        found: dict[int, Tensor] = {}
        for name, layer in self.layers.items():
            weight, bias = layer.weight, getattr(layer.module, layer.bias_name, None)
            mask = self.masks[name] = self.masks[name].to(weight.device)  # the encoder may have moved
            if self.granularity == "weight":
                found[id(weight)] = weight * mask
                continue
            shape = [1] * weight.ndim
            shape[layer.axis] = -1
            found[id(weight)] = weight * mask.view(shape)
            if isinstance(bias, Tensor):
                keep = torch.ones_like(bias, dtype=torch.bool)
                keep[layer.first : layer.first + len(mask)] = mask
                found[id(bias)] = found.get(id(bias), bias) * keep
        return found

    def _own(self, name: str, buffer: Tensor) -> Tensor:
        """The masked branch's running statistic, kept between passes."""
        kept = self._statistics.get(name)
        self._statistics[name] = buffer.clone() if kept is None else kept.to(buffer)
        return self._statistics[name]

    def state_dict(self) -> dict[str, Any]:
        """What a resumed training needs beside the encoder and the optimiser: steps, masks, masked statistics."""
        masks, statistics = ({k: v.clone() for k, v in part.items()} for part in (self.masks, self._statistics))
        return {"steps": self.steps, "masks": masks, "statistics": statistics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` of a pruner with the same layers and granularity returned."""
        shapes = ({name: tuple(mask.shape) for name, mask in masks.items()} for masks in (self.masks, state["masks"]))
        if next(shapes) != next(shapes):
            raise ValueError("the state's masks are those of other layers or of another granularity")
        self.steps = int(state["steps"])
        self.masks = {name: state["masks"][name].bool().clone() for name in self.masks}
        self._statistics = {name: value.clone() for name, value in state["statistics"].items()}

    def masked(self, *args: Any, **kwargs: Any) -> Any:
        """The masked encoder's output; gradients flow to the weights that the mask keeps."""
        with self.applied() as encoder:
            return encoder(*args, **kwargs)

    def loss(
        self,
        x: Any,
        y: Any,
        *,
        tau: float = 0.2,
        normalize: bool = True,
        symmetric: bool = True,
        stop_gradient: bool = True,
    ) -> PrunedLoss:
        """The loss of one step on two views of the same samples; counts the step and refreshes the mask when due."""
        if self.refresh == "step" and self.steps >= self.start:
            self.update_mask()
        options = dict(tau=tau, normalize=normalize, symmetric=symmetric, stop_gradient=stop_gradient)
        found = self._embeddings(_view(x), _view(y), options)
        self.steps += 1
        return found

    def baseline(self, x: Any, y: Any, **options: Any) -> PrunedLoss:
        """The loss without any mask, with the same options and so with a gradient of the same length: what a comparison
        with training as usual is to be made against. It counts no step."""
        f_x, f_y = self._embedded(_view(x)), self._embedded(_view(y))
        return pruned_infonce(f_x, f_y, f_x, f_y, **options)

    def end_epoch(self) -> None:
        """Tell the pruner that an epoch is over."""
        if self.refresh == "epoch":
            self.update_mask()

    def trainer_callback(self) -> Any:
        """A callback for Hugging Face's Trainer that ends the pruner's epochs; ``compute_loss`` calls ``loss``."""
        return watch_trainer(lambda model: _Epochs(self))

    def lightning_callback(self) -> Any:
        """A callback for Lightning that ends the pruner's epochs; ``training_step`` calls ``loss``."""
        return watch_lightning(lambda model: _Epochs(self))

    def _embedded(self, view: Any, masked: bool = False) -> Tensor:
        """Embeddings of a tensor or a mapping; the tokens of a record are averaged."""
        found = output_of(self.masked if masked else self.encoder, view)
        return found if isinstance(found, Tensor) else features_in(found, view)

    def _embeddings(self, x: Any, y: Any, options: dict[str, Any]) -> PrunedLoss:
        if not self.active:
            return self.baseline(x, y, **options)
        if self.mode == "logit_masked":
            f_x, f_y = self._embedded(x), self._embedded(y)
            with torch.no_grad():
                m_x, m_y = self._embedded(x, masked=True), self._embedded(y, masked=True)
            return pruned_infonce(f_x, f_y, m_x, m_y, **options)
        f_x = self._embedded(x, masked=self.mode == "straight_through")
        m_y = self._embedded(y, masked=True)
        return pruned_infonce(f_x, m_y, f_x, m_y, **options)


def _view(inputs: Any) -> Any:
    """A view as a tensor or a mapping of tensors, without labels; refused where it is not finite."""
    return checked(split_batch(inputs)[0])


@dataclass(frozen=True)
class _Epochs:
    """What a trainer's callback tells the pruner: the end of each epoch. Steps are counted by ``loss``."""

    pruner: ForwardMagnitudePruner

    def step(self) -> None:
        """Nothing is to be done."""

    def epoch(self) -> None:
        self.pruner.end_epoch()

    def report(self) -> MaskReport:
        return self.pruner.report()
