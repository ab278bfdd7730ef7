"""The claims on the stand-in domains (C1, C2), and controls. DomainBed itself needs images that no run here has."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part
from .learners import stopped_at
from .problem import NAMES

SOURCE = "Tables 6.1 and 6.2, on stand-in domains in place of DomainBed; trials and looks chosen by validation"
PAIRS = {"ERM": "ERM-NU", "Mixup": "Mixup-NU", "SWAD": "SWAD-NU"}


def accuracy(m: Measurements[Params], cue: str, method: str, target: str) -> Values:
    return m.final("accuracy", arm="benchmark", cue=cue, method=method, target=target)


def average(m: Measurements[Params], cue: str, method: str) -> Values:
    """The mean over the domains left out, per seed."""
    found = [accuracy(m, cue, method, target) for target in NAMES]
    return combine(lambda of: math.fsum(of) / len(of), found, f"accuracy of {method}")


def gain(m: Measurements[Params], cue: str, base: str, other: str | None = None) -> Values:
    """Paired by seed: a method with the nuclear norm less the same without it."""
    apart = average(m, cue, other or PAIRS[base]) - average(m, cue, base)
    return apart.named(f"average accuracy, {other or PAIRS[base]} − {base}")


def above_curve(m: Measurements[Params], cue: str, method: str, target: str) -> Values:
    """The accuracy above the best that ERM's own training shows at a look with at least the same validation accuracy,
    as if one had stopped it there; where it has no such look, above its looks with the best one."""
    ours = accuracy(m, cue, method, target)
    level = m.final("validation", arm="benchmark", cue=cue, method=method, target=target)
    where = {"arm": "benchmark", "cue": cue, "method": "ERM", "target": target}
    looks = [m.curve(name, **where).select("seed", "step", "value") for name in ("look_validation", "look_accuracy")]
    both = looks[0].join(looks[1], on=["seed", "step"], suffix="_accuracy")
    best: dict[int, float] = {}
    for (seed,), rows in both.group_by("seed"):
        asked = level.by_seed.get(seed, math.nan)
        best[seed] = stopped_at(asked, rows["value"].to_list(), rows["value_accuracy"].to_list())
    return ours - Values(best, "ERM's curve")


def average_above_curve(m: Measurements[Params], cue: str, method: str) -> Values:
    found = [above_curve(m, cue, method, target) for target in NAMES]
    return combine(lambda of: math.fsum(of) / len(of), found, f"average accuracy of {method} above ERM's curve")


@part.claims_over(
    {"C1a": {"cue": "patch"}, "C1b": {"cue": "texture"}},
    statement="On stand-in domains with a {cue} cue ERM with the nuclear norm is more accurate than ERM, on average "
    "over the domains left out.",
    source=SOURCE,
)
def helps_erm(m: Measurements[Params], *, cue: str) -> Judgement:
    return gain(m, cue, "ERM").above(0)


@part.claim(
    "C1c",
    "On stand-in domains with a patch cue ERM with the nuclear norm lies above ERM's own curve of accuracy outside "
    "against validation accuracy over steps.",
    source=SOURCE + "; a gain that ERM has by stopping earlier is none",
)
def above_erms_curve_with_patches(m: Measurements[Params]) -> Judgement:
    return average_above_curve(m, "patch", "ERM-NU").above(0)


@part.claim(
    "C1d",
    "On stand-in domains with a texture cue ERM with the nuclear norm lies above ERM's own curve of accuracy outside "
    "against validation accuracy over steps.",
    source=SOURCE + "; a gain that ERM has by stopping earlier is none",
)
def above_erms_curve_with_textures(m: Measurements[Params]) -> Judgement:
    return average_above_curve(m, "texture", "ERM-NU").above(0)


@part.claims_over(
    {
        "C2a": {"base": "Mixup", "cue": "patch"},
        "C2b": {"base": "Mixup", "cue": "texture"},
        "C2c": {"base": "SWAD", "cue": "patch"},
        "C2d": {"base": "SWAD", "cue": "texture"},
    },
    statement="On stand-in domains with a {cue} cue the nuclear norm makes {base} more accurate, on average over the "
    "domains left out.",
    source=SOURCE,
)
def stacks(m: Measurements[Params], *, base: str, cue: str) -> Judgement:
    return gain(m, cue, base).above(0)


@part.claim(
    "X10",
    "In the reversed domain of stand-in images with a texture cue the nuclear norm, chosen by validation, gains at "
    "least half of what the cue costs ERM.",
    source="Derived from the account: a rank penalty drops environmental features first; cost by domains without a cue",
    headline=True,
)
def recovers(m: Measurements[Params]) -> Judgement:
    free = m.final("accuracy", arm="no-cue", target="reversed")
    plain, penalised = (accuracy(m, "texture", method, "reversed") for method in ("ERM", "ERM-NU"))
    return ((penalised - plain) - 0.5 * (free - plain)).named("gain − half of the cue's cost").at_least(0)


@part.claim(
    "N4",
    "The nuclear norm at strength 0 trains exactly the network that plain ERM trains, bit for bit.",
    source="control",
)
def zero_is_erm(m: Measurements[Params]) -> Judgement:
    same = m.every("identical", arm="zero-strength")
    moved = m.every("moved_by_penalty", arm="zero-strength").map(lambda value: float(value > 0))
    return (same * moved).named("equal at strength 0, and other weights at 0.1").at_least(1)


@part.claim(
    "N5",
    "The texture cue costs ERM at least 0.05 accuracy in the reversed domain, against domains without a cue: the "
    "benchmark has room for a gain.",
    source="control: without such a cost no method could show anything",
)
def room(m: Measurements[Params]) -> Judgement:
    free = m.final("accuracy", arm="no-cue", target="reversed")
    return (free - accuracy(m, "texture", "ERM", "reversed")).named("accuracy, no cue − texture").at_least(0.05)


@part.claim(
    "N6",
    "The patch cue costs ERM at least 0.05 accuracy in the reversed domain, against domains without a cue.",
    source="control: without such a cost no method could show anything",
)
def room_of_patches(m: Measurements[Params]) -> Judgement:
    free = m.final("accuracy", arm="no-cue", target="reversed")
    return (free - accuracy(m, "patch", "ERM", "reversed")).named("accuracy, no cue − patch").at_least(0.05)
