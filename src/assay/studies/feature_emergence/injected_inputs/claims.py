"""Claims about injected inputs: their labels are learned slower, and those of the images as before."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part


def _injected(m: Measurements[Params], which: str, fraction: float = 0.5, width: int = 50) -> Values:
    return m.area("part_accuracy", arm="injected-inputs", width=width, fraction=fraction, part=which)


@part.claim(
    "C8e",
    "labels on Gaussian inputs are learned slower than on images (area under accuracy, m = 50)",
    source="Figures 4 and 22 to 25, FC networks on the configured image set",
)
def injected_slower(m: Measurements[Params]) -> Judgement:
    return (_injected(m, "original") - _injected(m, "injected")).named("original − injected part").at_least(0.03)


@part.claim(
    "C8f",
    "the original part is learned about as fast as without injected inputs (within 3 points, α = 1/2)",
    source="Figures 4 and 22 to 25",
)
def original_unharmed(m: Measurements[Params]) -> Judgement:
    gap = _injected(m, "original") - _injected(m, "original", fraction=0.0)
    return gap.named("original part − original only").between(-0.03, 0.03)


@part.claim("C8g", "the trend is there for the small student too (m = 9)", source="Figure 22: a weak trend")
def injected_small(m: Measurements[Params]) -> Judgement:
    gap = _injected(m, "original", width=9) - _injected(m, "injected", width=9)
    return gap.named("original − injected part, m = 9").above(0)
