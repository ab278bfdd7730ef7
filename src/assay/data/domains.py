"""Sets of domains by name: the same classes pictured in several ways, from a folder of ``$ASSAY_DATA`` with one
sub-folder per domain, as DomainBed lays out PACS, VLCS, OfficeHome, TerraIncognita and DomainNet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

from . import catalog, layout, tables
from .images import ImageSet, decoded, rank_within_class


class DomainImages(Dataset[tuple[Tensor, int]]):
    """The images of one domain, each decoded when it is asked for: a map-style data set for a ``DataLoader``, also in
    worker processes. ``labels`` (n,) are known without decoding; ``transform`` is applied to each image."""

    def __init__(
        self,
        name: str,
        sources: list[bytes] | list[Path],
        labels: Tensor,
        classes: int,
        size: int,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.name, self.labels, self.classes, self.size, self.transform = name, labels, classes, size, transform
        self._sources = sources

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = _square(self._sources[index], self.name, self.size)
        return (image if self.transform is None else self.transform(image)), int(self.labels[index])

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} images of 3 x {self.size} x {self.size}, decoded one by one>"


class Domains(Mapping[str, ImageSet]):
    """The domains of a set by name. A domain's images are decoded when it is first asked for, and kept."""

    def __init__(self, name: str, folders: Mapping[str, Path], size: int, per_class: int | None) -> None:
        self.name, self.size, self.per_class = name, size, per_class
        self._folders = folders
        self._tables = {domain: sorted(path.glob("*.parquet")) for domain, path in folders.items()}
        self._decoded: dict[str, ImageSet] = {}

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The classes in the order of their labels, which mean the same in every domain, also where one lacks a class.
        Parquet files give no names but the labels themselves."""
        if all(self._tables.values()):
            most = max(int(tables.labels_of(self.name, files).max()) for files in self._tables.values())
            return tuple(str(c) for c in range(most + 1))
        return tuple(sorted({each for path in self._folders.values() for each in layout.sub_folders(path)}))

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __contains__(self, domain: object) -> bool:  # the inherited one would decode to find out
        return domain in self._folders

    def __len__(self) -> int:
        return len(self._folders)

    def __repr__(self) -> str:
        return f"<{self.name}: the domains {', '.join(self)}, images of 3 x {self.size} x {self.size}>"

    def __getitem__(self, domain: str) -> ImageSet:
        if domain not in self._decoded:
            found = self.stream(domain)
            images = torch.empty(len(found), 3, self.size, self.size)
            for place in range(len(found)):
                images[place] = found[place][0]
            self._decoded[domain] = ImageSet(images, found.labels, found.name, found.classes)
        return self._decoded[domain]

    def stream(self, domain: str, transform: Callable[[Tensor], Tensor] | None = None) -> DomainImages:
        """A domain whose images are decoded one by one and not kept."""
        sources, labels = self._listed(domain)
        most = len(labels) if self.per_class is None else self.per_class
        kept = np.flatnonzero(rank_within_class(labels) < most)
        chosen: list[Any] = [sources[i] for i in kept]
        name = f"{self.name}:{domain}"
        return DomainImages(name, chosen, torch.from_numpy(labels[kept]), len(self.class_names), self.size, transform)

    def streams(self) -> dict[str, DomainImages]:
        """All domains in that way, for sets that do not fit into memory."""
        return {domain: self.stream(domain) for domain in self}

    def _listed(self, domain: str) -> tuple[list[bytes] | list[Path], np.ndarray]:
        """The encoded images of a domain and their labels (n,)."""
        folder = self._folders[domain]
        if self._tables[domain]:
            rows = tables.from_parquet(self.name, self._tables[domain], "domains")
            return rows.values, rows.labels
        files = {name: layout.image_files(path) for name, path in layout.sub_folders(folder).items()}
        numbers = [self.class_names.index(name) for name, paths in files.items() for _ in paths]
        return [path for paths in files.values() for path in paths], np.asarray(numbers, dtype=np.int64)


def load_domains(name: str, *, size: int = 64, per_class: int | None = None) -> Domains:
    """The set's domains, each with images (n, 3, size, size) in stored order: grey is repeated, and what has another
    size is averaged over areas. With ``per_class`` the first so many of each class in each domain."""
    for word, value in (("size", size), ("per_class", per_class)):
        if value is not None and value < 1:
            raise ValueError(f"{word} must be at least 1, not {value}")
    entry = catalog.known(name, "domains")
    folder = catalog.folder(entry)
    if reason := catalog.available(name, "domains"):
        raise catalog.DataUnavailable(reason)
    assert folder is not None
    return Domains(name, layout.sub_folders(folder), size, per_class)


def _square(source: bytes | Path, name: str, size: int) -> Tensor:
    pixels = np.asarray(decoded(source, name).convert("RGB")).transpose(2, 0, 1)
    image = torch.from_numpy(np.ascontiguousarray(pixels)).float().div_(255.0)
    return functional.interpolate(image[None], size=(size, size), mode="area")[0]
