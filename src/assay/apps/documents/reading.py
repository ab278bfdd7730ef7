"""The text of a file, with the line or page that each part of it stands on."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

from assay._extras import extra

_LOOKED_AT = 8192
_BLOCKS = {"p", "div", "li", "br", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "table", "ul", "ol"}
_SILENT = {"script", "style", "template", "noscript", "svg", "head"}


class NoText(ValueError):
    """A file that cannot be read as text, in one sentence."""


@dataclass(frozen=True)
class Text:
    """A file's text, and from which character on which line or page it comes from."""

    text: str
    unit: Literal["line", "page"]
    begins: tuple[int, ...]
    numbers: tuple[int, ...]

    def place(self, character: int) -> int:
        """The line or page of a character."""
        return self.numbers[max(0, bisect.bisect_right(self.begins, character) - 1)]


def read(path: Path) -> Text:
    """Plain text, Markdown and source as they are, HTML without its tags, PDF page by page."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NoText(f"cannot read {path}: {error.strerror}") from None
    if content.startswith(b"%PDF-") or path.suffix.lower() == ".pdf":
        return _pdf(path)
    text = _decoded(path, content).replace("\r\n", "\n").replace("\r", "\n")
    made = _html(text) if path.suffix.lower() in (".html", ".htm", ".xhtml") else _lines(text)
    if not made.text.strip():
        raise NoText(f"{path} is empty: there is nothing to read")
    return made


def _decoded(path: Path, content: bytes) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return content.decode(name, errors="replace")
    if b"\0" in content[:_LOOKED_AT]:
        raise NoText(f"{path} is a binary file: there is no text to read")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        head = content[:_LOOKED_AT]
        odd = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head)
        if odd > len(head) // 50:
            raise NoText(f"{path} is a binary file: there is no text to read") from None
        return content.decode("cp1252", errors="replace")


def _lines(text: str) -> Text:
    begins = (0, *(match.end() for match in re.finditer("\n", text)))
    return Text(text, "line", begins, tuple(range(1, len(begins) + 1)))


class _Words(HTMLParser):
    """The words of a page, each piece with its line in the source."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.begins: list[int] = []
        self.numbers: list[int] = []
        self.length = self.silent = self.exact = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.silent += tag in _SILENT
        self.exact += tag == "pre"
        if tag in _BLOCKS:
            self._add("\n\n" if tag[0] in "ph" else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in _SILENT and self.silent > 0
        self.exact -= tag == "pre" and self.exact > 0
        if tag in _BLOCKS:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        if self.silent:
            return
        line = self.getpos()[0]
        if self.exact:
            for number, piece in enumerate(data.splitlines(keepends=True)):
                self._add(piece, line + number)
            return
        for number, piece in enumerate(data.split("\n")):
            words = re.sub(r"\s+", " ", piece)
            if words.strip():
                self._add(words if number == 0 else f" {words.lstrip()}", line + number)

    def _add(self, piece: str, line: int | None = None) -> None:
        if line is not None:
            self.begins.append(self.length)
            self.numbers.append(line)
        self.parts.append(piece)
        self.length += len(piece)


def _html(source: str) -> Text:
    words = _Words()
    words.feed(source)
    words.close()
    return Text("".join(words.parts), "line", tuple(words.begins) or (0,), tuple(words.numbers) or (1,))


def _pdf(path: Path) -> Text:
    with extra("documents", "a PDF file"):
        import pypdf
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise NoText(f"{path} is encrypted: remove its password first")
        pages = [page.extract_text() or "" for page in reader.pages]
    except NoText:
        raise
    except Exception as error:  # whatever a damaged or protected file makes the library raise
        if "crypt" in f"{type(error).__name__} {error}".lower() or "AES" in str(error):
            raise NoText(f"{path} is encrypted: remove its password first") from None
        raise NoText(f"{path} cannot be read as PDF: {error}") from None
    if not any(page.strip() for page in pages):
        raise NoText(f"{path} has no text: a scan must go through text recognition first")
    begins, length = [], 0
    for page in pages:
        begins.append(length)
        length += len(page) + 2
    return Text("\n\n".join(pages), "page", tuple(begins), tuple(range(1, len(pages) + 1)))
