"""One neuron at a time, optimised without knowledge of Fourier: does it end at a cosine of value γ*?"""

from __future__ import annotations

import torch
from pydantic import Field, field_validator

from assay import lab
from assay.methods.modular_margin import margin_formula, neuron_expected_margin
from assay.training import Seeds

from ..problem import check_pairs, pair
from ..theory import neuron_report
from .theory import ascend

EVEN = ("2-2", "2-3", "2-4")  # where the formula does not apply


class Params(lab.Params):
    ascents: tuple[str, ...] = Field(
        ("7-2", "11-2", "7-3", "11-3", "7-4", "11-4", "5-5"),
        min_length=1,
        description="pairs p-k at which single neurons are optimised",
    )
    starts: int = Field(20, ge=1, description="random starts per seed of that optimisation")

    @field_validator("ascents")
    @classmethod
    def _ascents(cls, ascents: tuple[str, ...]) -> tuple[str, ...]:
        return check_pairs(ascents)


part = lab.Part("single_neuron", params=Params, presets={"smoke": lab.PartPreset(ascents=("7-2", "5-3"), starts=4)})


@part.arm("single-neuron", dtype="float64", tolerance=1e-8)
def single_neuron(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """An optimiser that knows nothing of Fourier: one vector of a neuron at a time, from random starts."""
    for case in (*params.ascents, *EVEN):
        p, k = pair(case)
        U = seeds.normal(f"ascent {case}", k, p, params.starts, dtype=torch.float64)
        W = seeds.normal(f"ascent {case} outputs", params.starts, p, dtype=torch.float64)
        # Neurons do not interact, so the starts of all seeds stand side by side.
        columns, rows = ascend(U.permute(1, 2, 0, 3).flatten(2), W.flatten(0, 1), 120)
        U = torch.unflatten(columns, 2, (len(seeds), -1)).permute(2, 0, 1, 3)
        W = torch.unflatten(rows, 0, (len(seeds), -1))
        ratio = neuron_expected_margin(U, W) / margin_formula(p, k)
        at = {"p": p, "k": k}
        record(at=at, ratio_low=ratio.amin(1), ratio_high=ratio.amax(1))
        if p > 2:
            report = neuron_report(U, W)
            record(
                at=at,
                power=report.power.amin(1),
                phase_residual=report.phase_residual.amax(1),
                amplitude_spread=report.amplitude_spread.amax(1),
                shared=report.shared.all(1),
            )
