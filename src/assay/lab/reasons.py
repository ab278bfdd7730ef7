"""Why units are computed although an arm has stored ones: what changed since, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .chunks import chunks
from .code_version import ArmCode
from .params import ParamsView
from .planning import Plan, inputs_of
from .store import Store
from .units import Unit, seed_words

NOTHING_YET = "nothing is stored yet"
_CHANGED = " changed since"


def reasons(plan: Plan, store: Store) -> dict[str, str]:
    """For each arm with units to compute, the reason; ``nothing is stored yet`` where the arm is new to the store."""
    waiting: dict[str, list[Unit]] = {}
    for unit in plan.to_compute:
        waiting.setdefault(unit.arm, []).append(unit)
    if not waiting:
        return {}
    metas = [meta for ranges in store.ranges().values() for found in ranges if (meta := store.meta(found.key))]
    return {arm: _reason(plan, units, [m for m in metas if m.get("arm") == arm]) for arm, units in waiting.items()}


def expected_seconds(plan: Plan, store: Store) -> float | None:
    """What the units to compute may take, one after another, going by stored units of the same arms: seconds per seed
    of the same point where there are some, of the arm elsewhere, and of those by the ones whose parameters differ
    least. None when an arm has never been timed."""
    spent: dict[str, list[Mapping[str, Any]]] = {}
    for ranges in store.ranges().values():
        for found in ranges:
            meta = store.meta(found.key)
            if meta and meta.get("device") == plan.request.device:
                spent.setdefault(meta["arm"], []).append(meta)
    total = 0.0
    for unit in plan.to_compute:
        timed = spent.get(unit.arm)
        if not timed:
            return None
        same = [meta for meta in timed if meta["point"] == dict(unit.point)] or timed
        used = _used(plan, unit)
        apart = [sum(meta["params"].get(name) != value for name, value in used.items()) for meta in same]
        nearest = [meta for meta, count in zip(same, apart, strict=True) if count == min(apart)]
        rates = [float(meta.get("seconds", 0.0)) / len(meta["seeds"]) for meta in nearest]
        total += len(unit.seeds) * sum(rates) / len(rates)
    return total


def _reason(plan: Plan, units: list[Unit], stored: list[dict[str, Any]]) -> str:
    if not stored:
        return NOTHING_YET
    found: dict[str, None] = {}
    unfinished, added = 0, []
    for unit in units:
        same = [meta for meta in stored if meta["point"] == dict(unit.point) and meta["device"] == unit.device]
        words = list(_differences(plan, unit, min(same or stored, key=lambda meta: _distance(plan, unit, meta))))
        if same and not words:
            added += list(unit.seeds)
        elif not same:
            # Another point has other parameters by its nature: only a change of code would concern all.
            words = [each for each in words if each.endswith(_CHANGED)]
            unfinished += not words
        found.update(dict.fromkeys(words))
    reasons = _together(list(found))
    if added:
        reasons.append(" and ".join(seed_words(part) for part in chunks(sorted(set(added)), 1 << 30)) + " are new")
    if unfinished:
        reasons.append(f"{unfinished} of its units are not stored yet")
    return ", ".join(reasons)


def _together(reasons: list[str]) -> list[str]:
    """One phrase for all files that changed, the study's own first, at most three by name."""
    changed = [each.removesuffix(_CHANGED) for each in reasons if each.endswith(_CHANGED)]
    rest = [each for each in reasons if not each.endswith(_CHANGED)]
    if not changed:
        return rest
    changed.sort(key=lambda name: name.startswith("`assay/"))
    named = ", ".join(changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return [f"{named}{more}{_CHANGED}", *rest]


def _distance(plan: Plan, unit: Unit, meta: Mapping[str, Any]) -> tuple[int, int, int]:
    """How far a stored unit is from a wanted one: other parameters count most, then inputs and code."""
    code = plan.codes[unit.arm]
    return (
        len(_changed(_used(plan, unit), _used_then(plan, unit, meta))),
        len(_changed(_inputs(plan, unit), meta.get("inputs", {}))),
        len(_changed(code.files, (meta.get("code") or {}).get("files", {}))),
    )


def _differences(plan: Plan, unit: Unit, meta: Mapping[str, Any]) -> Iterable[str]:
    code: ArmCode = plan.codes[unit.arm]
    then = meta.get("code") or {}
    now, before = _used(plan, unit), _used_then(plan, unit, meta)
    for name in _changed(now, before):
        yield f"new parameter value {name}={now.get(name)} (stored: {before.get(name)})"
    for name in _changed(_inputs(plan, unit), meta.get("inputs", {})):
        yield f"`{name}`{_CHANGED}"
    for name in _changed(code.files, then.get("files", {})):
        yield f"`{name}`{_CHANGED}"
    for name in _changed(code.packages, then.get("packages", {})):
        yield f"{name} {code.packages.get(name, 'absent')} (stored: {then.get('packages', {}).get(name, 'absent')})"
    if unit.dtype != meta["dtype"]:
        yield f"dtype {unit.dtype} (stored: {meta['dtype']})"


def _used(plan: Plan, unit: Unit) -> dict[str, Any]:
    return ParamsView(plan.study.model(**unit.params), plan.study.arms[unit.arm].read).used()


def _used_then(plan: Plan, unit: Unit, meta: Mapping[str, Any]) -> dict[str, Any]:
    names = _used(plan, unit)
    return {name: value for name, value in meta["params"].items() if name in names}


def _inputs(plan: Plan, unit: Unit) -> dict[str, str]:
    return inputs_of(plan.study, plan.study.arms[unit.arm], plan.study.model(**unit.params))


def _changed(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted({*now, *then}) if now.get(name) != then.get(name)]
