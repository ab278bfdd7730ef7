"""Real data sets by name: which are known, which are on this machine, which can be had, and what to call them.

Three answers are told apart everywhere: a set is *available* (on this machine), *known* but not here (the hub may have
it), or *unknown*. Every folder of ``$ASSAY_DATA`` is known by its own name.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from assay._extras import needs

from . import layout
from .layout import Kind

SPLITS = ("train", "test")


class DataUnavailable(RuntimeError):
    """A data set cannot be had: it is not on this machine and the hub does not give it, or its files cannot be used."""


class UnknownData(DataUnavailable):
    """Nobody knows a data set of that name, or it is of another kind than the one that is asked for."""


@dataclass(frozen=True)
class Entry:
    """A data set of the catalog. ``kind`` is "images", "text" or "domains", None where a folder does not tell;
    ``splits`` are the hub's names of the splits for training and testing."""

    name: str
    kind: Kind | None
    description: str
    classes: int | None = None
    hub: str | None = None
    configuration: str | None = None
    splits: tuple[str, str] = SPLITS

    def split(self, split: str) -> str:
        """The hub's name of a split."""
        return self.splits[SPLITS.index(split)]


CATALOG = {
    entry.name: entry
    for entry in (
        Entry("digits", "images", "handwritten digits of 8 by 8 pixels, from scikit-learn", 10),
        Entry("mnist", "images", "handwritten digits of 28 by 28 pixels", 10, "ylecun/mnist"),
        Entry("fashion_mnist", "images", "grey pictures of clothes", 10, "zalando-datasets/fashion_mnist"),
        Entry("cifar10", "images", "colour photographs of animals and vehicles", 10, "uoft-cs/cifar10"),
        Entry("cifar100", "images", "colour photographs, fine labels", 100, "uoft-cs/cifar100"),
        Entry("svhn", "images", "digits of house numbers, cropped", 10, "ufldl-stanford/svhn", "cropped_digits"),
        Entry(
            "tiny_imagenet",
            "images",
            "photographs of ImageNet at 64 by 64 pixels",
            200,
            "zh-plus/tiny-imagenet",
            splits=("train", "valid"),
        ),
        # The hub's own test split of SST-2 has no labels.
        Entry(
            "sst2",
            "text",
            "sentences from film reviews, negative or positive",
            2,
            "stanfordnlp/sst2",
            splits=("train", "validation"),
        ),
        Entry("ag_news", "text", "news by topic", 4, "fancyzhx/ag_news"),
        Entry("pacs", "domains", "art paintings, cartoons, photographs and sketches", 7),
        Entry("vlcs", "domains", "photographs from Caltech101, LabelMe, SUN09 and VOC2007", 5),
        Entry("office_home", "domains", "things of office and home in four styles", 65),
        Entry("terra_incognita", "domains", "animals before camera traps at four places", 10),
        Entry("domain_net", "domains", "things in six styles, from photographs to quick drawings", 345),
    )
}
_WORDS: dict[Kind | None, str] = {
    "images": "image set",
    "text": "text set",
    "domains": "set of domains",
    None: "data set",
}


def find(name: str) -> Entry | None:
    """The entry of a known set: the catalog's, or one made up for a folder of ``$ASSAY_DATA``; None for any other."""
    if name in CATALOG:
        return CATALOG[name]
    folder = layout.folders().get(name)
    return Entry(name, layout.kind_of(folder), "a folder of $ASSAY_DATA") if folder else None


def names(kind: Kind | None = None) -> list[str]:
    """The names of all known sets, or of those of one kind: the catalog's first, then other folders of
    ``$ASSAY_DATA``."""
    taken = {_plain(name) for name in CATALOG}
    own = {name: folder for name, folder in layout.folders().items() if _plain(name) not in taken}
    known = [entry.name for entry in CATALOG.values() if kind in (None, entry.kind)]
    return known + [name for name, folder in own.items() if kind is None or layout.kind_of(folder) == kind]


def unknown(name: str, kind: Kind | None = None) -> str | None:
    """None for a known set (of the kind, where one is asked for), else a sentence with the allowed names and the
    nearest ones."""
    entry, allowed = find(name), names(kind)
    choice = f"(allowed: {', '.join([*allowed, 'or a folder of $ASSAY_DATA'])})"
    if entry is None:
        plain = {_plain(each): each for each in allowed}
        near = [f"'{plain[each]}'" for each in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.7)]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"unknown {_WORDS[kind]} {name!r} {choice}{hint}"
    if kind is not None and entry.kind not in (kind, None):
        return f"{name!r} is no {_WORDS[kind]} but {_a(entry.kind)} {choice}"
    return None


def known(name: str, kind: Kind | None = None) -> Entry:
    """The entry of a known set. Any other name is refused."""
    if reason := unknown(name, kind):
        raise UnknownData(reason)
    entry = find(name)
    assert entry is not None
    return entry


def available(name: str, kind: Kind | None = None) -> str | None:
    """None when the set can be read without the network, else the reason why not, as a sentence."""
    if reason := unknown(name, kind):
        return reason
    entry = known(name)
    return absent(entry) or _missing_extra(entry)


def obtainable(name: str, kind: Kind | None = None) -> str | None:
    """None when the set can be read from this machine or asked of the hub (which happens when it is loaded, not
    here), else the reason why not."""
    if reason := unknown(name, kind):
        return reason
    entry = known(name)
    reason, refusal = absent(entry), hub_refusal(entry)
    return f"{reason}, and {refusal}" if reason and refusal else _missing_extra(entry)


def first_available(*names: str) -> str:
    """The first of these sets that is on this machine, else the last: what a parameter's value "auto" stands for."""
    return next((name for name in names if available(name) is None), names[-1])


def folder(entry: Entry) -> Path | None:
    """Where a set lies, if it is here. Capital letters, hyphens and underscores in the folder's name do not matter."""
    found = layout.folders()
    alike = [path for name, path in found.items() if entry.name in CATALOG and _plain(name) == _plain(entry.name)]
    return None if entry.name == "digits" else found.get(entry.name) or next(iter(alike), None)


def files(entry: Entry, split: str) -> list[Path]:
    """The Parquet files of a split, under the hub's name of it or under ours."""
    where = folder(entry)
    return layout.shards(where, (entry.split(split), split)) if where else []


def contents(name: str) -> dict[str, Path]:
    """Every file of a set on this machine by its path within the set's folder."""
    entry = find(name)
    where = folder(entry) if entry else None
    return layout.contents(where) if where else {}


def absent(entry: Entry, splits: tuple[str, ...] = SPLITS) -> str | None:
    """Why a set is not on this machine, as a sentence; None when it is, or comes with a library."""
    lack = None if entry.name == "digits" else _lacks(entry, splits)
    return f"the {_WORDS[entry.kind]} {entry.name!r} is not on this machine: {lack}" if lack else None


def hub_refusal(entry: Entry) -> str | None:
    """Why the hub is not asked for a set, or None when it would be."""
    if entry.hub is None:
        return "the hub is not asked for it"
    return None if find_spec("datasets") else needs("fetching it from the hub", "data")


def _lacks(entry: Entry, splits: tuple[str, ...]) -> str | None:
    base, where = layout.root(), folder(entry)
    if base is None:
        return "ASSAY_DATA names no data folder"
    if where is None:
        return f"there is no folder {base / entry.name}"
    if entry.kind == "domains":
        return layout.lacks_domains(where)
    if entry.kind is None and find_spec("polars"):
        columns = ", ".join((*layout.COLUMNS["images"], *layout.COLUMNS["text"]))
        return f"{where} has neither a sub-folder for each domain nor Parquet files with one of the columns {columns}"
    missing = [split for split in splits if not files(entry, split)]
    return f"{where} holds no {entry.split(missing[0])}-*.parquet" if missing else None


def _missing_extra(entry: Entry) -> str | None:
    if entry.name == "digits":
        return None if find_spec("sklearn") else needs("the image set 'digits'", "lab")
    if entry.kind != "domains" and find_spec("polars") is None:
        return needs("reading Parquet files", "lab")
    if entry.kind != "text" and find_spec("PIL") is None:
        return needs(f"decoding the images of {entry.name!r}", "data")
    return None


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _a(kind: Kind | None) -> str:
    return f"{'an' if kind == 'images' else 'a'} {_WORDS[kind]}"
