"""GemFilter from the shell: one prompt with `assay gemfilter`, a grid of needle prompts with `assay needle`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from assay.cli.options import Device, Json, say, stdout
from assay.cli.refusals import one_sentence, text_of, writable, written
from assay.lab.backends import pick_device
from assay.lab.errors import UserError

ORDER = 40
Model = Annotated[str, typer.Option("--model", help="A hub name, a model folder, a .gguf file, or 'smollm2'.")]
Layer = Annotated[str, typer.Option("--layer", help="The filter layer, counted from 0, or 'auto' to measure it.")]
Rule = Annotated[
    str | None,
    typer.Option("--rule", help="logits (the text's), softmax or window; left out, --layer auto chooses it too."),
]
Chunk = Annotated[
    str | None,
    typer.Option("--chunk", help="Read the prompt in pieces of so many tokens, or 'auto' for long prompts only."),
]
Chat = Annotated[bool, typer.Option("--chat/--no-chat", help="Wrap the prompt in the model's chat template.")]


def register(app: typer.Typer) -> None:
    app.command("gemfilter")(gemfilter)
    app.command("needle")(needle)


def gemfilter(
    model: Model,
    prompt_file: Annotated[Path, typer.Option("--prompt-file", help="The long text.")],
    question: Annotated[str, typer.Option("--question", help="Asked behind the text.")] = "",
    keep: Annotated[
        str, typer.Option("--keep", help="Tokens of the prompt that stay; below 1 a share of it.")
    ] = "1024",
    layer: Layer = "auto",
    rule: Rule = None,
    chunk: Chunk = None,
    tail: Annotated[
        int | None,
        typer.Option("--tail", help="Tokens of the prompt's end behind every chunk; the whole question else."),
    ] = None,
    compare: Annotated[str, typer.Option("--compare", help="Also answer with full, snapkv, h2o, one-run.")] = "",
    new: Annotated[int, typer.Option("--new", min=1, help="Tokens to generate at most.")] = 50,
    show: Annotated[bool, typer.Option("--show", help="Print the text that was kept.")] = False,
    page: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with the kept text marked.")] = None,
    chat: Chat = True,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Answer a question about a long text from the tokens that an early layer points at."""
    from assay.evaluation import highlighted
    from assay.methods.gemfilter.comparing import Comparison, ask

    text = _filled(prompt_file)
    writable(page)
    with one_sentence():
        comparison = Comparison(("gemfilter", *_names(compare)), _keep(keep), _layer(layer), rule, _chunk(chunk), tail)
        loaded = _loaded(model, device)
        made = ask(loaded, comparison, text, question, new=new, chat=chat, tell=say)
    assert made.selection is not None  # GemFilter is always asked
    kept = made.selection.text(loaded.tokenizer)
    if page is not None:
        told = {"answer": made.answers["gemfilter"].text, "facts": made.facts(), "title": "What GemFilter kept"}
        written(page, highlighted(loaded.tokenizer, made.ids, made.selection, **told))
        say(f"wrote {page}")
    if as_json:
        used = {"layer": made.chosen.layer, "rule": made.chosen.rule, "chat": made.chat}
        _print({"model": model, **used, "answers": made.rows(), **({"kept": kept} if show else {})})
        return
    if show:
        print(f"{made.facts()}:\n\n{kept}\n")
    stdout().print(_answers(made))


def needle(
    model: Model = "smollm2",
    lengths: Annotated[str, typer.Option("--lengths", help="Prompt lengths in tokens.")] = "1024",
    depths: Annotated[int, typer.Option("--depths", help="Depths, evenly from the beginning to the end.")] = 5,
    prompts: Annotated[int, typer.Option("--prompts", help="Prompts per length and depth.")] = 1,
    methods: Annotated[
        str, typer.Option("--methods", help="full, snapkv, h2o, one-run, gemfilter.")
    ] = "full,gemfilter",
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="Tokens that stay, below 1 a share of the prompt; an eighth of it else."),
    ] = None,
    layer: Layer = "auto",
    rule: Rule = None,
    chunk: Chunk = None,
    kind: Annotated[
        str,
        typer.Option(
            "--needle",
            help="ingredient, passcode, sandwich (the text's), activity, meeting, owner, price, or your own: "
            "'sentence|question|answer'.",
        ),
    ] = "ingredient",
    haystack: Annotated[Path | None, typer.Option("--haystack", help="A text file; Python's manual else.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Draws needles and places.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Write a heat map: .html, .svg, .png or .pdf.")] = None,
    layers: Annotated[
        Path | None, typer.Option("--layers", help="Scan all layers, and write their recall with the three stages.")
    ] = None,
    chat: Chat = True,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Needle in a haystack: lengths × depths, any model, any method.

    With --layers every layer is scanned under every rule, one forward pass a prompt; --methods '' leaves it at that.
    """
    from assay.evaluation import Needle
    from assay.methods.gemfilter.comparing import Comparison
    from assay.methods.gemfilter.needle_test import NeedleTest
    from assay.report import pictures

    if out is not None and not _names(methods):
        raise UserError("a heat map needs at least one method")
    for path in (out, layers):
        writable(path, pictures.SUFFIXES)
    text = None if haystack is None else _filled(haystack)
    with one_sentence():
        comparison = Comparison(
            _names(methods), None if keep is None else _keep(keep), _layer(layer), rule, _chunk(chunk)
        )
        asked = Needle.of(kind) if "|" in kind else kind
        grid = {"depths": depths, "prompts": prompts, "needle": asked, "haystack": text, "seed": seed, "chat": chat}
        test = NeedleTest(comparison, _sizes(lengths), **grid, scan=layers is not None)  # type: ignore[arg-type]
        made = test.run(_loaded(model, device), say)
    if out is not None:
        _save(pictures.needle_map(made.rows), out)
    if layers is not None:
        from assay.studies.gemfilter.needles.figures import scans_chart

        _save(scans_chart(made.scans, made.budgets), layers)
    if as_json:
        scans = [{"length": size, **scan.summary()} for size, scan in made.scans.items()]
        found = {"rows": made.rows, **({"layers": scans} if scans else {})}
        _print({"model": model, "chat": made.templated, "needle": kind, **found})
    elif made.rows:
        stdout().print(_shares(made, comparison.methods, test.lengths))


def _loaded(model: str, device: str) -> Any:
    from assay.networks import load_model

    say(f"loading {model}")
    return load_model(model, device=pick_device(device))


def _filled(path: Path) -> str:
    if not (text := text_of(path)).strip():
        raise UserError(f"{path} is empty: there is nothing to read")
    return text


def _layer(layer: str) -> int | Literal["auto"]:
    if layer == "auto":
        return "auto"
    if not re.fullmatch(r"-?[0-9]+", layer):
        raise UserError(f"--layer takes a number or 'auto', not '{layer}'")
    return int(layer)


def _keep(keep: str) -> int | float:
    if re.fullmatch(r"-?[0-9]+", keep):
        return int(keep)
    try:
        return float(keep)
    except ValueError:
        raise UserError(f"--keep takes a number of tokens or a share of the prompt, not '{keep}'") from None


def _chunk(chunk: str | None) -> int | Literal["auto"] | None:
    if chunk is None or chunk == "auto":
        return "auto" if chunk else None
    if not re.fullmatch(r"-?[0-9]+", chunk):
        raise UserError(f"--chunk takes a number of tokens or 'auto', not '{chunk}'")
    return int(chunk)


def _names(methods: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))


def _sizes(lengths: str) -> list[int]:
    try:
        sizes = list(dict.fromkeys(int(part) for part in lengths.split(",")))
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--lengths takes numbers of tokens, not '{lengths}'")
    return sizes


def _print(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=1, ensure_ascii=False))


def _save(chart: Any, out: Path) -> None:
    from assay.report import pictures

    pictures.save(chart, out)
    say(f"wrote {out}")


def _template(templated: bool) -> str:
    return "with the chat template" if templated else "without a chat template"


def _answers(made: Any) -> Table:
    counted = f"peak memory: {made.peak_counts}"
    table = Table(title=_template(made.chat), title_justify="left", caption=counted, caption_justify="left")
    for name in ("method", "answer", "tokens kept", "prompt s", "answer s", "ms a token", "cache MiB", "peak GiB"):
        table.add_column(name, justify="left" if name in ("method", "answer") else "right")
    for one in made.answers.values():
        took = one.profile
        peaks = ["?" if peak is None else f"{peak / 2**30:.2f}" for peak in (took.first_peak, took.second_peak)]
        kept = f"{took.kept_tokens:,} of {took.prompt_tokens:,}"
        times = (f"{took.first_pass:.2f}", f"{took.second_pass:.2f}", f"{1000 * took.token:.1f}")
        memory = (f"{took.cache_bytes / 2**20:.1f}", " then ".join(peaks))
        table.add_row(took.method, Text(one.text), kept, *times, *memory)
    return table


def _shares(made: Any, methods: Sequence[str], sizes: Sequence[int]) -> Table:
    table = Table(title=f"Share of right answers, {_template(made.templated)}", title_justify="left")
    table.add_column("method")
    for size in sizes:
        table.add_column(f"{size:,} tokens", justify="right")
    for name in methods:
        table.add_row(name, *(_cell(made, name, size) for size in sizes))
    if any(made.recall(name, size) is not None for name in methods for size in sizes):
        table.caption, table.caption_justify = "kept: share of the needle's tokens that the first pass kept", "left"
    return table


def _cell(made: Any, name: str, size: int) -> str:
    right, count = made.share(name, size)
    recall = made.recall(name, size)
    return f"{right}/{count}" + ("" if recall is None else f", kept {recall:.2f}")
