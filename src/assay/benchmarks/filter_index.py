"""A question to an index of documents, beside a pass that reads the same documents anew."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from assay._extras import needs
from assay.benchmarks.gemfilter import LLAMA, SMALL, model_of
from assay.lab.errors import UserError
from assay.methods.gemfilter import FilterIndex, GemFilter
from assay.methods.gemfilter.index import profile_index


@dataclass(frozen=True)
class Plan:
    """What is measured: a model's shape, the filter's layer, the size of a chunk, tokens of the documents and of a
    question, and how many questions are asked."""

    shape: dict[str, Any]
    layer: int
    chunk: int
    lengths: tuple[int, ...]
    question: int
    questions: int


GPU = Plan(LLAMA, 13, 2048, (32_768, 122_880), 40, 5)
CPU = Plan(SMALL, 18, 1024, (2048, 8192), 40, 3)


def run(device: str) -> dict[str, Any]:
    """A row per length; the model has the layers up to the filter's alone. On the CPU ratios are what counts."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise UserError(needs("the benchmark filter_index", "llm")) from None
    plan = GPU if device == "cuda" else CPU
    model = model_of(plan.shape, device, layers=plan.layer + 1)
    chosen = GemFilter(layer=plan.layer, chunk=plan.chunk, rule="window", tail=plan.question)
    rows = []
    for length in plan.lengths:
        print(f"assay: {length} tokens", file=sys.stderr)
        found = profile_index(
            lambda: FilterIndex(model, chosen), length, question=plan.question, questions=plan.questions
        )
        row = {
            "tokens": length,
            "question to reading anew": round(found.question / found.anew, 4),
            "building to reading anew": round(found.build / found.anew, 3),
            "pays from question": found.break_even,
            "index MiB": round(found.index_bytes / 2**20, 3),
        }
        if device == "cuda":
            row |= {"question s": round(found.question, 3), "anew s": round(found.anew, 3)}
        rows.append(row)
    return {"layer": plan.layer, "chunk": plan.chunk, "question tokens": plan.question, "rows": rows}
