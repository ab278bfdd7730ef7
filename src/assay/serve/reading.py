"""GemFilter for the page: the answer, the kept passages of the text, and what every layer would have kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

COLUMNS = 120  # places along the text into which the scan of a layer is summed up


def missing(model: str) -> str | None:
    """Why the page cannot be used here; None where it can."""
    from assay.lab.requirements import missing_requirement

    return missing_requirement(("extra:llm", f"model:{model}"), "cpu")


def read(model: str, asked: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    from assay.methods.gemfilter.comparing import Comparison, ask
    from assay.methods.gemfilter.every_layer import every_layer
    from assay.networks import load_model

    say(f"loading {model}")
    loaded = load_model(model)
    layer = loaded.layers // 2 if asked["layer"] is None else asked["layer"]
    if layer >= loaded.layers:
        raise ValueError(f"the model has {loaded.layers} layers, counted from 0, and none of number {layer}")
    say("reading the text")
    comparison = Comparison(("gemfilter",), asked["keep"], layer, asked["rule"], "auto")
    made = ask(loaded, comparison, asked["text"], asked["question"], new=asked["new"], tell=say)
    assert made.selection is not None  # GemFilter is always asked
    say("scanning every layer")
    kept = every_layer(loaded.model, made.ids, made.chosen)
    return {
        "model": model,
        "answer": made.answers["gemfilter"].text.strip(),
        "facts": made.facts(),
        "layer": made.chosen.layer,
        "rule": made.chosen.rule,
        "tokens": len(made.ids),
        "passages": passages(loaded.tokenizer, made.ids, made.selection.kept()),
        "scan": [shares(places, len(made.ids)) for places in kept],
    }


def passages(tokenizer: Any, ids: Sequence[int], kept: Sequence[int]) -> list[dict[str, Any]]:
    """The prompt in stretches that were kept and that were not, in order."""
    marked, found = set(kept), list[dict[str, Any]]()
    start = 0
    for place in range(1, len(ids) + 1):
        if place == len(ids) or (place in marked) is not (start in marked):
            found.append({"kept": start in marked, "text": tokenizer.decode(ids[start:place]), "tokens": place - start})
            start = place
    return found


def shares(places: Sequence[int], length: int, columns: int = COLUMNS) -> list[float]:
    """How much of each part of the prompt is among the places."""
    columns = min(columns, length)
    sizes, hits = [0] * columns, [0] * columns
    for place in range(length):
        sizes[place * columns // length] += 1
    for place in places:
        hits[place * columns // length] += 1
    return [round(hit / size, 3) for hit, size in zip(hits, sizes, strict=True)]
