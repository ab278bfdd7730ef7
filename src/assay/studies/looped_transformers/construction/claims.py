"""The claims that the construction is gradient descent (C1, C2), and that nothing of it can be left out (controls)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part

ROUNDING = 1e-12


@part.claim(
    "C1",
    "a masked linear-attention layer with Q = I, P = diag(I, 0) outputs (qᵀXᵀX + αyᵀX, 0) in the query row and zero "
    "elsewhere",
    source="Lemma 8.13; three shapes, zero and random start, relative to the largest entry",
)
def one_layer(m: Measurements[Params]) -> Judgement:
    return m.every("layer_deviation", arm="identity").named("deviation").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C2a",
    "after every loop the query row is −αθ⁽ᵗ⁾ of gradient descent, also with steps that vary",
    source="Theorem 8.14; 50 loops",
)
def every_loop(m: Measurements[Params]) -> Judgement:
    return m.every("loop_deviation", arm="identity").named("|θ − θ of descent|").at_most(0, tolerance=ROUNDING)


@part.claim("C2b", "the examples and α never change, bit for bit", source="Lemma 8.13")
def nothing_else_moves(m: Measurements[Params]) -> Judgement:
    return m.every("rest_moved", arm="identity").named("change of the other entries").at_most(0)


@part.claim(
    "C2c",
    "with noisy targets the loop ends at the least-squares solution",
    source="Definition 8.10 without the realisability of Lemma 8.11; 1,000 loops",
)
def least_squares(m: Measurements[Params]) -> Judgement:
    return m.every("from_least_squares", arm="noise").named("|θ − least squares|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C2d",
    "the probe reads the step sizes of the first five loops off the query states",
    source="Theorem 8.14 read backwards",
)
def probe_reads_steps(m: Measurements[Params]) -> Judgement:
    return m.every("probe_step_deviation", arm="identity").named("|η fitted/η − 1|").at_most(0, tolerance=1e-9)


_CHANGED = "Control: one part of the construction changed, 12 loops"


def _broken(m: Measurements[Params], change: str) -> Judgement:
    return m.every("deviation", arm="broken", change=change).named("‖θ − θ of descent‖").at_least(1e-3)


@part.claim("N1", "a query row that also reads itself does not run gradient descent", source=_CHANGED)
def reads_itself(m: Measurements[Params]) -> Judgement:
    return _broken(m, "query reads itself")


@part.claim("N2", "nor does the usual lower-triangular mask, which the source's 'causal' suggests", source=_CHANGED)
def causal(m: Measurements[Params]) -> Judgement:
    return _broken(m, "causal mask")


@part.claim("N3", "nor does P = I, under which α drifts", source=_CHANGED)
def identity_output(m: Measurements[Params]) -> Judgement:
    return _broken(m, "P = I")


@part.claim("N4", "without the final minus sign the prediction tends to −α", source="Control: signs")
def minus_sign(m: Measurements[Params]) -> Judgement:
    return m.final("unnegated", arm="broken", change="none").named("prediction/α").between(-1.05, -0.95)


@part.claim("N6", "with noisy targets the limit is not θ*", source="Control: realisability")
def not_the_truth(m: Measurements[Params]) -> Judgement:
    return m.final("from_truth", arm="noise").named("‖θ − θ*‖").at_least(0.01)


@part.claim("N7", "the probe sees that a causal mask is not gradient descent", source="Control of the probe")
def probe_sees(m: Measurements[Params]) -> Judgement:
    residuals = m.every("probe_residual", arm="broken", change="causal mask")
    return residuals.named("largest share of a loop's movement off the gradient").at_least(1e-3)
