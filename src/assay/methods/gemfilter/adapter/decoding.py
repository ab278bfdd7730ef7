"""What transformers' generation prepares for a custom decoding loop, taken apart again."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from torch import Generator, Tensor


def added_by_the_caller(model: Any, config: Any, ids: Tensor, processors: Any, criteria: Any) -> tuple[Any, Any]:
    """Of logits processors and stopping criteria prepared for a prompt (batch, n) those that generation did not make
    from the configuration.

    What generation would make is made once more, and told from the caller's by class and by every setting: a caller's
    own takes the place of generation's of the same class."""
    made = model._get_logits_processor(
        generation_config=config, input_ids_seq_length=ids.shape[1], encoder_input_ids=ids, device=ids.device
    )
    ended = model._get_stopping_criteria(generation_config=config, stopping_criteria=[])
    return _without(processors, made), _without(criteria, ended)


def _without(given: Any, made: Any) -> Any:
    """The list without members that the other one holds as well, None when it is empty. Of several that are alike
    generation's own stands last: a watermark is put behind the caller's."""
    left = list(given or ())
    for other in made:
        alike = [place for place, one in enumerate(left) if type(one) is type(other) and _alike(one, other)]
        if alike:
            del left[alike[-1]]
    return type(given)(left) if left else None


def _alike(one: Any, other: Any) -> bool:
    """Whether two of a class have the same settings; when their clocks were started is none."""
    first, second = (
        {name: value for name, value in vars(it).items() if "timestamp" not in name} for it in (one, other)
    )
    return _equal(first, second)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and bool((one.to(other.device) == other).all())
    if isinstance(one, Generator) and isinstance(other, Generator):  # which are equal to nothing but themselves
        return one.device == other.device and _equal(one.get_state(), other.get_state())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one is other or (type(one) is type(other) and not isinstance(one, Tensor) and bool(one == other))


def turned_off(model: Any, config: Any) -> dict[str, None]:
    """Options that a prepared configuration has at None, since the caller said so: left alone they would be filled with
    the model's own or a default once more. Lengths are not among them."""
    filled, _ = model._prepare_generation_config(copy.deepcopy(config))
    options = {name for name, value in vars(config).items() if value is None and name[0] != "_"}
    return {name: None for name in sorted(options) if "length" not in name and getattr(filled, name) is not None}


def refuse_a_streamer(method: Any) -> None:
    """Generation gives a streamer the prompt, and hides it from every loop but its own: whoever listens would wait for
    an end that never comes. It is found where generation holds it."""
    frame = inspect.currentframe()
    while frame is not None and not _generates_with(frame, method):
        frame = frame.f_back
    if frame is not None and frame.f_locals.get("streamer") is not None:
        raise ValueError("custom_generate is handed no streamer: use gem.generate(model, **inputs, streamer=...)")


def _generates_with(frame: Any, method: Any) -> bool:
    return frame.f_code.co_name == "generate" and frame.f_locals.get("custom_generate") is method
