"""The corrected table of costs as numbers, for the models of the text."""

from __future__ import annotations

from assay.methods.gemfilter.cost import Cost, Shape, cost_model

# The models of the text, with the filter layers that it uses (counted from 0).
MODELS = {
    "LLaMA 3.1 8B": (Shape(32, 4096, 14_336, 32, 8, 128, 128_256), 13),
    "Mistral Nemo 12B": (Shape(40, 5120, 14_336, 32, 8, 128, 131_072), 19),
    "Phi-3.5 Mini": (Shape(32, 3072, 8192, 32, 32, 96, 32_064), 19),
}


#: The prompt on which memory is compared: 120k tokens, the longest of the text's.
LONG = 122_880


def ceiling(layers: int, layer: int) -> float:
    """m / r: what the prefill's speed-up tends to as the prompt grows (the case study of Section 9.3.2)."""
    return layers / layer


def costs(name: str, n: int, keep: int = 1024, new: int = 50) -> dict[str, Cost]:
    """The corrected table of costs for a model of the text; ``filter only`` loads the layers of pass 1 alone."""
    shape, layer = MODELS[name]
    methods = ("full", "snapkv", "h2o", "gemfilter", "one-run")
    made = {method: cost_model(method, shape, n=n, keep=keep, new=new, layer=layer) for method in methods}
    made["filter only"] = cost_model("gemfilter", shape, n=n, keep=keep, new=new, layer=layer, resident=False)
    return made
