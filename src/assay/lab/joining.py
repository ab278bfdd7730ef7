"""A run of what is stored, wherever it was computed: pieces from several machines become one run, and nothing is
computed. Only source and parameters must be what they are now; each arm may have its own device and packages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .code_version import ArmCode
from .errors import UserError
from .store import Store

if TYPE_CHECKING:
    from .planning import Plan


@dataclass(frozen=True)
class Origin:
    """Where an arm's units were computed, as far as it is part of their addresses."""

    device: str
    code: ArmCode


def origins(codes: Mapping[str, ArmCode], store: Store) -> dict[str, Origin]:
    """For each arm with stored units of its present source, the device and the packages that most of them have."""
    counted: dict[str, Counter[tuple[str, tuple[tuple[str, str], ...]]]] = {}
    for ranges in store.ranges().values():
        for each in ranges:
            meta = store.meta(each.key) or {}
            code = codes.get(meta.get("arm", ""))
            then = meta.get("code") or {}
            if code is not None and then.get("files") == dict(code.files):
                packages = tuple(sorted(then.get("packages", {}).items()))
                counted.setdefault(meta["arm"], Counter())[meta["device"], packages] += len(meta["seeds"])
    chosen = {arm: count.most_common(1)[0][0] for arm, count in counted.items()}
    return {
        arm: Origin(device, ArmCode(codes[arm].files, dict(packages))) for arm, (device, packages) in chosen.items()
    }


def check_all_stored(plan: Plan, store: Store) -> None:
    """Refuse a plan that would have to compute something, a damaged unit anew among it: which arms are not whole, and
    how many of their units."""
    lacking = Counter(unit.arm for unit in plan.units if not store.whole(unit.key))
    if lacking:
        whole = Counter(unit.arm for unit in plan.units)
        arms = ", ".join(f"{arm} ({count} of {whole[arm]} units)" for arm, count in lacking.items())
        why = f"--stored computes nothing, and these arms of {plan.study.name} are not stored whole: {arms}"
        raise UserError(f"{why}; run them, or name the others with --arms")
