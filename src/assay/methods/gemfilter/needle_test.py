"""Needle in a haystack over lengths and depths: which method answers, and which layer finds the needle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay._reports import Report, curves
from assay.evaluation.answering import needle_table
from assay.evaluation.needle_kinds import NEEDLES, Needle
from assay.evaluation.needles import NeedlePrompt, needle_grid
from assay.methods._checks import check_fields, limits, one_of
from assay.methods.gemfilter.comparing import Comparison, Tell, _silent, question_tokens, warnings_told
from assay.methods.gemfilter.layers import LayerScan, layer_scan
from assay.networks.pretrained import Loaded


@dataclass(frozen=True, repr=False)
class NeedleReport(Report):
    """A row per prompt and method, and per length what every layer would have kept, with the budget it was given."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    scans: dict[int, LayerScan] = field(default_factory=dict)
    budgets: dict[int, int] = field(default_factory=dict)
    chat: list[bool] = field(default_factory=list)

    def headline(self) -> str:
        lengths = ", ".join(f"{length:,}" for length in self.budgets)
        return f"needles in prompts of {lengths} tokens: {len(self.rows)} answers"

    def table(self) -> list[dict[str, Any]]:
        """A row per method and length: right answers, prompts, and the mean share of the needle that was kept."""
        made = []
        for method, length in dict.fromkeys((row["method"], row["length"]) for row in self.rows):
            right, prompts = self.share(method, length)
            kept = {"recall": self.recall(method, length), "keep": self.budgets[length]}
            made.append({"method": method, "length": length, "right": right, "prompts": prompts, **kept})
        return made

    def figure(self) -> Any:
        """The share of right answers over the length, a line for each method."""
        rows = [{**row, "share": row["right"] / row["prompts"]} for row in self.table()]
        return curves(rows, "length", "share", "method", share="right answers", length="tokens")

    @property
    def templated(self) -> bool:
        """Whether the prompts were in the model's chat template."""
        return any(self.chat)

    def share(self, method: str, length: int) -> tuple[int, int]:
        """Right answers of a method at a length, and prompts."""
        right = [row["right"] for row in self.rows if (row["method"], row["length"]) == (method, length)]
        return sum(right), len(right)

    def recall(self, method: str, length: int) -> float | None:
        """The mean share of the needle's tokens that a method's first pass kept, None for a method without one."""
        rows = [row["recall"] for row in self.rows if (row["method"], row["length"]) == (method, length)]
        known = [share for share in rows if share is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class NeedleTest:
    """Prompts of every length at evenly spaced depths, for the methods of a comparison. With ``scan`` every layer is
    scanned under every rule as well, one forward pass a prompt."""

    comparison: Comparison
    lengths: Sequence[int]
    depths: int = field(default=5, metadata=limits(least=1))
    prompts: int = field(default=1, metadata=limits(least=1))
    needle: str | Needle = "ingredient"
    haystack: str | None = None
    seed: int = 0
    chat: bool = True
    scan: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.needle, Needle):
            one_of("needle", self.needle, NEEDLES, " or your own as 'sentence|question|answer'")
        if self.haystack is not None and not self.haystack.strip():
            raise ValueError("the haystack is empty: leave it out for Python's manual")
        if not (self.comparison.methods or self.scan):
            raise ValueError("a needle test needs at least one method, or a scan of the layers")

    def run(self, loaded: Loaded, tell: Tell = _silent) -> NeedleReport:
        """Lengths one after the other; ``tell`` hears every answer."""
        report = NeedleReport()
        places = [0.5] if self.depths == 1 else [i / (self.depths - 1) for i in range(self.depths)]
        options: dict[str, Any] = {"seed": self.seed, "haystack": self.haystack, "chat": self.chat}
        for size in self.lengths:
            keep = report.budgets[size] = self.comparison.budget(size)
            # Prompts first: a length that leaves no room is refused before a layer is measured at another one.
            grid = list(needle_grid(loaded.tokenizer, [size], places, self.prompts, needle=self.needle, **options))
            known = self.comparison.check_context(loaded, size, tell)
            chosen = self.comparison.filter(loaded, size, tell)
            asked = max(question_tokens(loaded, one.input_ids, one.needle.question, chat=one.chat) for one in grid)
            chosen = self.comparison.asking(chosen, loaded, size, asked, tell)
            report.chat.append(grid[0].chat)
            if self.scan:
                told = {"base": chosen, "progress": lambda text: tell(f"scan: {text}")}
                scan = layer_scan(loaded.model, grid, keep=keep, **told)  # type: ignore[arg-type]
                report.scans[size] = scan
                tell(f"{size} tokens: {scan.sentence()}")
            with warnings_told(tell, known):
                report.rows.extend(self._rows(loaded, grid, chosen, tell))
        return report

    def _rows(self, loaded: Loaded, grid: Sequence[NeedlePrompt], chosen: Any, tell: Tell) -> list[dict[str, Any]]:
        rows = []
        for row in needle_table(loaded, grid, self.comparison.made(chosen)):
            used = {"layer": chosen.layer, "rule": chosen.rule} if row["method"] in ("gemfilter", "one-run") else {}
            rows.append({**row, "keep": chosen.keep, **used})
            mark = "right" if row["right"] else "wrong"
            tell(f"{row['method']} at {row['length']} tokens, depth {row['depth']:.2f}: {mark}")
        return rows
