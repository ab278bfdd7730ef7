"""A look at queries and keys where every architecture has them ready: at the call of its attention function."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from assay._extras import extra
from assay.methods.gemfilter.adapter.decoder import attention_at
from assay.methods.gemfilter.adapter.projecting import Projected
from assay.networks.pretrained import text_config

_names = itertools.count()

#: Told the layer, and its queries and keys after everything that the architecture does to them.
See = Callable[[int, Projected], None]


@contextmanager
def attention_seen(model: nn.Module, see: See) -> Iterator[None]:
    """An attention function of our own, which tells ``see`` and hands on to the function that the model uses."""
    with extra("llm", "a decoder of another family"):
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    attentions = attention_at(model)
    index = {id(attention): i for i, attention in attentions.items()}
    config: Any = getattr(next(iter(attentions.values())), "config", None) or text_config(model)
    before = config._attn_implementation
    usual = before or "eager"
    name = f"assay_probe_{next(_names)}"  # the registry is the whole process's: other models read at the same time

    def probe(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **kwargs: Any
    ) -> Any:
        scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
        sinks = kwargs.get("s_aux")
        sinks = None if sinks is None else sinks.detach().float().reshape(-1)
        see(index[id(module)], Projected(query, key, float(scaling), kwargs.get("softcap"), sinks))
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(usual, eager)
        return attend(module, query, key, value, attention_mask, **kwargs)

    functions, masks = type(ALL_ATTENTION_FUNCTIONS), type(ALL_MASK_ATTENTION_FUNCTIONS)
    functions.register(name, probe)
    masks.register(name, ALL_MASK_ATTENTION_FUNCTIONS[usual])
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before
        functions._global_mapping.pop(name, None)
        masks._global_mapping.pop(name, None)
