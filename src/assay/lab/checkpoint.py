"""Checkpoints inside a unit: the arm's own state and what it has recorded, so that a unit that was killed goes on.

A state is nested dictionaries, lists and tuples of tensors, arrays, generators, numbers and words, which is what an
optimiser's ``state_dict`` is. It is kept as safetensors, under a name that holds its own checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def save(folder: Path, state: Any, recorded: dict[str, Any]) -> None:
    """Write a checkpoint; the one before it is taken away once the new one is whole."""
    from safetensors.torch import save as pack

    tensors: dict[str, Tensor] = {}
    shape = {"state": _encode(state, tensors, "state"), "recorded": _encode(recorded, tensors, "recorded")}
    content = pack(tensors, {"shape": json.dumps(shape)})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_digest(content)}.safetensors"
    temporary = folder / f".tmp-{os.getpid()}"
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    for other in folder.glob("*.safetensors"):
        if other != path:
            other.unlink(missing_ok=True)


def load(folder: Path) -> tuple[Any, dict[str, Any]] | None:
    """The newest whole checkpoint: (state, recorded); None where there is none. A damaged one does not count."""
    from safetensors.torch import load as unpack

    for path in sorted(folder.glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns, reverse=True):
        content = path.read_bytes()
        if _digest(content) == path.stem:
            shape = json.loads(
                json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["shape"]
            )
            tensors = unpack(content)
            return _decode(shape["state"], tensors), _decode(shape["recorded"], tensors)
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _encode(value: Any, tensors: dict[str, Tensor], at: str) -> Any:
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        # A copy of its own: safetensors refuses tensors that share memory.
        return {"tensor": _kept(value.detach().cpu().contiguous().clone(), tensors), "device": value.device.type}
    if isinstance(value, torch.Generator):
        return {"generator": _kept(value.get_state(), tensors)}
    if isinstance(value, np.ndarray):
        return {"array": _kept(torch.from_numpy(np.array(value)), tensors)}
    if isinstance(value, np.generic):
        return {"value": value.item()}
    if isinstance(value, dict):
        entries = [[key, _encode(inner, tensors, f"{at}.{key}")] for key, inner in value.items()]
        if not all(isinstance(key, str | int) and not isinstance(key, bool) for key in value):
            raise TypeError(f"the keys of a checkpoint's dictionaries are words or whole numbers, not those of {at}")
        return {"entries": entries}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(inner, tensors, f"{at}.{index}") for index, inner in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(
        f"a checkpoint holds tensors, arrays, generators, numbers and words, and {at} is a {type(value).__name__}"
    )


def _kept(tensor: Tensor, tensors: dict[str, Tensor]) -> str:
    name = str(len(tensors))  # a number: words could be the same for two places
    tensors[name] = tensor
    return name


def _decode(shape: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    import torch

    if "tensor" in shape:
        return tensors[shape["tensor"]].to(shape["device"])
    if "generator" in shape:
        generator = torch.Generator()
        generator.set_state(tensors[shape["generator"]])
        return generator
    if "array" in shape:
        return tensors[shape["array"]].numpy()
    if "entries" in shape:
        return {key: _decode(inner, tensors) for key, inner in shape["entries"]}
    if "list" in shape:
        return [_decode(inner, tensors) for inner in shape["list"]]
    if "tuple" in shape:
        return tuple(_decode(inner, tensors) for inner in shape["tuple"])
    return shape["value"]
