"""The lab: everything a study's author and a study's reader need, and nothing about any one study."""

from .claims import Claim, Finding, Judgement, Region
from .errors import AmbiguousQuery, NotMeasured, UserError
from .measurements import Every, Measurements, Values
from .params import Params, Preset
from .recorder import Recorder
from .study import Arm, Study

__all__ = [
    "AmbiguousQuery",
    "Arm",
    "Claim",
    "Every",
    "Finding",
    "Judgement",
    "Measurements",
    "NotMeasured",
    "Params",
    "Preset",
    "Recorder",
    "Region",
    "Study",
    "UserError",
    "Values",
]
