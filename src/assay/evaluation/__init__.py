"""Harnesses that several parts use: needle prompts, LongBench, profiles, pictures of what was kept, domains left out.

No module here knows a method: a harness takes methods as arguments, and asks of them what ``contract`` says. Methods
may use what is here, as the choice of GemFilter's layer uses needle prompts. Names are imported when asked for.
"""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .answering import Answer, answer, chat_ids, needle_table
    from .contract import Method, TwoPass
    from .domain_generalisation import LeaveOneDomainOut
    from .domain_report import DomainReport
    from .domain_training import Algorithm
    from .highlight import highlighted
    from .longbench_runner import TaskScore, evaluate_longbench
    from .measure import Timed, timed
    from .needle_kinds import Needle
    from .needles import NeedlePrompt, needle_grid, needle_prompt, rouge1
    from .profiling import Profile, profile

__all__ = [
    "Algorithm",
    "Answer",
    "DomainReport",
    "LeaveOneDomainOut",
    "Method",
    "Needle",
    "NeedlePrompt",
    "Profile",
    "TaskScore",
    "Timed",
    "TwoPass",
    "answer",
    "chat_ids",
    "evaluate_longbench",
    "highlighted",
    "needle_grid",
    "needle_prompt",
    "needle_table",
    "profile",
    "rouge1",
    "timed",
]

offer(__name__)
