"""What transformers' generation prepares for a custom decoding loop, taken apart again."""

from __future__ import annotations

from typing import Any

import torch


def added_by_the_caller(model: Any, config: Any, processors: Any, criteria: Any) -> tuple[Any, Any]:
    """Of prepared logits processors and stopping criteria those that generation did not make from the configuration.

    They are told apart by their classes, as generation itself does when it merges the two."""
    device = torch.device("cpu")
    made = model._get_logits_processor(
        generation_config=config, input_ids_seq_length=1, encoder_input_ids=torch.zeros(1, 1).long(), device=device
    )
    ended = model._get_stopping_criteria(generation_config=config, stopping_criteria=[])
    return _without(processors, made), _without(criteria, ended)


def _without(given: Any, made: Any) -> Any:
    """The list without members of classes that the other one holds, None when it is empty."""
    kinds = {type(one) for one in made}
    left = [one for one in given or () if type(one) not in kinds]
    return type(given)(left) if left else None
