"""The claims C7 to C10 (activation, real networks, the linear contrast, the printed configuration) and the controls."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Every, Judgement, Measurements, Values, pick, pool

from .study import PRINTED_RATES, study

TT, TV = "train-train", "train-validation"


def _synthetic(m: Measurements, split: str, setting: str) -> Values:
    return m.final("test_loss", arm="fomaml", setting=setting, split=split)


def _moved(a: Values, b: Values) -> Values:
    return (a - b).map(abs)


# C7: activation


@study.claim("C7a", "with ReLU, too, the test loss is lower with a split", source="Table 1, synthetic")
def relu_order(m: Measurements) -> Judgement:
    return (_synthetic(m, TT, "relu") - _synthetic(m, TV, "relu")).named("without − with a split").above(0)


for _id, _split in (("C7b", TT), ("C7c", TV)):

    @study.claim(
        _id,
        f"the activation moves the loss of {_split} by less than a quarter of the gap between the splits",
        source="Table 1, synthetic; in these settings ReLU has no quadratic zone and no exponential growth",
    )
    def activation_matters_little(m: Measurements, split: str = _split) -> Judgement:
        change = _moved(_synthetic(m, split, "relu"), _synthetic(m, split, "base"))
        gap = _synthetic(m, TT, "base") - _synthetic(m, TV, "base")
        return (change - gap * 0.25).named("|ReLU − Huberized| − gap/4").below(0)


# C8: real networks


def rainbow(m: Measurements, split: str, variant: str = "huberized") -> Values:
    return m.final("accuracy", arm="rainbow", split=split, variant=variant)


def rainbow_gap(m: Measurements, variant: str = "huberized") -> Values:
    return (rainbow(m, TV, variant) - rainbow(m, TT, variant)).named("accuracy with − without a split")


for _id, _variant, _table in (
    ("C8a", "huberized", "Table 1"), ("C8b", "relu", "Table 1"), ("C8c", "one step", "Table 2"),
):  # fmt: skip

    @study.claim(
        _id,
        f"on RainbowMNIST the split gives the higher accuracy on new tasks ({_variant})",
        source=f"{_table}, RainbowMNIST, on the configured image set",
    )
    def split_wins(m: Measurements, variant: str = _variant) -> Judgement:
        return rainbow_gap(m, variant).above(0)


@study.claim("C8d", "the gap is larger with five inner steps than with one", source="Table 2, RainbowMNIST")
def steps_widen(m: Measurements) -> Judgement:
    return (rainbow_gap(m) - rainbow_gap(m, "one step")).named("gap at 5 − gap at 1").above(0)


@study.claim("C8e", "more inner steps hurt without a split", source="Table 2, RainbowMNIST")
def steps_hurt(m: Measurements) -> Judgement:
    return (rainbow(m, TT) - rainbow(m, TT, "one step")).named("accuracy at J = 5 − J = 1").below(0)


@study.claim("C8f", "the gap is smaller with outer above inner rate", source="Table 3, RainbowMNIST",
             printed="the split performs better when the inner rate is smaller than the outer one (the table has the "
             "opposite)")  # fmt: skip
def swapped_narrows(m: Measurements) -> Judgement:
    return (rainbow_gap(m) - rainbow_gap(m, "swapped rates")).named("gap − gap with rates swapped").above(0)


for _id, _split in (("C8g", TT), ("C8h", TV)):

    @study.claim(
        _id,
        f"the activation moves the accuracy of {_split} by less than a quarter of the gap",
        source="Table 1, RainbowMNIST",
    )
    def rainbow_activation(m: Measurements, split: str = _split) -> Judgement:
        change = _moved(rainbow(m, split, "relu"), rainbow(m, split))
        return (change - rainbow_gap(m) * 0.25).named("|ReLU − Huberized| − gap/4").below(0)


@study.claim(
    "C8i",
    "FOMAML with a split at the source's rates is at least as good as Reptile, tuned (two points are a tie)",
    source="Table 4, RainbowMNIST",
)
def reptile(m: Measurements) -> Judgement:
    ours = rainbow(m, TV) - m.final("accuracy", arm="reptile")
    return ours.named("FOMAML − Reptile").at_least(-0.02)


@study.claim("C8j", "so it is with its own rates tuned in the same way", source="Table 4, RainbowMNIST")
def tuned_reptile(m: Measurements) -> Judgement:
    ours = m.final("accuracy", arm="fomaml-tuned") - m.final("accuracy", arm="reptile")
    return ours.named("FOMAML, tuned − Reptile, tuned").at_least(-0.02)


@study.claim("C8k", "with six blocks, too, the split gives the higher accuracy", source="CNN-6 beside CNN-4",
             when={"six blocks": lambda p: p.blocks == 6})  # fmt: skip
def deeper(m: Measurements) -> Judgement:
    return rainbow_gap(m).above(0)


@study.claim("C8l", "and with three or five shots", source="1-, 3- and 5-shot tasks",
             when={"three or five shots": lambda p: p.shots in (3, 5)})  # fmt: skip
def more_shots(m: Measurements) -> Judgement:
    return rainbow_gap(m).above(0)


# C9: the linear contrast


@study.claim("C9a", "the data are linearly realisable: ⟨θ*, x⟩ = y for every sample", source="Section 3")
def realisable(m: Measurements) -> Judgement:
    return m.every("realisable_error", arm="linear").named("|⟨θ*, x⟩ − y|").at_most(0, tolerance=1e-12)


@study.claim(
    "C9b",
    "a linear centroid model on the same data is no worse without a split",
    source="Comparison with the linear theory: ridge regression inside, least squares outside",
)
def linear_order(m: Measurements) -> Judgement:
    error = {split: m.final("linear_error", arm="linear", split=split) for split in (TT, TV)}
    return (error[TV] - error[TT]).named("squared error with − without a split").at_least(0)


@study.claim(
    "C9d",
    "nor with as few equations as the split leaves: both loops on the support half",
    source="the same; without a split there are twice as many outer equations, which C9b cannot tell apart",
)
def linear_order_of_halves(m: Measurements) -> Judgement:
    error = {split: m.final("linear_error", arm="linear", split=split) for split in ("support only", TV)}
    return (error[TV] - error["support only"]).named("squared error with a split − support half").at_least(0)


@study.claim("C9c", "the two-layer network reverses that order", source="Theorems 4.4 and 4.5")
def network_order(m: Measurements) -> Judgement:
    return (_synthetic(m, TT, "base") - _synthetic(m, TV, "base")).named("loss without − with a split").above(0)


# C10: the printed synthetic configuration


# The pair of rates at which the split ends with the lower loss: what is said about that gap is judged there.
GAP = "0.001/0.0001"


def printed(m: Measurements, metric: str, split: str, rates: str = GAP, variant: str = "huberized") -> Values:
    return m.final(metric, arm="printed", split=split, rates=rates, variant=variant)


def printed_gap(m: Measurements, variant: str = "huberized") -> Values:
    return printed(m, "test_loss", TT, variant=variant) - printed(m, "test_loss", TV, variant=variant)


for _id, _rates in (("C10a", "0.01/0.001"), ("C10b", "0.001/0.0001")):

    @study.claim(
        _id,
        f"in the printed configuration the split ends with the lower test loss (rates {_rates})",
        source="Table 1, synthetic; the order only: T, M, n₁ and the test are not printed, rates are printed twice",
        paper="8.50 without, 4.66 with a split",
    )
    def printed_order(m: Measurements, rates: str = _rates) -> Judgement:
        losses = [printed(m, "test_loss", split, rates) for split in (TT, TV)]
        return (losses[0] - losses[1]).named("loss without − with a split").above(0)


_PRINTED = {
    "C10c": ("but at neither pair is anything learned with a split: accuracy stays below 0.6",
             "the lower loss shows that the split learns the feature",
             lambda m: _both(m, "test_accuracy").at_most(0.6)),
    "C10d": ("and the loss stays above log 2, that of a constant answer", None,
             lambda m: _both(m, "test_loss").at_least(math.log(2))),
    "C10e": ("noise alignment is more than ten times the feature's at the end", None,
             lambda m: _both(m, "largest_feature_over_noise").named("Λ/Ξ").at_most(0.1)),
    "C10f": ("with a split the test loss ends at its minimum, within 2 %", None,
             lambda m: _over_least(m, TV, "last", "0.01/0.001").at_most(1.02)),
    "C10g": ("without one it falls and rises again: both ends 5 % above an inner minimum", None,
             lambda m: _over_least(m, TT, "ends", "0.01/0.001").at_least(1.05)),
    "C10h": ("the activation moves the loss by less than a quarter of the gap, with a split", None,
             lambda m: (_moved(printed(m, "test_loss", TV, variant="relu"), printed(m, "test_loss", TV))
                        - printed_gap(m) * 0.25).named("|ReLU − Huberized| − gap/4").below(0)),
    "C10i": ("the gap is larger at J = 5 than at J = 1", None,
             lambda m: (printed_gap(m) - printed_gap(m, "one step")).named("gap at 5 − gap at 1").above(0)),
    "C10j": ("the gap is smaller with the outer above the inner rate", None,
             lambda m: (printed_gap(m) - printed_gap(m, "swapped rates")).named("gap − gap swapped").above(0)),
    "C10k": ("at the other pair of printed rates, with a split: the test loss ends at its minimum, within 2 %", None,
             lambda m: _over_least(m, TV, "last", "0.001/0.0001").at_most(1.02)),
    "C10l": ("and without one: both ends 5 % above an inner minimum", None,
             lambda m: _over_least(m, TT, "ends", "0.001/0.0001").at_least(1.05)),
}  # fmt: skip
_SOURCES = {"C10f": "Figure 1a", "C10g": "Figure 1b", "C10h": "Table 1, synthetic", "C10i": "Table 2, synthetic",
            "C10j": "Table 3, synthetic", "C10k": "Figure 1a", "C10l": "Figure 1b"}  # fmt: skip


def _over_least(m: Measurements, split: str, which: str, rates: str) -> Values:
    """The last test loss (or the smaller of first and last) over the least along the run, per seed."""

    def over_least(rows: pl.DataFrame) -> float:
        values = rows["value"].to_list()
        ends = values[-1] if which == "last" else min(values[0], values[-1])
        return float(ends / min(values))

    curve = m.curve("test_loss", arm="printed", split=split, rates=rates, variant="huberized")
    return m.per_seed(curve, over_least, "last/least test loss" if which == "last" else "smaller end/least test loss")


def _both(m: Measurements, metric: str) -> Every:
    """A metric at the end of training with a split, at both printed pairs of rates."""
    return pool([printed(m, metric, TV, rates) for rates in PRINTED_RATES], metric.replace("_", " "))


for _id, (_statement, _wrong, _judge) in _PRINTED.items():
    study.claim(_id, _statement, source=_SOURCES.get(_id, "Section 5.1, synthetic"), printed=_wrong)(_judge)


# Controls


def _control(m: Measurements, metric: str, case: str, split: str, adapts: bool = True) -> Values:
    return m.final(metric, arm="control", case=case, split=split, adapts=adapts)


_CONTROLS = {
    "N1": ("with labels that the feature does not tell, the split learns nothing (test loss above 0.65)",
           "Control of C3",
           lambda m: _control(m, "test_loss", "shuffled labels", TV).above(0.65)),
    "N2": ("a split whose halves are the same samples fails like none (test loss above 0.65)", "Control of C3",
           lambda m: _control(m, "test_loss", "leaked split", "leaked").above(0.65)),
    "N3": ("with γ = 0 five inner steps are pooled descent, to the last digits", "Control of C4",
           lambda m: _every_difference(m).at_most(0, tolerance=1e-12)),
    "N4": ("the engine on inner products gives the weights of the direct one", "Control of every synthetic claim",
           lambda m: m.every("deviation", arm="engines").named("deviation/movement").at_most(0, tolerance=1e-9)),
    "N5": ("nothing in Reptile's tuning grid beats the chosen pair by more than two points", "Control of C8i",
           lambda m: _tuning_lead(m, "reptile").at_most(0.02)),
    "N6": ("meta-training matters on RainbowMNIST: with a split it gains at least 10 points on the start",
           "Control of C8",
           lambda m: (rainbow(m, TV) - m.at("accuracy", 0, arm="rainbow", split=TV, variant="huberized"))
           .named("accuracy at the end − at the start").above(0.1)),
    "N7": ("nothing in FOMAML's tuning grid beats the chosen pair by more than two points", "Control of C8j",
           lambda m: _tuning_lead(m, "fomaml").at_most(0.02)),
    "N8": ("with labels that the feature does not tell, accuracy stays within 0.1 of one half", "Control of C3",
           lambda m: _control(m, "test_accuracy", "shuffled labels", TV).between(0.4, 0.6)),
}  # fmt: skip


def _every_difference(m: Measurements) -> Every:
    apart = [
        _moved(*(_control(m, "test_loss", "no inner rate", split, adapts) for adapts in (True, False)))
        for split in (TT, TV)
    ]
    return pool(apart, "difference of test losses")


def _tuning_lead(m: Measurements, method: str) -> Values:
    candidates = getattr(m.params, f"{method}_candidates")
    found = {c: m.final("tuning_accuracy", arm=f"{method}-tuning", candidate=c) for c in candidates}
    chosen = found[getattr(m.params, method)]
    return (pick(max, found.values()) - chosen).named("best candidate − chosen")


for _id, (_statement, _source, _judge) in _CONTROLS.items():
    study.claim(_id, _statement, source=_source)(_judge)
