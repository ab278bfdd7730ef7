"""Flipped labels from the shell: does a language model follow the demonstrations in its prompt?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from assay._reports import plain
from assay.cli.options import Device, Json, say, stdout
from assay.cli.refusals import one_sentence, writable
from assay.lab.backends import pick_device
from assay.lab.errors import UserError

ORDER = 45


def register(app: typer.Typer) -> None:
    app.command("icl-flip")(icl_flip)


def icl_flip(
    model: Annotated[
        list[str],
        typer.Option("--model", help="A hub name, a folder, a .gguf file, or 'smollm2'; give it again for more."),
    ],
    data: Annotated[str, typer.Option("--data", help="A text set: sst2, ag_news, or a folder of $ASSAY_DATA.")],
    labels: Annotated[
        str, typer.Option("--labels", help="Words for the labels, in their order: negative,positive")
    ] = "",
    template: Annotated[str, typer.Option("--template", help="With {text} and {label}; \\n is a line break.")] = "",
    demonstrations: Annotated[int, typer.Option("--demonstrations", help="Labelled texts in a prompt.")] = 16,
    fractions: Annotated[str, typer.Option("--fractions", help="Shares of flipped labels.")] = "0,0.25,0.5,0.75,1",
    seeds: Annotated[int, typer.Option("--seeds", help="Draws of demonstrations and queries.")] = 10,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of them.")] = 0,
    queries: Annotated[int, typer.Option("--queries", help="Queries per seed.")] = 40,
    words: Annotated[str, typer.Option("--words", help="Least and most words of a text: 6-20; 'any' for all.")] = "",
    shared: Annotated[
        bool, typer.Option("--shared/--fresh", help="One draw of demonstrations a seed, or a query.")
    ] = True,
    several: Annotated[
        str, typer.Option("--several-tokens", help="Labels of several tokens: refuse, sum, mean.")
    ] = "refuse",
    save: Annotated[Path | None, typer.Option("--save", help="A folder for the reports, MODEL.DATA.json each.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the figure: .html, .svg, .png or .pdf.")] = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Show demonstrations with a growing share of flipped labels, and ask for true ones.

    Raw answers measure which label a model prefers; read the AUC, or the balanced answers. Several models are asked
    about the same draws.
    """
    from assay.data import load_text
    from assay.data.catalog import known
    from assay.methods.flipped_labels import FlippedLabels
    from assay.methods.flipped_labels.usual import USUAL, Usual
    from assay.report import pictures

    writable(out, pictures.SUFFIXES)
    if save is not None:
        _made(save)
    with one_sentence():
        known(data, "text")
        usual = USUAL.get(data, Usual(()))
        if not (labels or usual.labels):
            raise UserError(f"--labels needs a word for each label of {data}, such as negative,positive")
        test = FlippedLabels(
            [word.strip() for word in labels.split(",")] if labels else usual.labels,
            template=template.replace("\\n", "\n") or usual.template,
            demonstrations=demonstrations,
            fractions=_shares(fractions),
            seeds=range(first_seed, first_seed + seeds) if seeds > 0 else seeds,
            queries=queries,
            words=_range(words) if words else usual.words,
            shared=shared,
            several_tokens=several,  # type: ignore[arg-type]
        )
        pool, asked = load_text(data), load_text(data, "test")
        reports = [_tested(test, each, device, pool, asked, data) for each in model]
    if out is not None:
        pictures.save(reports[0].figure(*reports[1:]), out)
        say(f"wrote {out}")
    if save is not None:
        for each in reports:
            path = save / f"{Path(each.model).name}.{data}.json"
            each.save(path)
            say(f"wrote {path}")
    _print(reports, data, as_json)


def _print(reports: list[Any], data: str, as_json: bool) -> None:
    if as_json:
        rows = [row for each in reports for row in each.table()]
        readings = {each.model: each.reading() for each in reports}
        print(json.dumps({"data": data, "rows": plain(rows), "readings": readings}, indent=1, ensure_ascii=False))
        return
    for each in reports:
        shown, (count, queries) = each.settings["demonstrations"], each.truth.shape
        stdout().print(f"{each.model} on {data}: {shown} demonstrations, {queries} queries for each of {count} seeds")
        stdout().print(_table(each))
        stdout().print(f"{each.reading()[0].upper()}{each.reading()[1:]}.")
    for each in reports[1:]:
        stdout().print(f"Change of the AUC, {each.model} minus {reports[0].model}: {each.against(reports[0])}")


def _tested(test: Any, name: str, device: str, pool: Any, asked: Any, data: str) -> Any:
    from assay.networks import load_model

    say(f"loading {name}")
    loaded = load_model(name, device=pick_device(device))
    say(f"asking {len(test.seeds)} × {len(test.fractions)} × {test.queries} queries")
    return test.run(loaded.model, loaded.tokenizer, pool, asked, name=name, data=data)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from None


def _shares(given: str) -> list[float]:
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise UserError(f"--fractions takes shares such as 0,0.5,1, not '{given}'") from None


def _range(given: str) -> tuple[int, int] | None:
    if given == "any":
        return None
    low, dash, high = given.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal()):
        raise UserError(f"--words takes a range such as 6-20, or 'any', not '{given}'")
    return int(low), int(high)


def _table(report: Any) -> Table:
    """Readings down, shares of flipped labels across."""
    table = Table()
    table.add_column("flipped labels")
    for fraction in report.fractions:
        table.add_column(f"{fraction:.0%}", justify="right")
    rows: dict[str, list[str]] = {}
    for row in report.table():
        bounds = f"\n{row['low']:.2f}–{row['high']:.2f}" if row["low"] == row["low"] else ""
        rows.setdefault(row["reading"], []).append(f"{row['estimate']:.3f}{bounds}")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table
