"""Which networks solve in-context parity on long prompts? Every task and pattern enumerated, in a rotated basis."""

from __future__ import annotations

import torch

from assay import lab
from assay.training import Seeds

from ..params import Parity
from . import theory
from .problem import SparseParity

SIZES = [
    {"bits": 2, "important_bits": 1},
    {"bits": 3, "important_bits": 1},
    {"bits": 3, "important_bits": 2},
    {"bits": 4, "important_bits": 2},
]
RARE = 0.01  # probability of a rare task, below the theorem's limit at d = 4

part = lab.Part("construction", params=Parity)


@part.arm("construction", over=SIZES, dtype="float64", tolerance=1e-6)
def construction(params: Parity, seeds: Seeds, record: lab.Recorder, *, bits: int, important_bits: int) -> None:
    """The source's large and small network and a four-head one, on inputs x = Gφ with each seed's own basis G."""
    problem = SparseParity(bits, important_bits, params.gamma)
    basis = torch.linalg.qr(seeds.normal("basis", problem.dim, problem.dim))[0]
    small = theory.constructed(problem, important_bits)
    networks = {
        "large": theory.constructed(problem, bits),
        "small": small,
        "small, rescaled": theory.constructed(problem, important_bits, important_bits + 1),
        "four heads": theory.four_heads(problem),
    }
    for name, heads in networks.items():
        for which in ("important", "rare", "alike"):
            tasks = problem.tasks(which)
            phi, labels = problem.queries(tasks)
            reads = problem.reads(tasks).unsqueeze(1).expand_as(phi)
            found = torch.stack([labels * heads.in_basis(G)(reads @ G.T, phi @ G.T) for G in basis])
            hinge = (1 - found).clamp(min=0) @ problem.probabilities
            record(
                at={"network": name, "tasks": which},
                margin=found.amin((1, 2)),
                largest_margin=found.amax((1, 2)),
                loss=hinge.mean(1),
            )
    for name, used in (("large", bits), ("small", important_bits)):
        tasks = problem.tasks("all")
        found = theory.margins(networks[name], problem, tasks)
        record(at={"network": name}, formula_error=float((found - theory.apart(problem, used)[:, None]).abs().max()))
    for name, heads in networks.items():
        rank = int(torch.linalg.matrix_rank(heads.diagonals))
        record(at={"network": name}, heads=len(heads.a), squared_norm=heads.squared_norm(params.gamma), rank=rank)


@part.arm("counterexamples", dtype="float64", tolerance=1e-6)
def counterexamples(params: Parity, seeds: Seeds, record: lab.Recorder) -> None:
    """Networks that refute the theorem of optimality, at the smallest sizes; closed forms and a linear programme."""
    square, pair = SparseParity(2, 1, params.gamma, RARE), SparseParity(1, 1, params.gamma)
    printed, centred = theory.constructed(square, 2), theory.centred_heads(square)
    diagonal = theory.constructed(pair, 1)
    spread = theory.spread_over_rows(diagonal)
    for name, problem, heads in (
        ("printed, d = 4", square, printed),
        ("centred, d = 4", square, centred),
        ("printed, d = 2", pair, diagonal),
        ("not diagonal, d = 2", pair, spread),
    ):
        margin = float(theory.margins(heads, problem, problem.tasks("all")).min())
        record(at={"network": name}, heads=len(heads.a), margin=margin, squared_norm=heads.squared_norm(params.gamma))
    loss, scales = theory.sign_class_optimum(square)
    record(sign_class_loss=loss / RARE, largest_rare_rate=theory.largest_rare_rate(square))
    record.note(sign_class_scales=[round(float(scale), 6) for scale in scales])
