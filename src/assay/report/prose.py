"""A study's page in docs/ as parts of its page on the site: the set-up in words, what was found, what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from assay.lab import Study

from . import formulas
from .numbers import slug

HERE = Path(__file__).parent
_MADE = re.compile(
    r"<!-- \w+: .*?<!-- end -->\n?", re.S
)  # tables that are made from results stand elsewhere on the site
_CLAIM = re.compile(r"\b[CNX]\d+[a-z]*\b")
_FOUND, _DIFFERS = "What the study found", "What differs"


@dataclass(frozen=True)
class Section:
    title: str
    body: Markup

    @property
    def anchor(self) -> str:
        return f"notes-{slug(self.title.lower())}"


@dataclass(frozen=True)
class Prose:
    """What the page says: ``setup`` in words and formulas, ``lead`` before the headlines, ``found`` after them,
    ``differs`` from the source, and the other sections in their order."""

    setup: Markup = field(default_factory=Markup)
    lead: Markup = field(default_factory=Markup)
    found: Markup = field(default_factory=Markup)
    differs: Section | None = None
    others: Sequence[Section] = ()


def page_of(study: Study) -> Path | None:
    """The study's page: ``page.md`` in its own folder, or that of docs/studies, which the package has as ``studies``: a
    link in the checkout, the files themselves where a wheel was installed. A clone may be unable to hold links."""
    if study.folder is None:
        return None
    folders = [HERE / "studies", HERE.parents[2] / "docs" / "studies"] if study.module.startswith("assay.") else []
    places = [study.folder / "page.md", *(folder / f"{study.folder.name}.md" for folder in folders)]
    return next((place for place in places if place.is_file()), None)


def read(study: Study, claims: Iterable[str]) -> Prose:
    """The study's page with links to the claims that it names; empty where there is none."""
    path = page_of(study)
    return parse(path.read_text(encoding="utf-8"), set(claims), study.question) if path else Prose()


def parse(text: str, claims: set[str], question: str = "") -> Prose:
    tokens = MarkdownIt("commonmark").enable("table").parse(_MADE.sub("", text))
    parts = list(_sections(tokens))
    head = [block for block in _blocks(parts[0][1]) if not _is_left_out(block)]
    setup = _rendered([block for block in head if not _is_list(block)], claims, question)
    lead, found = _rendered([block for block in head if _is_list(block)], claims), Markup("")
    differs, others = None, []
    for title, inside in parts[1:]:
        if title.startswith(_FOUND):
            blocks = list(_blocks(inside))
            first = blocks[:1] if blocks and blocks[0][0].type == "paragraph_open" else []
            lead, found = lead + _rendered(first, claims), _rendered(blocks[len(first) :], claims)
            continue
        section = Section(title, _rendered(list(_blocks(inside)), claims))
        if title.startswith(_DIFFERS) and differs is None:
            differs = section
        else:
            others.append(section)
    return Prose(setup, lead, found, differs, others)


def _sections(tokens: Sequence[Token]) -> Iterable[tuple[str, list[Token]]]:
    """What stands before the first heading of the second order, then each of these with what follows it."""
    title, skip = "", 0
    inside: list[Token] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            skip = 3
            if token.tag == "h2":
                yield title, inside
                title, inside = tokens[place + 1].content, []
        if skip:
            skip -= 1
        else:
            inside.append(token)
    yield title, inside


def _blocks(tokens: Sequence[Token]) -> Iterable[list[Token]]:
    """The tokens of each block that stands by itself: a paragraph, a list, a table, a fence."""
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _is_left_out(block: Sequence[Token]) -> bool:
    """Commands stand at the end of the page, and guides of methods are not part of the site."""
    if block[0].type == "fence":
        return block[0].info != "math"
    text = block[1].content if len(block) > 1 else ""
    return block[0].type == "paragraph_open" and ("](../methods/" in text or "](../../" in text)


def _is_list(block: Sequence[Token]) -> bool:
    return block[0].type.endswith("list_open")


def _rendered(blocks: Sequence[Sequence[Token]], claims: set[str], question: str = "") -> Markup:
    return Markup("").join(_block(block, claims, question) for block in blocks)


def _block(block: Sequence[Token], claims: set[str], question: str) -> Markup:
    made = []
    for token in block:
        if token.type == "fence":
            made.append(
                formulas.display(token.content) if token.info == "math" else Markup("<pre>%s</pre>") % token.content
            )
        elif token.type == "inline":
            made.append(_inline(token.children or [], claims, question))
        elif token.type != "html_block" and not token.hidden:
            wide = token.type.startswith("table")
            opened = '<div class="wide" tabindex="0"><table class="data">' if wide else f"<{token.tag}>"
            made.append(Markup(opened if token.nesting > 0 else f"</{token.tag}>" + "</div>" * wide))
    return Markup("").join(made)


def _inline(tokens: Sequence[Token], claims: set[str], question: str) -> Markup:
    made = []
    for token in tokens:
        if token.type == "text":
            text = token.content
            if question and text.lstrip().startswith(question):
                text = text.lstrip().removeprefix(question).lstrip()
            made.append(linked(text, claims))
        elif token.type == "softbreak":
            made.append(Markup(" "))
        elif token.type == "code_inline":
            made.append(Markup("<code>%s</code>") % token.content)
        elif token.type in ("strong_open", "strong_close", "em_open", "em_close"):
            made.append(Markup(f"<{'/' * (token.nesting < 0)}{token.tag}>"))
    found = Markup("").join(made)
    return Markup(re.sub(r"^<strong>Question\.</strong>\s*", "", found))


def linked(text: str, claims: set[str]) -> Markup:
    """A sentence with its mathematics set and the claims that it names linked."""
    parts, end = [], 0
    for match in _CLAIM.finditer(text):
        if match[0] in claims:
            parts += [formulas.marked(text[end : match.start()])]
            parts.append(Markup('<a class="ref" href="#claim-%s">%s</a>') % (escape(match[0]), match[0]))
            end = match.end()
    return Markup("").join([*parts, formulas.marked(text[end:])])
