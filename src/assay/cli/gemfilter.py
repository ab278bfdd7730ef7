"""GemFilter from the shell: one prompt with `assay gemfilter`, a grid of needle prompts with `assay needle`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from assay.cli.options import stdout
from assay.lab.backends import pick_device
from assay.lab.errors import UserError

Model = Annotated[str, typer.Option("--model", help="A hub name, a model folder, a .gguf file, or 'smollm2'.")]
Keep = Annotated[int, typer.Option("--keep", help="Tokens of the prompt that stay.")]
Layer = Annotated[str, typer.Option("--layer", help="The filter layer, counted from 0, or 'auto' to measure it.")]
Rule = Annotated[
    str | None,
    typer.Option("--rule", help="logits (the text's), softmax or window; left out, --layer auto chooses it too."),
]
Chat = Annotated[bool, typer.Option("--chat/--no-chat", help="Wrap the prompt in the model's chat template.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or auto.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else.")]
_KEEP_ONE_IN = 8


def register(app: typer.Typer) -> None:
    """Add the two commands to the front door."""
    app.command("gemfilter")(gemfilter)
    app.command("needle")(needle)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What a method refuses is bad input here; so is a model that cannot be found."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(words[0].rstrip(".")) from None
    except Exception as error:
        # A damaged checkpoint, in the words of the library that reads it.
        if type(error).__name__ != "SafetensorError":
            raise
        raise UserError(f"the model's weights cannot be read: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UserError(f"cannot read {path}: {reason}") from None


def _writable(path: Path | None) -> None:
    """Refuse a place before minutes of work go there in vain."""
    if path is None:
        return
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _say(text: str) -> None:
    print(f"assay: {text}", file=sys.stderr)


def _loaded(model: str, device: str) -> Any:
    from assay.networks.pretrained import load_model

    _say(f"loading {model}")
    return load_model(model, device=pick_device(device))


def _asked(layer: str, keep: int, rule: str | None) -> Any:
    """The filter in the words of the command line, at layer 0 where one is to be measured. It needs no model, so that
    words which mean nothing are refused before one is loaded."""
    from assay.methods.gemfilter import GemFilter

    if layer != "auto" and not re.fullmatch(r"-?[0-9]+", layer):
        raise UserError(f"--layer takes a number or 'auto', not '{layer}'")
    return GemFilter(layer=0 if layer == "auto" else int(layer), keep=keep, rule=rule or "logits")  # type: ignore[arg-type]


def _filter(loaded: Any, layer: str, keep: int, rule: str | None, length: int) -> Any:
    """The filter that was asked for; a measured layer is announced with how far it can be trusted."""
    from assay.methods.gemfilter import choose_filter_layer
    from assay.methods.gemfilter.layers import measured_length

    wanted = _asked(layer, keep, rule)
    if layer != "auto":
        return wanted
    if length <= keep:
        _say(f"the prompt's {length} tokens all fit into --keep {keep}: nothing is filtered")
        return wanted
    rules = ("logits", "window") if rule is None else (rule,)
    choice = choose_filter_layer(
        loaded.model, loaded.tokenizer, keep=keep, rules=rules, base=wanted,
        length=measured_length(loaded.model, length), progress=lambda text: _say(f"measuring the layer: {text}"),
    )  # fmt: skip
    _say(choice.sentence())
    return choice.filter()


def gemfilter(
    model: Model,
    prompt_file: Annotated[Path, typer.Option("--prompt-file", help="The long text.")],
    question: Annotated[str, typer.Option("--question", help="Asked behind the text.")] = "",
    keep: Keep = 1024,
    layer: Layer = "auto",
    rule: Rule = None,
    compare: Annotated[str, typer.Option("--compare", help="Also answer with full, snapkv, h2o, one-run.")] = "",
    new: Annotated[int, typer.Option("--new", help="Tokens to generate at most.")] = 50,
    show: Annotated[bool, typer.Option("--show", help="Print the text that was kept.")] = False,
    page: Annotated[Path | None, typer.Option("--page", help="Write an HTML page with the kept text marked.")] = None,
    chat: Chat = True,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Answer a question about a long text from the tokens that an early layer points at."""
    from assay.evaluation import answer, chat_ids, highlighted
    from assay.evaluation.measure import peak_counts
    from assay.methods.gemfilter import Selection
    from assay.methods.gemfilter.comparing import baseline
    from assay.networks.pretrained import context_length

    if new < 1:
        raise UserError(f"--new {new} is not allowed: at least one token is generated")
    text = _read(prompt_file)
    _writable(page)
    others = [name.strip() for name in compare.split(",") if name.strip()]
    with _one_sentence():
        _asked(layer, keep, rule)
        for name in others:
            if name != "one-run":
                baseline(name, max(keep, 2))
        loaded = _loaded(model, device)
        ids, templated = chat_ids(loaded, text, question, chat=chat)
        if len(ids) > (most := context_length(loaded.model, len(ids))):
            _say(f"the prompt's {len(ids):,} tokens exceed the {most:,} that the model was trained for")
        chosen = _filter(loaded, layer, keep, rule, len(ids))
        methods = [chosen, *(baseline(name, keep, chosen) for name in others)]
        answers = [answer(loaded, ids, method, new) for method in methods]
    selection, counted = answers[0].selection, peak_counts(loaded.model.device)
    assert isinstance(selection, Selection)  # the first answer is GemFilter's
    facts = f"{len(selection.kept()):,} of {len(ids):,} tokens, chosen by layer {chosen.layer} with '{chosen.rule}'"
    if selection.scores is None:
        facts = f"all {len(ids):,} tokens, since they fit: nothing was chosen"
    if page is not None:
        page.write_text(
            highlighted(
                loaded.tokenizer, ids, selection, answer=answers[0].text, facts=facts, title="What GemFilter kept"
            ),
            "utf-8",
        )
        _say(f"wrote {page}")
    if as_json:
        rows = [
            {**vars(made.profile), "peak_bytes": made.profile.peak_bytes, "text": made.text, "peak_counts": counted}
            for made in answers
        ]
        document = {"model": model, "layer": chosen.layer, "rule": chosen.rule, "chat": templated, "answers": rows}
        if show:
            document["kept"] = selection.text(loaded.tokenizer)
        print(json.dumps(document, indent=1, ensure_ascii=False))
        return
    if show:
        print(f"{facts}:\n\n{selection.text(loaded.tokenizer)}\n")
    stdout().print(_answers(answers, templated, counted))


def _answers(answers: Sequence[Any], templated: bool, counted: str) -> Table:
    title = "with the chat template" if templated else "without a chat template"
    table = Table(title=title, title_justify="left", caption=f"peak memory: {counted}", caption_justify="left")
    for name in ("method", "answer", "tokens kept", "prompt s", "answer s", "ms a token", "cache MiB", "peak GiB"):
        table.add_column(name, justify="left" if name in ("method", "answer") else "right")
    for made in answers:
        took = made.profile
        peaks = (took.first_peak, took.second_peak)
        table.add_row(
            took.method, Text(made.text), f"{took.kept_tokens:,} of {took.prompt_tokens:,}", f"{took.first_pass:.2f}",
            f"{took.second_pass:.2f}", f"{1000 * took.token:.1f}", f"{took.cache_bytes / 2**20:.1f}",
            " then ".join("?" if peak is None else f"{peak / 2**30:.2f}" for peak in peaks),
        )  # fmt: skip
    return table


def needle(
    model: Model = "smollm2",
    lengths: Annotated[str, typer.Option("--lengths", help="Prompt lengths in tokens.")] = "1024",
    depths: Annotated[int, typer.Option("--depths", help="Depths, evenly from the beginning to the end.")] = 5,
    prompts: Annotated[int, typer.Option("--prompts", help="Prompts per length and depth.")] = 1,
    methods: Annotated[
        str, typer.Option("--methods", help="full, snapkv, h2o, one-run, gemfilter.")
    ] = "full,gemfilter",
    keep: Annotated[int | None, typer.Option("--keep", help="Tokens that stay; an eighth of the prompt else.")] = None,
    layer: Layer = "auto",
    rule: Rule = None,
    kind: Annotated[
        str, typer.Option("--needle", help="ingredient, passcode, or sandwich (the text's).")
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
    from assay.evaluation.needles import NEEDLES, needle_grid
    from assay.methods.gemfilter import layer_scan

    names, sizes = _methods_of(methods), _sizes_of(lengths)
    if not (names or layers) or depths < 1 or prompts < 1:
        raise UserError("a grid needs at least one method, one depth and one prompt")
    if keep is not None and keep < 1:
        raise UserError(f"--keep {keep} is not allowed: at least one token stays")
    if out is not None and not names:
        raise UserError("a heat map needs at least one method")
    if kind not in NEEDLES:
        raise UserError(f"needles are {', '.join(NEEDLES)}, not '{kind}'")
    _pictures(out, layers)
    places = [0.5] if depths == 1 else [i / (depths - 1) for i in range(depths)]
    text = None if haystack is None else _read(haystack)
    filtered = "gemfilter" in names or "one-run" in names
    rows: list[dict[str, Any]] = []
    scans: dict[int, Any] = {}
    templated = False
    with _one_sentence():
        _asked(layer, keep or 1, rule)
        loaded = _loaded(model, device)
        for size in sizes:
            budget = keep or max(1, size // _KEEP_ONE_IN)
            chosen = _filter(loaded, layer if filtered else "0", budget, rule, size)
            options: dict[str, Any] = {"seed": seed, "haystack": text, "chat": chat, "needle": kind}
            grid = list(needle_grid(loaded.tokenizer, [size], places, prompts, **options))
            templated = grid[0].chat
            if layers is not None:
                scans[size] = layer_scan(loaded.model, grid, keep=budget, progress=lambda text: _say(f"scan: {text}"))
                _say(f"{size} tokens: {_stages(scans[size])}")
            rows += _answered(loaded, grid, chosen, names)
    if out is not None:
        _save(_heat_map(rows), out)
    if layers is not None:
        from assay.studies.gemfilter.layer_figures import scans_chart

        _save(scans_chart(scans, {size: keep or max(1, size // _KEEP_ONE_IN) for size in sizes}), layers)
    if as_json:
        document = {"model": model, "chat": templated, "needle": kind, "rows": rows}
        if scans:
            document["layers"] = [_scan_row(size, scan) for size, scan in scans.items()]
        print(json.dumps(document, indent=1, ensure_ascii=False))
    elif names:
        stdout().print(_shares(rows, names, sizes, templated))


def _answered(loaded: Any, grid: Sequence[Any], chosen: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Every method's answer to every prompt, told as it comes."""
    from assay.evaluation import needle_table
    from assay.methods.gemfilter.comparing import baseline

    rows = []
    methods = {name: chosen if name == "gemfilter" else baseline(name, chosen.keep, chosen) for name in names}
    for row in needle_table(loaded, grid, methods):
        used = {"layer": chosen.layer, "rule": chosen.rule} if row["method"] in ("gemfilter", "one-run") else {}
        rows.append({**row, "keep": chosen.keep, **used})
        mark = "right" if row["right"] else "wrong"
        _say(f"{row['method']} at {row['length']} tokens, depth {row['depth']:.2f}: {mark}")
    return rows


def _methods_of(methods: str) -> list[str]:
    from assay.methods.gemfilter.comparing import BASELINES

    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names:
        if name not in (*BASELINES, "gemfilter"):
            raise UserError(f"unknown method '{name}'; known: {', '.join((*BASELINES, 'gemfilter'))}")
    return names


def _sizes_of(lengths: str) -> list[int]:
    try:
        sizes = [int(part) for part in lengths.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--lengths takes numbers of tokens, not '{lengths}'")
    return sizes


def _pictures(*paths: Path | None) -> None:
    """Refuse at once what could not be written after minutes of work."""
    for path in paths:
        if path is not None and path.suffix not in (".html", ".svg", ".png", ".pdf"):
            raise UserError(f"cannot write {path}: the formats are .html, .svg, .png and .pdf")
        _writable(path)


def _scan_row(size: int, scan: Any) -> dict[str, Any]:
    """Mean recall per layer under every rule, and the stages by the best one."""
    recall = {rule: scan.of(rule).mean(dim=1).tolist() for rule in scan.rules}
    return {"length": size, "rule": scan.best_rule(), "stages": scan.stages(scan.best_rule()), "recall": recall}


def _stages(scan: Any) -> str:
    """The three stages in words."""
    stages = scan.stages(scan.best_rule())
    runs = [(name, [i for i, stage in enumerate(stages) if stage == name]) for name in dict.fromkeys(stages)]
    spans = [f"{name} in layers {places[0]} to {places[-1]}" for name, places in runs]
    return f"{', '.join(spans)} by the rule '{scan.best_rule()}'"


def _shares(rows: Sequence[dict[str, Any]], names: Sequence[str], sizes: Sequence[int], templated: bool) -> Table:
    """The share of right answers per method and length."""
    title = f"Share of right answers, {'with the chat template' if templated else 'without a chat template'}"
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    for size in sizes:
        table.add_column(f"{size:,} tokens", justify="right")
    for name in names:
        cells = [[row["right"] for row in rows if (row["method"], row["length"]) == (name, size)] for size in sizes]
        table.add_row(name, *(f"{sum(cell)}/{len(cell)}" for cell in cells))
    return table


def _heat_map(rows: Sequence[dict[str, Any]]) -> Any:
    import altair as alt
    import polars as pl

    frame = pl.DataFrame([{key: row[key] for key in ("method", "length", "depth", "right")} for row in rows])
    shares = frame.group_by("method", "length", "depth", maintain_order=True).agg(pl.col("right").mean())
    return (
        alt.Chart(shares)
        .mark_rect()
        .encode(
            x=alt.X("length:O", title="prompt length in tokens"),
            y=alt.Y("depth:O", title="depth of the needle", axis=alt.Axis(format=".0%")),
            color=alt.Color("right:Q", title="right", scale=alt.Scale(scheme="blues", domain=[0, 1])),
            column=alt.Column("method:N", title=None),
        )
    )


def _save(chart: Any, out: Path) -> None:
    """A picture in the theme of the reports."""
    import altair as alt

    from assay.report import theme

    made = alt.Chart.from_dict(theme.spec(chart))
    if out.suffix == ".html":
        made.save(str(out), inline=True)  # with its scripts inside: a page that needs no network
    else:
        made.save(str(out))
    _say(f"wrote {out}")
