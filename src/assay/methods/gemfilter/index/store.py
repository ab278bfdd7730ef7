"""Where an index keeps its chunks: in memory, or in a folder of safetensors with checksums."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

#: Counted up whenever files of an earlier version would be misread: 2 cuts documents at fixed distances.
_VERSION = 2


class DamagedIndex(ValueError):
    """A stored file is not as it was written. ``key`` is the chunk, None for what cannot be read again."""

    def __init__(self, sentence: str, key: str | None = None) -> None:
        super().__init__(sentence)
        self.key = key


class OtherIndex(ValueError):
    """The index belongs to another model, layer or way of cutting."""


class Store(Protocol):
    """Chunks by their key, documents by their name, and the settings that all of them share. What ``get`` returns is
    ``in_memory`` already, or takes memory of its own."""

    in_memory: bool

    def settings(self) -> dict[str, Any] | None: ...
    def settle(self, settings: Mapping[str, Any]) -> None: ...
    def has(self, key: str) -> bool: ...
    def put(self, key: str, state: Mapping[str, Tensor]) -> None: ...
    def get(self, key: str) -> dict[str, Tensor]: ...
    def drop(self, keys: Iterable[str]) -> None: ...
    def documents(self) -> dict[str, dict[str, Any]]: ...
    def note(self, name: str, document: Mapping[str, Any]) -> None: ...
    def forget(self, name: str) -> None: ...


class MemoryStore:
    """Everything in this process."""

    in_memory = True

    def __init__(self) -> None:
        self._settings: dict[str, Any] | None = None
        self._chunks: dict[str, dict[str, Tensor]] = {}
        self._documents: dict[str, dict[str, Any]] = {}

    def settings(self) -> dict[str, Any] | None:
        return self._settings

    def settle(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def has(self, key: str) -> bool:
        return key in self._chunks

    def put(self, key: str, state: Mapping[str, Tensor]) -> None:
        self._chunks[key] = dict(state)

    def get(self, key: str) -> dict[str, Tensor]:
        return self._chunks[key]

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._chunks.pop(key, None)

    def documents(self) -> dict[str, dict[str, Any]]:
        return dict(self._documents)

    def note(self, name: str, document: Mapping[str, Any]) -> None:
        self._documents[name] = dict(document)

    def forget(self, name: str) -> None:
        self._documents.pop(name, None)


class FolderStore:
    """``manifest.json`` has the settings, ``documents/`` one sealed file per document, ``chunks/`` one safetensors file
    per chunk, with the checksum of its tensors in it. Files are written under another name and renamed, so that what
    is there is whole: a process that was killed loses the chunk in its hands, and the next one goes on."""

    in_memory = False

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._documents: dict[str, dict[str, Any]] | None = None

    def settings(self) -> dict[str, Any] | None:
        made = self._unsealed(self.folder / "manifest.json")
        if made is not None and made.get("version") != _VERSION:
            raise OtherIndex(f"the index in {self.folder} was written by another version of Assay: remove the folder")
        return None if made is None else dict(made["settings"])

    def settle(self, settings: Mapping[str, Any]) -> None:
        self._write(self.folder / "manifest.json", _sealed({"version": _VERSION, "settings": dict(settings)}))

    def has(self, key: str) -> bool:
        return self._chunk(key).exists()

    def put(self, key: str, state: Mapping[str, Tensor]) -> None:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        self._write(self._chunk(key), save(tensors, {"blake2b": _digest(tensors)}))

    def get(self, key: str) -> dict[str, Tensor]:
        path = self._chunk(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise DamagedIndex(f"{path} is missing from the index", key) from None
        except OSError as error:
            raise DamagedIndex(f"{path} cannot be read: {error.strerror}", key) from None
        try:
            state: dict[str, Tensor] = load(content)
            size = int.from_bytes(content[:8], "little")
            written = json.loads(content[8 : 8 + size])["__metadata__"]["blake2b"]
        except (SafetensorError, ValueError, KeyError, TypeError):
            raise DamagedIndex(f"{path} is damaged: it cannot be read as safetensors", key) from None
        if _digest(state) != written:
            raise DamagedIndex(f"{path} is damaged: it does not match its checksum", key)
        return state

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._chunk(key).unlink(missing_ok=True)

    def documents(self) -> dict[str, dict[str, Any]]:
        """As this process knows them. One whose file is damaged is not among them, and is read again when added."""
        if self._documents is None:
            self._documents = {}
            for path in sorted((self.folder / "documents").glob("*.json")):
                try:
                    made = self._unsealed(path) or {}
                except DamagedIndex:
                    continue
                self._documents[str(made.pop("name"))] = made
        return dict(self._documents)

    def note(self, name: str, document: Mapping[str, Any]) -> None:
        known = self.documents()
        self._write(self._document(name), _sealed({**document, "name": name}))
        self._documents = {**known, name: dict(document)}

    def forget(self, name: str) -> None:
        known = self.documents()
        self._document(name).unlink(missing_ok=True)
        self._documents = {one: made for one, made in known.items() if one != name}

    def _chunk(self, key: str) -> Path:
        return self.folder / "chunks" / key[:2] / f"{key}.safetensors"

    def _document(self, name: str) -> Path:
        return self.folder / "documents" / f"{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}.json"

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all. The texts are their owner's alone."""
        handle, unfinished = -1, ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".unfinished")
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except OSError as error:
            if unfinished:
                Path(unfinished).unlink(missing_ok=True)
            raise OSError(f"cannot write the index in {self.folder}: {error.strerror or error}") from None

    def _unsealed(self, path: Path) -> dict[str, Any] | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedIndex(f"cannot read the index in {self.folder}: {error.strerror}") from None
        try:
            made: dict[str, Any] = json.loads(content)
            del made["blake2b"]
            whole = content == _sealed(made)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise DamagedIndex(f"{path} is damaged: remove {self.folder}, and the texts are read again")
        return made


def _sealed(document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, indent=1, sort_keys=True).encode()
    return json.dumps({**document, "blake2b": hashlib.blake2b(text, digest_size=16).hexdigest()}, indent=1).encode()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        made.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        content: Any = tensor.contiguous().view(-1).view(torch.uint8).numpy()
        made.update(content)
    return made.hexdigest()
