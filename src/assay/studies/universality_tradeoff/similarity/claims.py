"""Claims about the similarity of linear encoders (C7)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, combine

from ..theory import decreasing
from .arms import LARGEST, Params, part


@part.claim(
    "C7a",
    "Linear CKA on target data between encoders of mixtures of linear tasks is that of a closed form, within 0.02.",
    source="Derived for Section 7.3.2: (s + (r − s)/(T₁T₂))/√(…); the specification's 0.02 for 4,000 samples",
    when={"at least 4,000 samples": lambda p: p.cka_samples >= 4000},
)
def formula(m: Measurements[Params]) -> Judgement:
    gap = m.every("cka", arm="linear-cka") - m.every("predicted", arm="linear-cka")
    return gap.named("CKA − formula").between(-0.02, 0.02)


@part.claim(
    "C7b",
    "For linear tasks the CKA measured on target data between the target's own encoder and that of a mixture falls "
    "with every task that is added to the mixture.",
    source="Figure 7.5, right: rows decrease; mixtures of one to four tasks on the sampled target inputs",
)
def rows_fall(m: Measurements[Params]) -> Judgement:
    columns = [f"{t} tasks" for t in range(1, LARGEST + 1)]
    row = [m.final("cka", arm="linear-cka", row="1 tasks", column=column) for column in columns]
    return combine(decreasing, row, "smallest fall of CKA along the first row").above(0)


@part.claim(
    "C7c",
    "On target data the optimal encoders of two other linear tasks, each turned by a random rotation of its own, have "
    "CKA 1 but for rounding: both see shared features only.",
    source="Derived: why 'independent' encoders need private features of the target to differ; double precision",
)
def foreign_pair(m: Measurements[Params]) -> Judgement:
    found = m.every("cka", arm="linear-cka", row="another task", column="a third task")
    return found.named("CKA of two other tasks").between(1, 1, tolerance=1e-9)


@part.claim(
    "C7d",
    "Linear CKA by products of features and by Gram matrices of samples is the same number.",
    source="definition of linear CKA; rounding of double precision",
)
def forms(m: Measurements[Params]) -> Judgement:
    return m.every("form_difference", arm="linear-cka").named("|features − Gram|").at_most(1e-10)
