"""Inputs from wherever a person keeps them: a tensor, a data set, or a data loader with its collate function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate


class Source:
    """Batches of inputs with the indices of their samples, so that any labels can be put to them."""

    def __len__(self) -> int:
        raise NotImplementedError

    def batches(
        self, size: int, device: torch.device, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Any, Tensor]]:
        """All samples once, in order, or shuffled by ``generator``; the last batch may be smaller."""
        raise NotImplementedError


class TensorSource(Source):
    def __init__(self, inputs: Tensor) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def batches(
        self, size: int, device: torch.device, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Any, Tensor]]:
        n = len(self.inputs)
        order = torch.arange(n) if generator is None else torch.randperm(n, generator=generator)
        for index in torch.split(order, size):
            yield self.inputs[index.to(self.inputs.device)].to(device), index


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
        loader: DataLoader[Any] = DataLoader(
            _Indexed(self.dataset),
            batch_size=size,
            shuffle=generator is not None,
            generator=generator,
            num_workers=self.workers,
            collate_fn=self._together,
        )
        for inputs, index in loader:
            yield _moved(inputs, device), index

    def _together(self, items: list[tuple[Any, int]]) -> tuple[Any, Tensor]:
        batch = self.collate([item for item, _ in items])
        return _inputs_of(batch), torch.tensor([index for _, index in items])


class _Indexed(Dataset[Any]):
    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.dataset[index], index


def source_of(data: Any, count: int) -> Source:
    """A source of inputs (n, ...), of a map-style data set, or of a data loader's data set in stored order."""
    if isinstance(data, Tensor):
        source: Source = TensorSource(data)
    elif isinstance(data, DataLoader):
        source = DatasetSource(data.dataset, data.collate_fn, data.num_workers)
    elif hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        source = DatasetSource(data)
    else:
        raise ValueError(f"inputs are a tensor, a map-style data set or a data loader, not {type(data).__name__}")
    if len(source) != count:
        raise ValueError(f"{len(source)} inputs come with {count} labels")
    return source


def _inputs_of(batch: Any) -> Any:
    """The inputs of a collated batch: the first of a pair, or a mapping without its labels."""
    if isinstance(batch, Mapping):
        return {name: value for name, value in batch.items() if name not in ("label", "labels")}
    return batch[0] if isinstance(batch, (tuple, list)) else batch


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in inputs.items()}
    return inputs.to(device)
