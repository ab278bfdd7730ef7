"""Claims about injected inputs: their labels are learned slower, and those of the images as before."""

from __future__ import annotations

from collections.abc import Callable

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

WIDE, SMALL = 50, 9  # units of the students


def _area(m: Measurements[Params], which: str, fraction: float, width: int = WIDE) -> Values:
    """Agreement with the teacher on one part of the test inputs, as a mean over training."""
    return m.area("part_accuracy", arm="injected-inputs", width=width, fraction=fraction, part=which)


def _share(fraction: float) -> dict[str, Callable[[Params], bool]]:
    return {f"a share of {fraction:g} among the fractions": lambda p: fraction in p.fractions}


_QUARTER = {"fraction": 0.25, "words": "a quarter", "when": _share(0.25)}
_HALF = {"fraction": 0.5, "words": "half", "when": _share(0.5)}
_MOST = {"fraction": 0.75, "words": "three quarters", "when": _share(0.75)}


@part.claims_over(
    {"C8e": {**_HALF, "headline": True}, "C8m": _QUARTER, "C8n": _MOST},
    statement="With {words} of the images replaced by noise, labels of the noise are learned slower than those of "
    "the images (mean accuracy).",
    source="Figures 4 and 22 to 25, a student of 50 units on the configured image set",
)
def injected_slower(m: Measurements[Params], *, fraction: float) -> Judgement:
    gap = _area(m, "original", fraction) - _area(m, "injected", fraction)
    return gap.named("images − noise").at_least(0.03)


@part.claims_over(
    {"C8f": _HALF, "C8o": _QUARTER, "C8p": _MOST},
    statement="With {words} of the images replaced by noise, the images left are learned as fast as without noise "
    "(mean accuracy).",
    source="Figures 4 and 22 to 25, a student of 50 units on the configured image set",
)
def original_unharmed(m: Measurements[Params], *, fraction: float) -> Judgement:
    gap = _area(m, "original", fraction) - _area(m, "original", 0.0)
    because = "by which the labels on noise must fall behind to count as slower"
    return gap.named("images beside noise − images alone").equals(0, within=0.03, because=because)


@part.claim(
    "C8g",
    "With half of the images replaced by noise, a student of 9 units learns labels of the noise slower than those of "
    "the images (mean accuracy).",
    source="Figure 22: a weak trend; a student of 9 units on the configured image set",
    when=_share(0.5),
)
def injected_small(m: Measurements[Params]) -> Judgement:
    gap = _area(m, "original", 0.5, SMALL) - _area(m, "injected", 0.5, SMALL)
    return gap.named("images − noise, 9 units").above(0)


@part.claims_over(
    {"C8q": _QUARTER, "C8r": _HALF, "C8s": _MOST},
    statement="With {words} of the images replaced by noise, the whole mixture is learned slower than images alone.",
    source="Figures 4 and 22 to 25, a student of 50 units on the configured image set",
)
def mixture_below(m: Measurements[Params], *, fraction: float) -> Judgement:
    gap = _area(m, "original", 0.0) - _area(m, "mixture", fraction)
    return gap.named("images alone − mixture").above(0)
