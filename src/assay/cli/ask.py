"""Documents from the shell: `assay index` reads them once, `assay ask` answers from them and says where from."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.options import Device, Json, say
from assay.cli.refusals import one_sentence, writable, written
from assay.lab.backends import pick_device
from assay.lab.errors import UserError

ORDER = 45
Paths = Annotated[list[str], typer.Argument(metavar="PATH...", help="Files and folders.", show_default=False)]
Words = Annotated[
    list[str], typer.Argument(metavar="PATH... QUESTION", help="Files and folders, and the question last.")
]
FilterModel = Annotated[
    str | None, typer.Option("--filter-model", help="The model that reads the documents; --model by default.")
]
Model = Annotated[str, typer.Option("--model", help="A hub name, a model folder, a .gguf file, or 'smollm2'.")]
Layer = Annotated[str, typer.Option("--layer", help="The filter layer, or 'auto': known for smollm2, else measured.")]
Index = Annotated[
    Path | None, typer.Option("--index", help="Where the index lies; below $ASSAY_CACHE (~/.cache/assay) by default.")
]
Storing = Annotated[str, typer.Option("--dtype", help="What is stored: auto, float16, bfloat16 or float32.")]


def register(app: typer.Typer) -> None:
    app.command("index")(index)
    app.command("ask")(ask)


def index(
    paths: Paths,
    model: Model = "smollm2",
    layer: Layer = "auto",
    index: Index = None,
    dtype: Storing = "auto",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Read documents once, so that `assay ask --retriever gemfilter` is quick. A run that was stopped goes on."""
    from assay.apps.documents.setup import filter_for, library_of

    with one_sentence():
        library = library_of(paths)
        _passed_over(library)
        _announce(model, library)
        used = filter_for(model, layer=layer, folder=index, dtype=dtype, device=pick_device(device), tell=say)
        took = used.prepare(library, _progress)
    tokens = sum(used.index.documents[str(one.path)] for one in library.documents.values())
    facts = {
        "documents": len(library.documents),
        "tokens": tokens,
        "chunks_read": took.read,
        "chunks_reused": took.reused,
        "documents_removed": took.removed,
        "seconds": round(took.seconds, 2),
        "layer": used.index.layer,
        "dtype": used.index.dtype,
        "loss": used.index.loss,
        "folder": str(used.folder),
    }
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    print(f"{len(library.documents)} documents, {tokens:,} tokens: {_took(took)}")
    lost = f"the largest error of a score is {used.index.loss:.2g} deviations"
    print(f"stored as {used.index.dtype} in {used.folder}; {lost}")
    print("assay ask ... --retriever gemfilter asks them")


def ask(
    words: Words,
    model: Model = "smollm2",
    filter_model: FilterModel = None,
    keep: Annotated[int, typer.Option("--keep", min=1, help="Tokens of passages that the answer is given.")] = 1024,
    retriever: Annotated[
        str | None,
        typer.Option(
            "--retriever",
            help="What ranks passages: bm25 (the default), minilm, or gemfilter, which is meant where --filter-model, "
            "--layer or --index is given.",
        ),
    ] = None,
    layer: Layer = "auto",
    new: Annotated[int, typer.Option("--new", min=0, help="Tokens of the answer at most; 0 cites alone.")] = 160,
    top: Annotated[int, typer.Option("--top", min=1, help="Passages to print.")] = 8,
    show: Annotated[Path | None, typer.Option("--show", help="Write a page with the passages marked.")] = None,
    index: Index = None,
    dtype: Storing = "auto",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Answer a question from documents, with the passages that the answer was taken from."""
    from assay.apps.documents import Answered, answered, chosen_passages, page
    from assay.apps.documents.setup import library_of, loaded_once, retriever_for

    *paths, question = words
    if not paths:
        raise UserError('ask takes files or folders and the question last: assay ask docs "How do I ...?"')
    if not question.strip():
        raise UserError("the question is empty")
    retriever = _retriever(retriever, {"--filter-model": filter_model, "--layer": layer, "--index": index})
    writable(show)
    with one_sentence():
        library = library_of(paths)
        _passed_over(library)
        models = loaded_once(pick_device(device), tell=say)
        options = {"layer": layer, "folder": index, "dtype": dtype}
        used = retriever_for(
            retriever, filter_model or model, models, whole=model if new else None, tell=say, **options
        )
        if retriever == "gemfilter":
            _announce(filter_model or model, library)
        started = time.monotonic()
        took = used.prepare(library, _progress)
        if took.read:
            say(f"{_took(took)}; the next question finds them read")
        read, started = time.monotonic() - started, time.monotonic()
        tokenizer = models.tokenizer(model)
        scores = used.scores(question, library)
        chosen = chosen_passages(library, scores, keep, lambda text: len(tokenizer(text, verbose=False)["input_ids"]))
        found, started = time.monotonic() - started, time.monotonic()
        text = ""
        if new:
            tell = (lambda _: None) if as_json else _stream
            text = answered(models.whole(model), question, chosen, library, new=new, tell=tell)
    facts: dict[str, Any] = {"model": model if new else "", "retriever": retriever, "keep": keep}
    facts |= {"documents": len(library.documents)}
    facts["seconds"] = {
        "reading": round(read, 2),
        "finding": round(found, 2),
        "answering": round(time.monotonic() - started, 2),
    }
    made = Answered(question, text, chosen, library, facts)
    if show is not None:
        written(show, page(made))
        say(f"wrote {show}")
    if as_json:
        print(json.dumps(made.to_dict(), indent=1, ensure_ascii=False))
        return
    _cite(made, top)


def _retriever(named: str | None, of_the_filter: dict[str, Any]) -> str:
    """The one that was named; without a name the filter where one of its options is given, else counted words."""
    from assay.apps.documents import RETRIEVERS

    given = [option for option, value in of_the_filter.items() if value not in (None, "auto")]
    if named is None:
        return "gemfilter" if given else RETRIEVERS[0]
    if named not in RETRIEVERS:
        raise UserError(f"--retriever must be one of {', '.join(RETRIEVERS)}, not '{named}'")
    if given and named != "gemfilter":
        raise UserError(f"{given[0]} is the filter's: it goes with --retriever gemfilter, not with {named}")
    return named


def _cite(made: Any, top: int) -> None:
    from assay.apps.documents.answering import citation

    print("\n\n" if made.answer else "", end="")
    for number, one in enumerate(made.passages[:top], start=1):
        text = made.library.documents[one.document].text.text[one.begin : one.end]
        words = " ".join(text.split())
        print(f"{number:2}. {citation(one, made.library)}\n    {words[:150]}{'…' if len(words) > 150 else ''}")
    if len(made.passages) > top:
        print(f"    and {len(made.passages) - top} more")


def _stream(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _passed_over(library: Any) -> None:
    if library.passed_over:
        name, why = next(iter(library.passed_over.items()))
        more = f", and {len(library.passed_over) - 1} more" if len(library.passed_over) > 1 else ""
        say(f"passed over {name}: {why}{more}")


def _announce(model: str, library: Any) -> None:
    size = sum(len(one.text.text) for one in library.documents.values())
    say(f"{len(library.documents)} documents, {size / 1000:,.0f} thousand characters, read by {model}")


_said: dict[str, float] = {}


def _progress(done: int, of: int, name: str) -> None:
    """A line now and then: every few seconds, and nothing where all is read."""
    now = time.monotonic()
    if now - _said.setdefault("last", now) > 5:
        _said["last"] = now
        say(f"reading {done + 1} of {of}: {name}")


def _took(took: Any) -> str:
    parts = [f"{took.read} chunks read in {took.seconds:.1f} s", f"{took.reused} were there"]
    return ", ".join(parts + ([f"{took.removed} documents gone"] if took.removed else []))
