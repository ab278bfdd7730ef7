"""Runs, verdicts, comparisons and maps as JSON for the pages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from assay.lab import Comparison, Finding, Forecast, PhaseMap, Run, Snapshots
from assay.report import overview, rows
from assay.report.numbers import date, duration, value


def forecast(found: Forecast) -> dict[str, Any]:
    plan = found.plan
    stated = plan.study.preset(plan.request.preset).cost
    return {
        "compute": found.compute,
        "reuse": found.reuse,
        "seconds": found.seconds if found.seconds is not None and math.isfinite(found.seconds) else None,
        "stated": stated,
        # Times are taken from stored units of the same arms, whatever their parameters were.
        "alike": not any("new parameter value" in reason for reason in found.reasons.values()),
        "arms": found.rows(),
        "data": plan.data,
    }


def brief(run: Run) -> dict[str, Any]:
    """A run as a list shows it; nothing is judged for it."""
    manifest = run.manifest
    keys = ("id", "name", "study", "preset", "set", "arms", "status", "kind", "whole", "first_seed")
    return {
        **{key: getattr(manifest, key) for key in keys},
        "asked": manifest.request_words,
        "seeds": manifest.seeds_used,
        "verdicts": run.known_counts,
        "started": manifest.started,
        "date": date(manifest.started),
        "took": duration(manifest.seconds) if manifest.seconds is not None else "",
        "units": len(manifest.units),
        "data": manifest.data,
    }


def whole(run: Run) -> dict[str, Any]:
    """A run with all its verdicts."""
    manifest, study = run.manifest, run.study
    found = run.claims
    return {
        **brief(run),
        "title": study.title,
        "question": study.question,
        "verdicts": found.counts,
        "claims": [claim(each) for each in found],
        "parameters": [vars(each) for each in _parameters(run)],
        "facts": overview.run_facts(study, manifest),
        "skipped": manifest.skipped,
        "failures": [{"unit": each.unit, "error": each.error} for each in manifest.failures],
        "notices": _notices(run),
        "snapshots": run.has_snapshots,
    }


def _parameters(run: Run) -> list[overview.Parameter]:
    manifest = run.manifest
    return overview.parameters(run.study, manifest.preset, manifest.params, manifest.set)


def _notices(run: Run) -> list[str]:
    told = []
    if missing := run.missing:
        told.append(f"{missing} of {len(run.manifest.units)} units of this run are not stored.")
    if run.parameters_changed:
        told.append("The study's parameters have changed since this run.")
    elif run.code_changed:
        told.append("The study's code has changed since this run.")
    return told


def claim(finding: Finding) -> dict[str, Any]:
    """A claim with its verdict as the report shows it. What is called html is made by the report from escaped text."""
    row, judged = rows.row(finding), finding.judgement
    return {
        "id": finding.claim.id,
        "headline": finding.claim.headline,
        "control": finding.claim.control,
        "verdict": row.verdict,
        "statement": finding.claim.statement,
        "statement_html": str(row.statement),
        "criterion_html": str(row.criterion),
        "drawing_html": str(row.drawing),
        "words": row.words,
        "source": finding.claim.source,
        "seeds": judged.seeds,
        "reason": judged.reason,
        "error": judged.error,
    }


def comparison(found: Comparison) -> dict[str, Any]:
    """Two runs side by side: every parameter of either, marked where it differs, and every claim."""
    sides = [{each.name: each for each in _parameters(run)} for run in (found.a, found.b)]
    parameters = []
    for name in dict.fromkeys([*sides[0], *sides[1], *found.parameters]):
        known = [side.get(name) for side in sides]
        pair = [value(each) for each in found.parameters.get(name, ())] or [
            each.value if each else "" for each in known
        ]
        described = next((each.description for each in known if each), "")
        row = {"name": name, "a": pair[0], "b": pair[1], "differs": name in found.parameters}
        parameters.append({**row, "description": described})
    return {
        "a": brief(found.a),
        "b": brief(found.b),
        "request": _pairs({**found.request, **found.machines}),
        "parameters": parameters,
        "code": found.code,
        "claims": [
            {
                "id": change.id,
                "turned": change.turned,
                "moved": change.moved,
                "a": claim(change.before) if change.before else None,
                "b": claim(change.after) if change.after else None,
            }
            for change in found.claims
        ],
    }


def _pairs(found: dict[str, Any]) -> list[dict[str, str]]:
    return [{"name": name, "a": value(a), "b": value(b)} for name, (a, b) in found.items()]


def phase_map(number: int, found: PhaseMap) -> dict[str, Any]:
    document = found.to_dict()
    return {"number": number, "headline": found.headline(), "counts": found.counts, **document}


def outline_of(snapshots: Snapshots) -> dict[str, Any]:
    return {
        "arm": snapshots.arm,
        "point": dict(snapshots.point),
        "label": " · ".join([snapshots.arm, *(f"{name} {item}" for name, item in snapshots.point.items())]),
        "seeds": list(snapshots.seeds),
        "neurons": int(snapshots.points.shape[2]),
        "looks": len(snapshots.steps),
    }


def neurons(snapshots: Snapshots, seed: int) -> dict[str, Any]:
    """One seed's neurons: per step the two coordinates of all, and every probe's values."""
    row = list(snapshots.seeds).index(seed)
    return {
        **outline_of(snapshots),
        "seed": seed,
        "steps": list(snapshots.steps),
        "x": [_short(step[:, 0]) for step in snapshots.points[row]],
        "y": [_short(step[:, 1]) for step in snapshots.points[row]],
        "landmarks": [{"name": name, "at": _short(at[row])} for name, at in snapshots.landmarks.items()],
        "probes": {name: [_short(step) for step in values[row]] for name, values in snapshots.probes.items()},
    }


def _short(values: Iterable[float]) -> list[float | None]:
    """Numbers to four digits, which is more than a screen shows; none where one is not finite."""
    return [float(f"{number:.4g}") if math.isfinite(number) else None for number in values]
