"""The claims that the construction is gradient descent (C1, C2), and that nothing of it can be left out (controls)."""

from __future__ import annotations

from assay.lab import Every, Judgement, Measurements

from .arms import Params, part

ROUNDING = 1e-12


def _two_loops(params: Params) -> bool:
    return params.compared_loops >= 2


TWO_LOOPS = {"two loops or more": _two_loops}  # the first, from zero, is the same whatever is changed


@part.claim(
    "C1",
    "One masked linear-attention layer with Q = I and P = diag(I, 0) outputs (qᵀXᵀX + αyᵀX, 0) in the query row and "
    "zero elsewhere.",
    source="Lemma 8.13; three shapes, zero and random start, relative to the largest entry",
)
def one_layer(m: Measurements[Params]) -> Judgement:
    return m.every("layer_deviation", arm="identity").named("deviation").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C2a",
    "After every loop the hand-set transformer's query row is −α times the iterate of gradient descent on the examples "
    "in its prompt.",
    source="Theorem 8.14; 50 loops, steps that vary, three shapes, zero and random start",
    headline=True,
)
def every_loop(m: Measurements[Params]) -> Judgement:
    return m.every("loop_deviation", arm="identity").named("|θ − θ of descent|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C2b",
    "In 50 loops the hand-set transformer changes neither the examples in its prompt nor the scalar α by a single bit.",
    source="Lemma 8.13",
)
def nothing_else_moves(m: Measurements[Params]) -> Judgement:
    return m.every("rest_moved", arm="identity").named("change of the other entries").at_most(0)


@part.claim(
    "C2c",
    "With noisy targets the hand-set transformer ends, after 1,000 loops, at the least-squares solution of its "
    "examples.",
    source="Definition 8.10 without the realisability of Lemma 8.11",
)
def least_squares(m: Measurements[Params]) -> Judgement:
    return m.every("from_least_squares", arm="noise").named("|θ − least squares|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C2d",
    "A probe that fits gradient steps to the first five query states finds the step sizes that were set, and no "
    "movement off the gradient.",
    source="Theorem 8.14 read backwards",
)
def probe_reads_steps(m: Measurements[Params]) -> Judgement:
    rows = m.rows(["probe_step_deviation", "probe_residual"], arm="identity")
    return Every(rows, "|η fitted/η − 1| and share off the gradient").at_most(0, tolerance=1e-9)


_CHANGED = "Control: one part of the construction changed"


def _broken(m: Measurements[Params], change: str) -> Judgement:
    return m.every("deviation", arm="broken", change=change).named("‖θ − θ of descent‖").at_least(1e-3)


@part.claim(
    "N1",
    "A query row that also reads itself does not run gradient descent: the output is at least 0.001 away from it.",
    source=_CHANGED,
    when=TWO_LOOPS,
)
def reads_itself(m: Measurements[Params]) -> Judgement:
    return _broken(m, "query reads itself")


@part.claim(
    "N2",
    "With the usual causal (lower-triangular) mask the transformer does not run gradient descent: the output is at "
    "least 0.001 away.",
    source=_CHANGED + "; the source calls its mask causal",
    when=TWO_LOOPS,
)
def causal(m: Measurements[Params]) -> Judgement:
    return _broken(m, "causal mask")


@part.claim(
    "N3",
    "With P = I, under which α drifts, the transformer does not run gradient descent: the output is at least 0.001 "
    "away from it.",
    source=_CHANGED,
    when=TWO_LOOPS,
)
def identity_output(m: Measurements[Params]) -> Judgement:
    return _broken(m, "P = I")


@part.claim(
    "N4",
    "Without its final minus sign the hand-set transformer predicts the opposite of α: nearer to −α than to zero.",
    source="Control: signs",
)
def minus_sign(m: Measurements[Params]) -> Judgement:
    return m.final("unnegated", arm="broken", change="none").named("prediction/α").below(-0.5)


@part.claim(
    "N6",
    "With noisy targets the hand-set transformer does not end at θ*: the distance is at least 0.02 of the noise's "
    "deviation.",
    source="Control: realisability",
)
def not_the_truth(m: Measurements[Params]) -> Judgement:
    return m.final("from_truth", arm="noise").named("‖θ − θ*‖").at_least(0.02 * m.params.noise)


@part.claim(
    "N7",
    "The probe for gradient descent sees that a causal mask does not run it: at least 0.001 of a loop's movement is "
    "off the gradient.",
    source="Control of the probe",
    when=TWO_LOOPS,
)
def probe_sees(m: Measurements[Params]) -> Judgement:
    residuals = m.every("probe_residual", arm="broken", change="causal mask")
    return residuals.named("largest share of a loop's movement off the gradient").at_least(1e-3)
