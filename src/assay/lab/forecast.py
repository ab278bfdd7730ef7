"""What a run would do, before it does it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .planning import Plan


@dataclass(frozen=True)
class Forecast:
    """What a run would compute and what it would reuse, and why; nothing has been done yet."""

    plan: Plan
    reasons: Mapping[str, str]
    seconds: float | None

    @property
    def compute(self) -> int:
        return len(self.plan.to_compute)

    @property
    def reuse(self) -> int:
        return len(self.plan.to_reuse)

    def rows(self) -> list[dict[str, Any]]:
        """A row per arm: how many units are computed and reused, and the reason."""
        found = []
        for arm in dict.fromkeys(unit.arm for unit in self.plan.units):
            wanted = [unit for unit in self.plan.to_compute if unit.arm == arm]
            kept = [unit for unit in self.plan.to_reuse if unit.arm == arm]
            why = self.reasons.get(arm, "everything is stored")
            found.append({"arm": arm, "compute": len(wanted), "reuse": len(kept), "reason": why})
        skipped = self.plan.skipped.items()
        return found + [{"arm": arm, "compute": 0, "reuse": 0, "reason": f"left out: {why}"} for arm, why in skipped]

    def __repr__(self) -> str:
        lines = [f"  {r['arm']}: {r['compute']} to compute, {r['reuse']} stored; {r['reason']}" for r in self.rows()]
        return "\n".join([self.summary, *lines])

    @property
    def summary(self) -> str:
        """One sentence: how much there is to do, and about how long it takes."""
        about = f", about {duration(self.seconds)} of computing" if self.seconds is not None and self.compute else ""
        name = self.plan.study.name
        return f"{name}: {self.compute} units to compute{about}, {self.reuse} stored"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in self.rows()
        )
        head = "".join(f"<th>{name}</th>" for name in ("arm", "compute", "reuse", "reason"))
        return f"<table><caption>{html.escape(self.summary)}</caption><tr>{head}</tr>{rows}</table>"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
