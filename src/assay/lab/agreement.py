"""Whether a seed's numbers are the same alone and in the company of other seeds, up to rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch

from .registry import Arm

# A recorded difference of two numbers of size m is wrong by the roundings that went into both. A sum of n products has
# n roundings of half an epsilon each; they have no common sign, so about √n of them add up. 64 epsilons are thus the
# difference of two sums of 4096 products, alone and in company. (The package's exact arms need 2 of them at every point
# of their smoke grids, whatever the kernels.) In float32 they are 8e-6 of the arm's magnitude: an arm whose metrics are
# smaller than that says so by a smaller magnitude, or coupling between its seeds would pass for rounding.
ROUNDING = 64


@dataclass(frozen=True)
class Disagreement:
    """A metric that company changed by more than rounding explains. ``difference`` is infinite where rows are missing,
    or where only one of the two numbers is finite."""

    metric: str
    difference: float
    allowed: float


def disagreements(alone: pl.DataFrame, company: pl.DataFrame, arm: Arm) -> list[Disagreement]:
    """Compare the rows of the seeds in ``alone`` with the rows of the same seeds in ``company``.

    Both are tidy tables of one unit of ``arm``; the seeds that only ``company`` has are left aside. A number that is
    not finite agrees with itself only. Of the metrics that the arm read off a clock only the rows must be the same.
    """
    company = company.filter(pl.col("seed").is_in(alone["seed"].unique().implode()))
    rounding = ROUNDING * torch.finfo(getattr(torch, arm.dtype)).eps * arm.magnitude
    found = []
    for metric in sorted({*alone["metric"], *company["metric"]}):
        ours, theirs = _ordered(alone, metric), _ordered(company, metric)
        values = ours["value"].to_numpy()
        allowed = arm.tolerance * float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) + rounding
        same_rows = ours.drop("value").equals(theirs.drop("value"), null_equal=True)
        if same_rows and metric in arm.timed:
            continue
        difference = _largest_difference(values, theirs["value"].to_numpy()) if same_rows else math.inf
        if difference > allowed:
            found.append(Disagreement(metric, difference, allowed))
    return found


def _ordered(frame: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The metric's rows, in an order that does not depend on the company."""
    labels = sorted(column for column in frame.columns if column != "value")
    rows = frame.filter(metric=metric).select(*labels, "value")
    return rows.sort(labels, nulls_last=True, maintain_order=True)


def _largest_difference(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    finite = np.isfinite(ours) & np.isfinite(theirs)
    if not (same | finite).all():
        return math.inf
    return float(np.abs(ours[finite] - theirs[finite]).max(initial=0.0))
