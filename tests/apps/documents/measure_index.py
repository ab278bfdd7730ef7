"""What an index takes: memory of the process while it is built, and a question's share of the first pass.

    python tests/apps/documents/measure_index.py --tokens 50000 [--model smollm2] [--layer 18]

The text is the guides of this repository, again and again with a number in each, so that no chunk is like another.
Times are the processor's, so that what else runs on the machine counts less."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from assay.apps.documents.retrievers import framed
from assay.apps.documents.setup import MEMORY, filter_of
from assay.methods.gemfilter import FilterIndex, FolderStore

ROOT = Path(__file__).parents[3]


def tokens_of(tokenizer, count: int) -> list[int]:
    pages = [path.read_text() for path in sorted((ROOT / "docs/methods").glob("*.md"))]
    made: list[int] = []
    for number in range(count):
        text = f"Part {number}.\n{pages[number % len(pages)]}"
        made += tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        if len(made) >= count:
            return made[:count]
    return made


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--tokens", type=int, default=50_000)
    words.add_argument("--model", default="smollm2")
    words.add_argument("--layer", default="auto")
    words.add_argument("--memory", type=float, default=MEMORY, help="GiB of activations of a batch")
    given = words.parse_args()
    loaded, chosen = filter_of(given.model, layer=given.layer, device="cpu", tell=print)
    chosen = replace(chosen, chunk_memory=given.memory)
    head, tail = framed(loaded.tokenizer, "How do I average the weights of several steps?")
    made = {"tokens": given.tokens, "layer": chosen.layer, "model_GiB": round(peak(), 2)}
    with tempfile.TemporaryDirectory() as folder:
        index = FilterIndex(loaded.model, chosen, FolderStore(folder), head=head)
        ids, begun = tokens_of(loaded.tokenizer, given.tokens), time.process_time()
        took = index.add("text", ids)
        made |= {"chunks": took.read, "first_pass_s": round(time.process_time() - begun, 1)}
        made["peak_GiB"] = round(peak(), 2)
        for name in ("question_s", "second_question_s"):
            begun = time.process_time()
            index.select(tail)
            made[name] = round(time.process_time() - begun, 1)
        made["share"] = round(made["second_question_s"] / made["first_pass_s"], 3)
        made |= {"peak_with_questions_GiB": round(peak(), 2), "loss": index.loss, "dtype": index.dtype}
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))
        made["stored_GiB"] = round(stored / 2**30, 3)
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
