"""Only the layers of a model that a filter needs."""

from __future__ import annotations

import torch

from assay.methods._checks import whole
from assay.networks.pretrained import Loaded, config_of, load_model


def load_filter(name: str, *, layer: int, device: str = "cpu", dtype: torch.dtype | None = None) -> Loaded:
    """The embedding and the first ``layer + 1`` layers alone: all that ``GemFilter(layer=layer).select`` needs.

    The checkpoint is the whole model's; the layers above, the final head and their memory never exist. The selection
    is the whole model's, and its tokens go to any other model or server.
    """
    layer = whole("layer", layer)
    count = config_of(name).num_hidden_layers
    if not 0 <= layer < count:
        raise ValueError(f"layer must lie between 0 and {count - 1} for this model of {count} layers, not {layer}")
    return load_model(name, device=device, dtype=dtype, layers=layer + 1)
