"""Training that diverged: seeds whose measurements stopped being numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import polars as pl

# What every trained network has. Other quantities may rightly be infinite or missing: a time that was never reached,
# a ratio to nothing.
_ALWAYS = re.compile(r"(^|_)(loss|losses|accuracy|error)(_|$)")


class Divergence(BaseModel):
    """Seeds of one unit that diverged, by the first metric that showed it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: str
    seeds: list[int]
    metric: str
    step: int | None = None

    @property
    def words(self) -> str:
        which = f"seed{'' if len(self.seeds) == 1 else 's'} {', '.join(map(str, self.seeds))}"
        since = "" if self.step is None else f" from step {self.step} on"
        return f"{self.unit} diverged in {which}: {self.metric} is not finite{since}"


def diverged(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The seeds that diverged, each with the metric that showed it first. A curve that was finite and at its end no
    longer is diverged; so did a seed whose last loss, accuracy or error is not finite."""
    import polars as pl

    if frame["value"].is_finite().all():
        return []
    labels = [name for name in frame.columns if name not in ("value", "step", "trials")]
    finite = pl.col("value").is_finite()
    series = frame.group_by(labels, maintain_order=True).agg(
        pl.len().alias("count"),
        finite.any().alias("known"),
        finite.last().alias("ended"),
        # The first step after the last finite value.
        pl.col("step").filter((~finite).reverse().cum_prod().reverse().cast(pl.Boolean)).first().alias("since"),
    )
    lost = series.filter(~pl.col("ended") & (pl.col("known") | pl.col("metric").str.contains(_ALWAYS.pattern)))
    first = lost.sort("since", nulls_last=True, maintain_order=True).unique("seed", keep="first", maintain_order=True)
    rows = first.sort("seed").select("seed", "metric", "since").rows()
    return [{"seed": seed, "metric": metric, "step": step} for seed, metric, step in rows]


def divergence(unit: str, seeds: Sequence[int], noted: Iterable[Mapping[str, Any]]) -> Divergence | None:
    """What is noted with a unit, for the seeds that a run takes from it."""
    found = [each for each in noted if each["seed"] in seeds]
    if not found:
        return None
    first = min(found, key=lambda each: (each["step"] is None, each["step"] or 0))
    return Divergence(unit=unit, seeds=[each["seed"] for each in found], metric=first["metric"], step=first["step"])
