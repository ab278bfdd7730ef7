"""Attention heads of transformers on modular addition: are they periodic in the numbers that they compare?

Most of it is read off the transformers of the part ``grokking``; those of the source's sizes, which want a GPU, are
trained here.
"""

from __future__ import annotations

from assay import lab
from assay.training import Seeds

from ..grokking.arms import Params, train_transformer, transformers

SETTINGS = {
    "heads-3": transformers(terms=3, modulus=61, steps=8000),
    "heads-4": transformers(terms=4, modulus=31, steps=8000),
    "heads-5": transformers(terms=5, modulus=17, steps=8000),
    "heads-3-strong": transformers(terms=3, modulus=61, steps=8000, decay=1.0),
}

part = lab.Part(
    "heads",
    params=Params,
    settings=SETTINGS,
    presets={
        "smoke": lab.PartPreset(settings={name: {"modulus": 5, "steps": 30} for name in SETTINGS}),
        "paper": lab.PartPreset(arms=("attention",), settings={name: {"layers": 1} for name in SETTINGS}),
    },
)


@part.arm(
    "attention",
    over={"setting": list(SETTINGS)},
    optional=True,
    tolerance=0.05,
    working_set=Params.transformer_bytes,
)
def attention(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """One-layer transformers at the source's sizes, for the shape of their heads."""
    train_transformer(params, seeds, record)
