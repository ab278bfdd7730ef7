"""What a user hands over, checked where it comes in.

Numbers: text, a flag or NaN fails at once and by name, not later as an error of the arithmetic, or as no error at all
(NaN passes every comparison that asks for what is wrong). Models: one that computes a pass anew for its gradient
(gradient checkpointing) fails where other weights would be in place by then, and the gradient silently wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.autograd.graph import disable_saved_tensors_hooks
from torch.utils._pytree import tree_leaves


def number(name: str, value: Any, *, infinite: bool = False) -> None:
    """Refuse what is not a finite number; ``infinite`` allows ±∞. NumPy's numbers and tensors of one element, such as
    a temperature that is learned, are numbers too."""
    tensor = isinstance(value, (Tensor, np.ndarray)) and math.prod(value.shape) == 1
    inside = value.item() if tensor else value
    if isinstance(inside, bool) or not isinstance(inside, Real) or math.isnan(inside):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if math.isinf(inside) and not infinite:
        raise ValueError(f"{name} must be finite, not {value!r}")


def whole(name: str, value: Any) -> None:
    """Refuse what is not an integer, NumPy's included."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer, not {value!r}")


@contextmanager
def no_recomputation(model: nn.Module, reason: str, *, reentrant_only: bool = False) -> Iterator[None]:
    """Within the context a pass of ``model`` that gradient checkpointing would repeat in the backward pass fails with
    ``reason``. Passes without gradients are never repeated, and pass.

    The usual form of checkpointing keeps hooks on saved tensors, which PyTorch can forbid; so does a model that sends
    its activations elsewhere, and it is refused with it. The reentrant form leaves a node of its own in the graph, and
    gives nothing to whoever asks for the gradient of chosen weights.
    """

    def inspect(_: nn.Module, args: Any, kwargs: Any, outputs: Any) -> None:
        # What was computed before, inputs and weights, is not the model's own doing.
        seen = _nodes((args, kwargs, list(model.parameters())))
        ready = list(_nodes(outputs))
        while ready:
            node = ready.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.name() == "CheckpointFunctionBackward":
                raise RuntimeError(reason)
            ready += [source for source, _ in node.next_functions if source is not None]

    with ExitStack() as stack:
        if not reentrant_only:
            with suppress(RuntimeError):  # hooks around the whole step, such as save_on_cpu's, are there and do no harm
                stack.enter_context(disable_saved_tensors_hooks(reason))
        stack.callback(model.register_forward_hook(inspect, with_kwargs=True).remove)
        yield


def _nodes(values: Any) -> set[Any]:
    """The graph nodes that the tensors among ``values`` come from."""
    return {leaf.grad_fn for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.grad_fn is not None}
