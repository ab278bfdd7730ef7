"""An index of long documents in a folder: memory of the process that reads them, and a question's share of reading."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay._extras import needs
from assay.evaluation.measure import peak_bytes
from assay.evaluation.prose import manual_text
from assay.lab.errors import UserError

LENGTHS = (50_000, 200_000)
MODEL = "smollm2"
_QUESTION = "How do I average the weights of several steps?"


def run(device: str, lengths: tuple[int, ...] = LENGTHS, model: str = MODEL) -> dict[str, Any]:
    """A process of its own for every length, since a peak is that of a process. Times are the processor's, so that what
    else runs on the machine counts less, and only their ratio is given."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise UserError(needs("the benchmark index_memory", "llm")) from None
    if device != "cpu":
        raise UserError("the benchmark index_memory counts a process's own memory: it goes with --device cpu only")
    made = []
    for length in lengths:
        print(f"assay: {length} tokens", file=sys.stderr)
        words = [sys.executable, "-m", __name__, "--tokens", str(length), "--model", model]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        made.append(json.loads(done.stdout))
    return {"model": model, **made[0]["about"], "rows": [one["row"] for one in made]}


def measured(count: int, model: str) -> dict[str, Any]:
    """What reading so many tokens into a folder took, and a question after it: as ``assay index`` and ``ask`` do."""
    from assay.apps.documents.retrievers import framed
    from assay.apps.documents.setup import filter_of
    from assay.methods.gemfilter import FilterIndex, FolderStore

    loaded, chosen = filter_of(model, layer="auto", device="cpu", tell=lambda text: print(text, file=sys.stderr))
    head, tail = framed(loaded.tokenizer, _QUESTION)
    ids = numbered(loaded.tokenizer, count)
    with tempfile.TemporaryDirectory() as folder:
        index = FilterIndex(loaded.model, chosen, FolderStore(folder), head=head)
        begun = time.process_time()
        took = index.add("text", ids)
        reading = time.process_time() - begun
        index.select(tail)
        begun = time.process_time()
        index.select(tail)
        share = (time.process_time() - begun) / reading
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))
        about = {"layer": chosen.layer, "stored as": index.dtype, "loss": round(index.loss, 5)}
    row = {
        "tokens": count,
        "chunks": took.read,
        "second question to reading": round(share, 4),
        "peak GiB": _gib(peak_bytes("cpu") or 0),
        "stored GiB": _gib(stored),
    }
    return {"about": about, "row": row}


def numbered(tokenizer: Any, count: int) -> list[int]:
    """So many tokens of prose in parts with a number each, so that no chunk is like another."""
    text, part = manual_text(), 0
    made: list[int] = []
    while len(made) < count:
        start = 20_000 * part % len(text)
        words = f"Part {part}.\n{text[start : start + 20_000]}\n"
        made += tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
        part += 1
    return made[:count]


def _gib(size: int) -> float:
    return round(size / 2**30, 2)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--tokens", type=int, required=True)
    given.add_argument("--model", default=MODEL)
    asked = given.parse_args()
    print(json.dumps(measured(asked.tokens, asked.model)))
