"""What the input-replacement test found: how students follow their teachers on original and on injected inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, curves
from assay.probes.intervals import Interval, mean_interval

from ._arrays import of_tensors


@of_tensors
def area_under_curve(steps: Tensor, accuracy: Tensor) -> Tensor:
    """Mean height of accuracy (points, ...) over steps (points,), by the trapezoid rule: shape (...)."""
    return torch.trapezoid(accuracy, steps.to(accuracy), dim=0) / (steps[-1] - steps[0])


@dataclass(frozen=True)
class StudentCurves:
    """A student's agreement with its teacher on test inputs, (points, seeds), by the number of steps (points,)."""

    fraction: float
    steps: Tensor
    original: Tensor
    injected: Tensor

    @property
    def mixture(self) -> Tensor:
        return (1 - self.fraction) * self.original + self.fraction * self.injected


@dataclass(frozen=True, repr=False)
class ReplacementReport(Report):
    """``curves[0]`` learned from original inputs alone. ``label_shares`` (seeds, classes): how the teachers label the
    injected inputs; a class without a share means that the balance regulariser was too weak."""

    curves: tuple[StudentCurves, ...]
    teacher_accuracy: Tensor
    label_shares: Tensor

    def lag(self, curve: StudentCurves) -> Interval:
        """How far the injected inputs lie behind the original ones, in mean agreement over the steps, with its interval
        over the seeds."""
        behind = (area_under_curve(curve.steps, part) for part in (curve.original, curve.injected))
        return mean_interval((next(behind) - next(behind)).tolist())

    @property
    def advice(self) -> str:
        """``structure matters`` where the injected inputs of every mixture lag behind, ``it does not`` where none does,
        else ``undecided``."""
        signs = {self.lag(curve).sign for curve in self.curves if curve.fraction}
        return {1: "structure matters", -1: "it does not"}.get(signs.pop() if len(signs) == 1 else 0, "undecided")

    def headline(self) -> str:
        seeds = len(self.teacher_accuracy)
        return f"teachers reach {float(self.teacher_accuracy.mean()):.3f} over {seeds} seeds: {self.advice}"

    def table(self) -> list[dict[str, Any]]:
        """A row per mixture: mean agreement over the steps on either part, and the lag of the injected one."""
        rows = []
        for curve in self.curves:
            means = [float(area_under_curve(curve.steps, part).mean()) for part in (curve.original, curve.injected)]
            lag = self.lag(curve)
            rows.append(
                {
                    "fraction": curve.fraction,
                    "original": means[0],
                    "injected": means[1],
                    "lag": lag.estimate,
                    "low": lag.low,
                    "high": lag.high,
                }
            )
        return rows

    def figure(self) -> Any:
        """Agreement with the teacher over the steps, one panel for each mixture."""
        rows = [
            {"step": step, "agreement": value, "inputs": name, "injected share": f"{curve.fraction:.0%} injected"}
            for curve in self.curves
            for name, part in (("original", curve.original), ("injected", curve.injected))
            for step, value in zip(curve.steps.tolist(), part.mean(1).tolist(), strict=True)
        ]
        drawn = curves(rows, "step", "agreement", "inputs", agreement="agreement with the teacher")
        return drawn.properties(width=240, height=200).facet(
            {"field": "injected share", "type": "nominal", "title": None}
        )
