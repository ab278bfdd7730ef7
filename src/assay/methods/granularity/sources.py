"""Inputs from wherever a person keeps them: a tensor, a data set, or a data loader with its collate function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, default_collate

from assay.methods._data import moved, rows_of, size_of, split_batch


class Source(ABC):
    """Batches of inputs with the indices of their samples, so that any labels can be put to them."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batches(
        self, size: int, device: torch.device, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Any, Tensor]]:
        """All samples once, in order, or shuffled by ``generator``; the last batch may be smaller. When shuffled, for
        training, a last sample that would be alone joins the batch before: batch normalisation needs two."""

    @abstractmethod
    def few(self, device: torch.device) -> Any:
        """The inputs of the first sample or two, to see what a model does with them."""

    def batch_count(self, size: int) -> int:
        """How many shuffled batches there are."""
        return len(_split(torch.arange(len(self)), size, shuffled=True))


class TensorSource(Source):
    """Inputs (n, ...), or a mapping of such tensors."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return size_of(self.inputs)

    def batches(
        self, size: int, device: torch.device, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Any, Tensor]]:
        n = len(self)
        order = torch.arange(n) if generator is None else torch.randperm(n, generator=generator)
        for index in _split(order, size, shuffled=generator is not None):
            yield moved(rows_of(self.inputs, index), device), index

    def few(self, device: torch.device) -> Any:
        return moved(rows_of(self.inputs, slice(0, 2)), device)


class DatasetSource(Source):
    def __init__(self, dataset: Any, collate: Any = None, workers: int = 0) -> None:
        self.dataset = dataset
        self.collate = collate or default_collate
        self.workers = workers

    def __len__(self) -> int:
        return len(self.dataset)

    def batches(
        self, size: int, device: torch.device, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Any, Tensor]]:
        dataset = _Indexed(self.dataset)
        order = SequentialSampler(dataset) if generator is None else RandomSampler(dataset, generator=generator)
        loader: DataLoader[Any] = DataLoader(
            dataset,
            batch_sampler=_Batches(order, size, shuffled=generator is not None),
            # Without one of its own a loader draws from torch's global generator, even where nothing is random.
            generator=torch.Generator() if generator is None else generator,
            num_workers=self.workers,
            collate_fn=self._together,
        )
        for inputs, index in loader:
            yield moved(inputs, device), index

    def few(self, device: torch.device) -> Any:
        inputs, _ = self._together([(self.dataset[index], index) for index in range(min(2, len(self)))])
        return moved(inputs, device)

    def _together(self, items: list[tuple[Any, int]]) -> tuple[Any, Tensor]:
        batch = self.collate([item for item, _ in items])
        inputs = split_batch(batch[0] if isinstance(batch, (tuple, list)) else batch)[0]
        return inputs, torch.tensor([index for _, index in items])


class _Batches:
    """Lists of indices for a data loader, in the order of a sampler."""

    def __init__(self, order: Iterable[int], size: int, *, shuffled: bool) -> None:
        self.order, self.size, self.shuffled = order, size, shuffled

    def __iter__(self) -> Iterator[list[int]]:
        for part in _split(torch.tensor(list(self.order)), self.size, shuffled=self.shuffled):
            yield part.tolist()


def _split(order: Tensor, size: int, *, shuffled: bool) -> list[Tensor]:
    """Parts of ``size``, the last one smaller, but not of a single sample where they are for training."""
    parts = list(torch.split(order, size))
    if shuffled and size > 1 and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


class _Indexed(Dataset[Any]):
    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.dataset[index], index


def source_of(data: Any, count: int | None = None) -> Source:
    """A source of inputs (n, ...), of a map-style data set, or of a data loader's data set in stored order. ``count``
    is the number of labels that come with them."""
    if isinstance(data, (np.ndarray, Mapping)):
        data = split_batch(data)[0]
    stored = data.dataset if isinstance(data, DataLoader) else data
    if isinstance(stored, IterableDataset) or not (hasattr(stored, "__getitem__") and hasattr(stored, "__len__")):
        raise ValueError(
            "inputs are a tensor, an array, a mapping of them, a map-style data set (a list of samples, say) or a data "
            f"loader of one, with a place for every label, not {type(stored).__name__}"
        )
    if isinstance(data, (Tensor, Mapping)):
        source: Source = TensorSource(data)
    elif isinstance(data, DataLoader):
        source = DatasetSource(data.dataset, data.collate_fn, data.num_workers)
    else:
        source = DatasetSource(data)
    if count is not None and len(source) != count:
        raise ValueError(f"{len(source)} inputs come with {count} labels")
    return source
