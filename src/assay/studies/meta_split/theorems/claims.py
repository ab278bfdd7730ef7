"""Theorems 4.4 and 4.5 in the base setting: both optimise, one fails, one succeeds, and exact bounds of the proofs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values

from ..learners import TT, TV
from ..params import Planted
from . import theory
from .arms import SETTINGS, part

BASE = {"noise that the inner loop amplifies more than the feature": lambda p: p.prediction().split_matters}
RATES = {**BASE, "the Huberized ReLU": lambda p: p.activation == "huberized"}
LONG = "setting long, 5,000 outer steps at the presets laptop and paper"
EITHER = {TT: "without a split", TV: "with a split"}
WITHIN = 0.1  # how far a rate may be from its formula, which drops products between noise vectors


def ours(m: Measurements[Planted], metric: str, split: str, setting: str = "base") -> Values:
    """A metric of FOMAML at the end of training."""
    found = m.final(metric, arm="fomaml", setting=setting, split=split)
    return found.named(f"{metric.replace('_', ' ')}, {split}, {setting}")


# C1: optimisation


@part.claims_over(
    {"C1a": {"split": TT, "how": EITHER[TT]}, "C1b": {"split": TV, "how": EITHER[TV]}},
    statement="FOMAML {how} drives its meta-training loss on the observed tasks to near zero (below 0.06).",
    source="Theorems 4.4 and 4.5, first part",
    when=BASE,
)
def optimises(m: Measurements[Planted], *, split: str) -> Judgement:
    return ours(m, "meta_loss", split).below(0.06)


@part.claims_over(
    {"C1c": {"split": TT, "how": EITHER[TT]}, "C1d": {"split": TV, "how": EITHER[TV]}},
    statement="In a long run the meta-training loss of FOMAML {how} falls at least about as fast as 1/t: the "
    "slope of log loss over log t is at most −0.8.",
    source=f"Theorems 4.4 and 4.5: min L ≤ Õ(1/(Tη)); {LONG}",
    setting="long",
    when=BASE,
)
def rate_of_descent(m: Measurements[Planted], *, split: str) -> Judgement:
    """d log(meta-loss)/d log(t) over the last four fifths of the long run."""
    curve = m.curve("meta_loss", arm="fomaml", setting="long", split=split)
    slope = m.per_seed(
        curve.filter(pl.col("step") >= m.params_of("long").steps / 5),
        lambda late: np.polyfit(np.log(late["step"]), np.log(late["value"]), 1)[0],
        f"slope of log loss over log t, {split}",
    )
    return slope.at_most(-0.8)


# C2: failure without a split


@part.claim(
    "C2a",
    "Without a split FOMAML's test loss on new tasks stays at its initial level (at least 0.65) at every step looked "
    "at.",
    source="Theorem 4.4, second part",
    when=BASE,
    headline=True,
)
def constant_loss(m: Measurements[Planted]) -> Judgement:
    return m.every("test_loss", arm="fomaml", setting="base", split=TT).named("test loss").at_least(0.65)


@part.claim(
    "C2b",
    "On planted tasks with one shared feature, FOMAML without a split ends below 0.75 accuracy on new tasks.",
    source="Theorem 4.4, second part",
    when=BASE,
)
def near_chance(m: Measurements[Planted]) -> Judgement:
    return ours(m, "test_accuracy", TT).below(0.75)


@part.claim(
    "C2c",
    "Without a split noise is learned and the shared feature is not: the larger feature alignment is under a tenth of "
    "the noise alignment (Λ/Ξ).",
    source="Theorem 4.4",
    when=BASE,
)
def noise_over_feature(m: Measurements[Planted]) -> Judgement:
    return ours(m, "largest_feature_over_noise", TT).named("Λ/Ξ").below(0.1)


@part.claim(
    "C2d",
    "Without a split the alignment of FOMAML's filters with the shared feature (Λ) stays below d^{−1/4} at every step "
    "looked at.",
    source="Proof of Theorem 4.4",
    when=BASE,
)
def feature_stays_small(m: Measurements[Planted]) -> Judgement:
    level = theory.unlearned_level(m.params.dim)
    rows = m.every("largest_feature_alignment", arm="fomaml", setting="base", split=TT)
    return (rows / level).named("Λ/d^{−1/4}").at_most(1)


@part.claim(
    "C2e",
    "Without a split every training noise vector is memorised: the alignment with it reaches m^{−1/2}(1 + γs/n)^{−J}.",
    source="Proof of Theorem 4.4, T⁽¹⁾",
    when=BASE,
)
def all_memorised(m: Measurements[Planted]) -> Judgement:
    rows = m.every("memorised", arm="fomaml", setting="base", split=TT, step=m.params.steps)
    return rows.named("share memorised").at_least(1)


@part.claim(
    "C2f",
    "Without a split FOMAML's failure lasts: in no seed is the test loss below 0.35 at any step looked at, in a run "
    "far longer than memorising takes.",
    source=f"Theorem 4.4 at finite size; with a split see C3j; {LONG}",
    setting="long",
    when=BASE,
)
def lasting(m: Measurements[Planted]) -> Judgement:
    rows = m.every("test_loss", arm="fomaml", setting="long", split=TT)
    return rows.named("test loss at any step of the long run").at_least(0.35)


@part.claim(
    "C2g",
    "Without a split the failure is not for ever at finite size: after a long run the test loss has left its initial "
    "level (below 0.65).",
    source=f"Theorem 4.4; {LONG}",
    printed="the test loss stays constant for all t ≤ T = poly(d)",
    setting="long",
    when=BASE,
)
def wears_off(m: Measurements[Planted]) -> Judgement:
    return ours(m, "test_loss", TT, "long").below(0.65)


@part.claim(
    "C2h",
    "From initial filters of the source's size (σ₀ = d^{−1/2}) the feature is learned without a split too: the test "
    "loss ends below 0.65.",
    source="Condition 4.3; the theory needs polylog(d)^J ≪ √d, and the other settings start smaller",
    printed="the separation holds from σ₀ = d^{−1/2}",
    setting="large-start",
    when={**BASE, "σ₀ = d^{−1/2}": lambda p: math.isclose(p.initial_scale, p.dim**-0.5, rel_tol=0.01)},
)
def large_start(m: Measurements[Planted]) -> Judgement:
    return ours(m, "test_loss", TT, "large-start").below(0.65)


@part.claim(
    "C2i",
    "FOMAML's filters of the other class do not align with training noise, with or without a split: their alignment "
    "(Γ) stays below d^{−1/2} log d at every step looked at.",
    source="Proofs of Theorems 4.4 and 4.5: Γ = Õ(d^{−1/2})",
    when=BASE,
)
def wrong_filters(m: Measurements[Planted]) -> Judgement:
    level: float = m.params.dim**-0.5 * math.log(m.params.dim)
    rows = m.every("wrong_noise_alignment", arm="fomaml", setting="base")
    return (rows / level).named("Γ/(d^{−1/2} log d)").at_most(1)


@part.claim(
    "C2j",
    "FOMAML without a split needs at least ten times as many outer steps as with one to bring the test loss down to "
    "0.35.",
    source=f"Theorems 4.4 and 4.5 (never against soon), asked as an order of magnitude; a run that never gets there "
    f"counts with its last step; {LONG}",
    setting="long",
    when=BASE,
)
def much_slower(m: Measurements[Planted]) -> Judgement:
    def steps_to(split: str, never: Callable[[pl.DataFrame], float]) -> Values:
        def first(rows: pl.DataFrame) -> float:
            there = rows.filter(pl.col("value") <= 0.35)
            return float(there["step"][0]) if len(there) else never(rows)

        curve = m.curve("test_loss", arm="fomaml", setting="long", split=split)
        return m.per_seed(curve, first, f"steps to a test loss of 0.35, {split}")

    without, with_one = steps_to(TT, lambda rows: float(rows["step"][-1])), steps_to(TV, lambda rows: math.nan)
    return (without / with_one).named("steps without/with a split").at_least(10)


@part.claim(
    "C2k",
    "Adapting to a new task does not rescue a network that was meta-trained without a split: its adapted test loss "
    "ends above 0.65.",
    source="Theorem 4.4; the level of C2a after J inner steps on the support samples of new tasks",
    when=BASE,
)
def adapted_loss_stays(m: Measurements[Planted]) -> Judgement:
    return ours(m, "adapted_loss", TT).above(0.65)


# C3: success with a split


@part.claim(
    "C3a",
    "With a split FOMAML learns what new tasks share: their test loss, without any adaptation, ends below 0.08.",
    source="Theorem 4.5",
    when=BASE,
    headline=True,
)
def low_loss(m: Measurements[Planted]) -> Judgement:
    return ours(m, "test_loss", TV).below(0.08)


@part.claim(
    "C3b",
    "On planted tasks with one shared feature, FOMAML with a split ends above 0.99 accuracy on new tasks.",
    source="Theorem 4.5",
    when=BASE,
)
def high_accuracy(m: Measurements[Planted]) -> Judgement:
    return ours(m, "test_accuracy", TV).above(0.99)


@part.claim(
    "C3c",
    "With a split the shared feature is learned and noise is not: the smaller feature alignment is over ten times that "
    "with validation noise (Λ/Ξ).",
    source="Theorem 4.5",
    when=BASE,
)
def feature_over_noise(m: Measurements[Planted]) -> Judgement:
    return ours(m, "feature_over_noise", TV).above(10)


@part.claim(
    "C3d",
    "With a split the feature alignment becomes of order one: the smaller Λ ends beyond the knee of the activation.",
    source="Theorem 4.5",
    when=BASE,
)
def beyond_the_knee(m: Measurements[Planted]) -> Judgement:
    return ours(m, "feature_alignment", TV).above(m.params.knee)


@part.claim(
    "C3i",
    "With a split the test loss is that of the shared feature alone, ½Σ_y ℓ(yΣ_r j_rσ(y⟨w_r, ν⟩)), within 10 %.",
    source="Proof of Theorem 4.5",
    when=BASE,
)
def feature_explains(m: Measurements[Planted]) -> Judgement:
    ratio = ours(m, "feature_only_loss", TV) / ours(m, "test_loss", TV)
    return ratio.named("formula/measured").equals(
        1, within=WITHIN, because="the formula drops noise and the tasks' own features"
    )


@part.claim(
    "C3j",
    "On planted tasks with one shared feature, FOMAML with a split has a test loss below 0.35 on new tasks after 300 "
    "outer steps.",
    source="Theorem 4.5",
    setting="long",
    when={**BASE, "a long run that is looked at after 300 steps": lambda p: p.steps >= 300 and 300 % p.look_every == 0},
)
def quick(m: Measurements[Planted]) -> Judgement:
    return m.at("test_loss", 300, arm="fomaml", setting="long", split=TV).named("test loss at step 300").below(0.35)


@part.claim(
    "C3m",
    "With a split the tasks' own features stay behind the shared one: alignment with them is at most σ_s²d times that "
    "with it (max|⟨w, z_k⟩|/Λ).",
    source="Proof of Theorem 4.5; an order, here with constant 1",
    when=BASE,
)
def own_features_small(m: Measurements[Planted]) -> Judgement:
    return ours(m, "task_over_feature", TV).named("max|⟨w, z⟩|/Λ").at_most(m.params.task_norm**2)


@part.claim(
    "C3n",
    "With a split FOMAML's alignment with the shared feature (the smaller Λ) ends between the orders of the proof, "
    "taken with constant 1: log(d)^0.1 and log(d)^1.2.",
    source="Proof of Theorem 4.5, Λ⁽ᵀ⁾",
    when=BASE,
)
def alignment_range(m: Measurements[Planted]) -> Judgement:
    log = math.log(m.params.dim)
    return ours(m, "feature_alignment", TV).named("smaller Λ").between(log**0.1, log**1.2)


@part.claim(
    "C3p",
    "With a split the feature alignment of both classes passes log(d)^0.1 before a long run ends (T⁽³⁾ < T), in every "
    "seed.",
    source=f"Theorem F.18: T⁽³⁾ < T; with constant 1; {LONG}",
    setting="long",
    when=BASE,
)
def third_stage(m: Measurements[Planted]) -> Judgement:
    """No filter's j⟨w, ν⟩ ever falls (C4m), so a level that was passed is kept."""
    p = m.params_of("long")
    rows = m.every("feature_alignment", arm="fomaml", setting="long", split=TV, step=p.steps)
    level: float = math.log(p.dim) ** 0.1
    return (rows / level).named("smaller Λ/log(d)^0.1").at_least(1)


@part.claim(
    "C3r",
    "Adapting to a new task does no harm to a network that was meta-trained with a split: its adapted test loss ends "
    "below 0.08.",
    source="Theorem 4.5; the level of C3a after J inner steps on the support samples of new tasks",
    when=BASE,
)
def adapted_loss_low(m: Measurements[Planted]) -> Judgement:
    return ours(m, "adapted_loss", TV).below(0.08)


# C4: exact bounds


RECURSIONS = "exact recursions of Appendix C; every setting and look"
INNER = "exact recursions of Appendix C; every look of every setting with inner steps"


def _adapting(m: Measurements[Planted]) -> list[str]:
    """The settings with an inner loop. Without one nothing moves and nothing may: 0 at most 0."""
    return [setting for setting in SETTINGS if m.params_of(setting).inner_steps]


@part.claim(
    "C4m",
    "In every filter the alignment with the shared feature (j⟨w, ν⟩) grows or stays equal over every outer step and "
    "every inner loop looked at, with or without a split.",
    source=RECURSIONS,
)
def feature_never_falls(m: Measurements[Planted]) -> Judgement:
    return m.every("feature_fall", arm="fomaml").named("excess").at_most(0, tolerance=1e-12)


@part.claim(
    "C4n",
    "All inner steps of a task together (J ≥ 1) raise the alignment with the shared feature (j⟨w, ν⟩) by at most "
    "Jγ‖ν‖², at every step looked at.",
    source=INNER,
)
def feature_rises_little(m: Measurements[Planted]) -> Judgement:
    excess = m.every("feature_inner_excess", arm="fomaml", setting=_adapting(m))
    return excess.named("excess, J ≥ 1").at_most(0, tolerance=1e-12)


@part.claim(
    "C4o",
    "With a split all inner steps of a task together (J ≥ 1) move alignments with validation noise by at most "
    "Jγ max|⟨ξ, ξ_val⟩|, at every step looked at.",
    source=INNER,
)
def validation_noise_moves_little(m: Measurements[Planted]) -> Judgement:
    excess = m.every("validation_excess", arm="fomaml", split=TV, setting=_adapting(m))
    return excess.named("excess, J ≥ 1").at_most(0, tolerance=1e-12)


# Where the feature wins


@part.phase(
    "P1",
    "Without a split FOMAML aligns its filters more with the shared feature than with its samples' noise (Λ > Ξ).",
    source="The race of Theorem 4.4, over noise energies and numbers of tasks",
)
def feature_wins(m: Measurements[Planted]) -> Judgement:
    ratio = ours(m, "largest_feature_over_noise", TT).map(math.log)
    return ratio.named("log Λ/Ξ without a split").above(0)


@part.boundary(
    "P1",
    says="It does where the feature's growth rate exceeds the noise's.",
    arms=("fomaml",),
    point={"setting": "base"},
)
def faster_feature(params: Planted) -> float:
    rates = params.prediction().train_train
    return math.log(rates.feature / rates.noise)
