"""A model that belongs to somebody else: find a part of it, read its answer, run it without leaving a trace, notice
what it recomputes."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import disable_saved_tensors_hooks
from torch.utils._pytree import tree_leaves

COMPILED = "_orig_mod."  # how torch.compile begins the names of what it wraps


def as_written(model: nn.Module) -> nn.Module:
    """The model that was compiled, and any other as it is."""
    found: nn.Module = getattr(model, "_orig_mod", model)
    return found


def output_of(model: Any, inputs: Any) -> Any:
    """What the model returns for a tensor, or for a mapping such as a tokenizer makes, whose entries are keywords."""
    return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def logits_in(output: Any) -> Tensor:
    """A model's output, or its ``logits`` where it returns a record as Hugging Face models do."""
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        raise ValueError(f"the model must return a tensor or a record with logits, not {type(logits).__name__}")
    return logits


def answer(model: Any, inputs: Any) -> Tensor:
    """The model's answer to a tensor or a mapping; of a record, its ``logits``."""
    return logits_in(output_of(model, inputs))


def device_of(model: nn.Module) -> torch.device:
    """Where the model's first weight is, the CPU where it has none."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def unknown(what: str, name: str, known: Iterable[str]) -> ValueError:
    """The refusal of a name that the model does not have: it names those that look like it, or all."""
    names = [each for each in known if each]
    close = difflib.get_close_matches(name, names, n=3) or names
    return ValueError(f"the model has no {what} {name!r}; it has {', '.join(close)}")


def module_named(model: nn.Module, name: str, what: str = "layer") -> nn.Module:
    """The module of this name, "" for the model itself."""
    modules: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if name not in modules:
        raise unknown(what, name, modules)
    return modules[name]


def copied(model: nn.Module) -> nn.Module:
    """A deep copy, also of a model with masked layers: their weights are computed from others, and PyTorch copies no
    tensor that has a history."""
    own = (value for module in model.modules() for value in vars(module).values())
    computed = {id(value): value.detach().clone() for value in own if isinstance(value, Tensor) and not value.is_leaf}
    return copy.deepcopy(model, computed)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; every module gets its own mode back, since parts of a model may be frozen on purpose."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, training in modes.items():
            module.training = training


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
