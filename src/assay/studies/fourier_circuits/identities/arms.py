"""The source's closed forms on random networks and numbers: do they agree with enumeration and with each other?"""

from __future__ import annotations

import torch

from assay import lab
from assay.methods.modular_margin import expected_margin, max_margin, neuron_norms
from assay.training import Seeds

from .theory import brute_force_expected_margin, cosine_sum, polarisation, sum_to_product

NETWORKS = ((5, 2), (5, 3), (7, 3), (5, 4), (3, 5))  # (p, k)
MODULI = (3, 7, 9, 23, 97)  # of the sum of cosines, which no seed has a part in

part = lab.Part("identities", params=lab.Params)


@part.arm("identities", dtype="float64", tolerance=1e-8)
def identities(params: lab.Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Closed forms on random networks and numbers, against enumeration and against each other."""
    for p, k in NETWORKS:
        # Not centred: the closed form needs no vector of mean zero.
        U = 0.3 + seeds.normal(f"random inputs {p}-{k}", k, p, 6, dtype=torch.float64)
        W = 0.3 + seeds.normal(f"random outputs {p}-{k}", 6, p, dtype=torch.float64)
        closed, counted = expected_margin(U, W), brute_force_expected_margin(U.cpu(), W.cpu())
        bound = max_margin(p, k) * neuron_norms(U, W).pow(k + 1).sum(-1)
        record(at={"p": p, "k": k}, transform_deviation=(closed.cpu() - counted).abs() / bound.cpu())
    for k in range(2, 8):
        d = seeds.uniform(f"polarisation {k}", 20, k).cpu() + 0.5
        exact = 2.0**k * float(torch.arange(1, k + 1).prod()) * d.prod(-1)
        angles, output = 6 * seeds.uniform(f"angles {k}", 20, k).cpu(), 6 * seeds.uniform(f"output {k}", 20).cpu()
        expanded = sum_to_product(angles, output) - torch.cos(angles.sum(-1) - output)
        record(
            at={"k": k},
            polarisation_deviation=(polarisation(d) / exact - 1).abs().amax(1),
            expansion_deviation=expanded.abs().amax(1),
        )
    for p in MODULI:
        sums = cosine_sum(p)
        record(
            at={"p": p},
            sum_at_answer=float(sums[0] - (p - 1) / 2),
            sum_elsewhere_low=float(sums[1:].min()),
            sum_elsewhere_high=float(sums[1:].max()),
        )
