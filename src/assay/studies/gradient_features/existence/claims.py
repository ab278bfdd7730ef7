"""Claims about existence and the trade-off: the constructed head works, its bound holds and says little."""

from __future__ import annotations

import numpy as np
import polars as pl

from assay.lab import Exact, Judgement, Measurements, Values, combine

from ..theory import log_log_slope
from .arms import WIDTHS, Params, part

WIDE = {"three widths or more": lambda p: len(p.head_widths) > 2}
TO_16384 = {"widths up to 16,384 neurons": lambda p: p.head_widths[-1] >= 16384}


@part.claim(
    "C2c",
    "The head constructed on stepped neurons misses the oracle of four XOR axes by no more than its explicit bound, at "
    "every width.",
    source="Existence lemma: E|g − g*| ≤ r·B_a1·B_x1·(ε_a + √(2γ)), tolerance and cone as realised",
)
def bound_holds(m: Measurements[Params]) -> Judgement:
    return (m.every("gap", arm="construction") / m.every("bound", arm="construction")).named("gap / bound").at_most(1)


@part.claim(
    "C2d",
    "The constructed head of four XOR axes is sparse: its support grows like (m·p)^0.5 within 0.1 of the exponent.",
    source="Existence lemma: support O(r√(m·p))",
    when=WIDE,
)
def support_exponent(m: Measurements[Params]) -> Judgement:
    support = m.rows("support", arm="construction")
    caught = m.rows("caught", arm="construction").select("seed", "neurons", caught=pl.col("value"))

    def slope(rows: pl.DataFrame) -> float:
        return log_log_slope(rows["caught"].to_torch(), rows["value"].to_torch())

    joined = support.join(caught, on=["seed", "neurons"])
    found = m.per_seed(joined, slope, "exponent of the support over m·p", by="neurons")
    return found.equals(0.5, within=0.1, because="the criterion 0.4 to 0.6 of the design")


@part.claim(
    "C2e",
    "With more neurons the constructed head of four XOR axes comes nearer to the oracle: at the largest width than at "
    "the smallest.",
    source="Existence lemma: the slack shrinks in m, to the floor of the cone",
    when=WIDE,
)
def gap_shrinks(m: Measurements[Params]) -> Judgement:
    first, last = (m.final("gap", arm="construction", neurons=m.params.head_widths[at]) for at in (0, -1))
    return (first - last).named("gap, smallest − largest width").above(0)


@part.claim(
    "N11",
    "On four XOR axes no component is without neurons for the constructed head, from 256 neurons on.",
    source="control: an empty set would make the construction meaningless",
)
def none_empty(m: Measurements[Params]) -> Judgement:
    return m.every("empty", arm="construction").named("components without neurons").at_most(0)


@part.claim(
    "X7",
    "The explicit bound of the constructed head stays vacuous on four XOR axes (above 1, the loss of the output 0) at "
    "the largest width tried, 16,384 neurons or more, in the best of five cone widths.",
    source="beyond the source: what the constants amount to; widths that leave no component without a neuron",
    when=TO_16384,
    headline=True,
)
def vacuous(m: Measurements[Params]) -> Judgement:
    least = m.every("least_bound", arm="construction", neurons=m.params.head_widths[-1])
    return least.named("least bound").at_least(1)


@part.claim(
    "C3l",
    "At the sizes that the main theorem asks for, with its threshold read as b̃ = B_G^(1/4)·B_a2·B_b^(3/4)/√(r·B_a1), "
    "descent pays for reaching a constructed head half of what building it from r gradient features gives away: r of 2 "
    "and 32, largest outputs B_a1 of 1/16, 1 and 16.",
    source="Main theorem: ‖ã‖²/(ηT) and 2r·B_a1·B_x1/(m·p)^(1/4)·√(B_b/B_G) shrink together, hidden constants set to 1",
    printed="√r·B_a1 below the fraction of b̃, with which the cost is B_a1/2 times the slack",
)
def threshold_balances(m: Measurements[Params]) -> Judgement:
    off = np.max(abs(m.every("cost_over_slack", arm="balance").values - 0.5))
    # The number of neurons is rounded to a whole one, out of tens of thousands or more.
    return Exact(float(off), "largest |cost / slack − 1/2|").at_most(1e-4)


@part.claim(
    "C8a",
    "On XOR axes of unequal weight, a network on one axis more loses less (hinge loss on new samples) than one with as "
    "many neurons on the heavier axes alone (upper bounds on OPT).",
    source="Trade-off: OPT falls in r",
)
def opt_falls(m: Measurements[Params]) -> Judgement:
    return combine(min, [gain_of_axis(m, axes) for axes in (2, 3, 4)], "least gain of an axis").above(0)


def gain_of_axis(m: Measurements[Params], axes: int) -> Values:
    """What the lightest of so many axes takes off the loss, beyond what as many neurons do without it."""
    return m.final("opt_wider", arm="trade-off", axes=axes - 1) - m.final("opt", arm="trade-off", axes=axes)


@part.claim(
    "C8b",
    "On XOR axes of unequal weight the slack that the bound pays for the heaviest axis alone is above 1, the loss of "
    "the output 0, even in the narrowest cone that holds a hundredth of all first gradients: no gain in OPT can pay "
    "for another axis.",
    source="Trade-off: slack r·B_a1·B_x1·√(2γ) against OPT, γ as realised",
)
def slack_dominates(m: Measurements[Params]) -> Judgement:
    return m.final("least_slack", arm="trade-off", axes=1).named("slack of one axis").above(1)


@part.claim(
    "N15",
    "With as many neurons, an axis that no component lies on lowers the hinge loss on new samples by less than a tenth "
    "of what the lightest XOR axis does.",
    source="control: what lowers the loss is the axis, and neither two more neurons nor more freedom to fit",
)
def noise_gains_less(m: Measurements[Params]) -> Judgement:
    of_noise = m.final("opt_wider", arm="trade-off", axes=3) - m.final("opt_with_noise", arm="trade-off", axes=3)
    return (of_noise - 0.1 * gain_of_axis(m, 4)).named("gain, noise axis − a tenth of the lightest axis").below(0)


@part.claim(
    "C8c",
    "On XOR axes of unequal weight lighter axes need wider cones: fewer first gradients lie within 0.05 of the "
    "lightest than of the heaviest.",
    source="Trade-off: the set of gradient features grows with γ",
)
def light_axes_need_width(m: Measurements[Params]) -> Judgement:
    heavy, light = (m.final("caught", arm="trade-off", axes=axes, width=WIDTHS[0]) for axes in (1, 4))
    return (heavy - light).named("share in the cone, heaviest − lightest").above(0)
