"""A page on which a person sees what an answer was taken from: the passages marked in their documents."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from assay.apps.documents.answering import Answered
from assay.apps.documents.passages import Passage, cited
from assay.apps.documents.reading import Text

# Characters around a passage that are shown with it.
_AROUND = 280
_STYLE = """
.column { max-width: 62rem; }
.answer { margin-top: 1.6rem; padding: 1rem 1.3rem; border-left: 4px solid var(--accent); background: var(--raised);
  border-radius: 0 8px 8px 0; font-size: 1.08rem; max-width: 46rem; white-space: pre-wrap; }
ol.cited { margin: 1.2rem 0 0; padding: 0; list-style: none; font-size: 0.92rem; max-width: 46rem; }
ol.cited li { display: grid; grid-template-columns: 2rem 1fr 8rem; gap: 0.6rem;
  align-items: center; padding: 0.22rem 0; }
ol.cited .number { color: var(--faint); text-align: right; font-variant-numeric: tabular-nums; }
.weight { height: 0.5rem; border-radius: 4px; background: var(--region); }
.weight span { display: block; height: 100%; border-radius: 4px; background: var(--accent); }
section.file { padding-top: 2.6rem; } section.file h2 { font-size: 1.15rem; overflow-wrap: anywhere; }
.text { margin-top: 0.9rem; padding: 1rem 1.2rem; border: 1px solid var(--line); border-radius: 8px; color: var(--soft);
  font: 0.88rem/1.6 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.text mark { color: var(--ink); background: var(--undecided-wash); border-radius: 3px;
  box-shadow: 0 0 0 2px var(--undecided-wash); }
.text .where { display: block; color: var(--faint); font-size: 0.78rem; margin-bottom: 0.2rem; }
.text .gap { display: block; text-align: center; color: var(--faint); margin: 0.5rem 0; }
"""


def page(made: Answered) -> str:
    """One self-contained HTML file in the look of the reports; it needs no network."""
    assets = files("assay.report") / "assets"
    style = (assets / "base.css").read_text(encoding="utf-8") + _STYLE
    script = (assets / "theme.js").read_text(encoding="utf-8")
    names = list(dict.fromkeys(one.document for one in made.passages))
    numbers = {one: number for number, one in enumerate(made.passages, start=1)}
    shown = "".join(_file(name, made, numbers) for name in names)
    facts = " · ".join(f"{name.replace('_', ' ')}: {value}" for name, value in _facts(made).items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(made.question)}</title>\n<style>{style}</style>\n<script>{script}</script>\n</head>\n<body>\n"
        '<nav class="bar"><div class="column"><span class="brand">Assay</span><span class="here">ask</span>'
        '<span class="links"></span><button id="theme" type="button" hidden '
        'aria-label="Switch between light and dark" title="Light or dark">◐</button></div></nav>\n'
        f'<main class="column" id="content"><div class="top"><p class="kicker">Question</p>'
        f"<h1>{escape(made.question)}</h1>{_answer(made)}"
        f'<p class="facts">{escape(facts)}</p></div>{_list(made)}{shown}</main>\n</body>\n</html>\n'
    )


def _facts(made: Answered) -> dict[str, object]:
    return {name: value for name, value in made.facts.items() if isinstance(value, (str, int)) and value != ""}


def _answer(made: Answered) -> str:
    return f'<div class="answer">{escape(made.answer)}</div>' if made.answer else ""


def _list(made: Answered) -> str:
    scores = [one.score for one in made.passages]
    low, high = min([0.0, *scores]), max(scores)
    rows = []
    for number, one in enumerate(made.passages, start=1):
        share = (one.score - low) / (high - low) if high > low else 1.0
        where = f"{one.document}, {cited(one, made.library.documents[one.document].text)}"
        rows.append(
            f'<li><span class="number">{number}</span><a href="#p{number}">{escape(where)}</a>'
            f'<span class="weight" title="score {one.score:.4g}"><span style="width:{100 * share:.0f}%"></span></span>'
            "</li>"
        )
    return f'<section class="file"><h2>Taken from</h2><ol class="cited">{"".join(rows)}</ol></section>'


def _file(name: str, made: Answered, numbers: dict[Passage, int]) -> str:
    text = made.library.documents[name].text
    inside = sorted((one for one in made.passages if one.document == name), key=lambda one: one.begin)
    parts, shown = [], 0
    for place, one in enumerate(inside):
        begin = max(shown, _line(text, one.begin - _AROUND)) if place or one.begin > _AROUND else 0
        if begin > shown:
            parts.append('<span class="gap">⋯</span>')
        following = inside[place + 1].begin if place + 1 < len(inside) else len(text.text)
        end = min(following, one.end + _AROUND)
        parts.append(escape(text.text[begin : one.begin]))
        parts.append(
            f'<span class="where" id="p{numbers[one]}">{numbers[one]} · {escape(cited(one, text))}</span>'
            f"<mark>{escape(text.text[one.begin : one.end])}</mark>{escape(text.text[one.end : end])}"
        )
        shown = end
    if shown < len(text.text.rstrip()):
        parts.append('<span class="gap">⋯</span>')
    return f'<section class="file"><h2>{escape(name)}</h2><div class="text">{"".join(parts)}</div></section>'


def _line(text: Text, character: int) -> int:
    """The beginning of the line that a character stands in, or of a word where the line is long."""
    place = max(0, character)
    line = text.text.rfind("\n", 0, place) + 1
    return line if place - line <= _AROUND else text.text.find(" ", place) + 1
