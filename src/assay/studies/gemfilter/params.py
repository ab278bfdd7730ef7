"""What several parts read: the depths of needles, and the real model with the filter that was chosen for it."""

from __future__ import annotations

from pydantic import Field

from assay import lab

from .learners import Rule

#: Where a needle stands, from the beginning of the prompt (0) to its end (1).
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


class RealModel(lab.Params):
    model: str = Field("smollm2", description="the real model: a hub name, a folder, a GGUF file, or smollm2")
    real_lengths: tuple[int, ...] = Field(
        (1024, 2048), min_length=1, description="n of the real needle prompts; k = n/8"
    )
    filter_layer: int = Field(14, ge=0, description="the real model's filter layer, chosen on tuning prompts")
    filter_rule: Rule = Field("window", description="its rule, chosen with it")

    def requirements(self) -> tuple[str, ...]:
        """What must be there for an arm on the real model."""
        return ("extra:llm", f"model:{self.model}")
