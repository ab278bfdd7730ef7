"""The lab: everything a study's author and a study's reader need, and nothing about any one study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .api import (
        claims,
        compare,
        confirm,
        find_run,
        find_study,
        has_study,
        maps,
        mark_interrupted,
        open_run,
        outlines,
        plan,
        remove_run,
        rename_run,
        report,
        run,
        runs,
        sweep,
        try_arm,
    )
    from .checking import Problem, check
    from .comparison import Comparison
    from .confirmation import Confirmation
    from .errors import AmbiguousQuery, BrokenQuery, NotMeasured, UserError
    from .events import Advanced, Event, Finished, Measured, Said, Started, UnitDone
    from .every import Every, pool
    from .findings import Claim, Finding
    from .forecast import Forecast
    from .manifest import Manifest
    from .measurements import Measurements
    from .params import Params, PartPreset, Preset
    from .part import Part
    from .phase_map import Cell, PhaseMap
    from .recorder import Recorder
    from .regions import Region
    from .registry import Arm
    from .snapshots import Snapshots
    from .stored import Findings, Run
    from .study import Study
    from .values import Exact, Values, combine, farthest, farthest_from, pick, rise
    from .verdicts import Judgement

__all__ = [
    "Advanced",
    "AmbiguousQuery",
    "Arm",
    "BrokenQuery",
    "Cell",
    "Claim",
    "Comparison",
    "Confirmation",
    "Event",
    "Every",
    "Exact",
    "Finding",
    "Findings",
    "Finished",
    "Forecast",
    "Judgement",
    "Manifest",
    "Measured",
    "Measurements",
    "NotMeasured",
    "Params",
    "Part",
    "PartPreset",
    "PhaseMap",
    "Preset",
    "Problem",
    "Recorder",
    "Region",
    "Run",
    "Said",
    "Snapshots",
    "Started",
    "Study",
    "UnitDone",
    "UserError",
    "Values",
    "check",
    "claims",
    "combine",
    "compare",
    "confirm",
    "farthest",
    "farthest_from",
    "find_run",
    "find_study",
    "has_study",
    "maps",
    "mark_interrupted",
    "open_run",
    "outlines",
    "pick",
    "plan",
    "pool",
    "remove_run",
    "rename_run",
    "report",
    "rise",
    "run",
    "runs",
    "sweep",
    "try_arm",
]

# Modules are imported when a name of theirs is first asked for: the command line answers small questions without the
# libraries that large ones need.
offer(__name__)
