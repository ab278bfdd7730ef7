"""GemFilter's baselines by name, with the budget of the filter that they are compared with."""

from __future__ import annotations

from collections.abc import Callable

from assay.methods.gemfilter.baselines import H2O, Compression, FullAttention, OneRun, SnapKV
from assay.methods.gemfilter.filter import GemFilter

BASELINES = ("full", "snapkv", "h2o", "one-run")


def baseline(name: str, keep: int, chosen: GemFilter | None = None) -> Compression:
    """A baseline by name, with the filter's budget."""
    made: dict[str, Callable[[], Compression]] = {
        "full": FullAttention,
        "snapkv": lambda: SnapKV(keep, window=min(32, max(1, keep // 2))),
        "h2o": lambda: H2O(keep, window=min(32, max(1, keep // 2))),
    }
    if name == "one-run":
        if chosen is None:
            raise ValueError("one-run needs the filter that it is the one-run of")
        return OneRun(chosen)
    if name not in made:
        raise ValueError(f"the methods to compare with are {', '.join(BASELINES)}, not {name!r}")
    return made[name]()
