"""Points that wander to a goal: quick, with one of every kind of parameter, and with ways to be slow and to fail."""

import os
import signal
import time
from typing import Literal

import torch
from pydantic import Field

from assay import lab


class Params(lab.Params):
    level: float = Field(0.5, gt=0, lt=1, description="where the points settle")
    points: int = Field(6, ge=2, le=40, description="how many there are")
    units: int = Field(3, ge=1, description="pieces of work")
    pace: Literal["calm", "quick"] = Field("calm", description="how they move")
    ends: Literal["well", "raises", "dies"] = Field("well", description="how a unit ends")
    delay: float = Field(0.0, ge=0, le=30, description="seconds that a unit takes")
    widths: tuple[int, ...] = Field((1, 2), min_length=1, description="some numbers")
    kinds: tuple[Literal["a", "b"], ...] = Field(("a",), description="some words")
    limit: float | None = Field(None, gt=0, description="a limit, or none")
    loud: bool = Field(False, description="whether they print")


study = lab.Study(
    "swarm",
    title="A swarm that finds its goal",
    question="Do points that wander arrive?",
    source="nobody & sons",
    params=Params,
    presets={
        "smoke": lab.Preset(seeds=3, cost="1 s"),
        "laptop": lab.Preset(seeds=4, cost="2 s", points=12),
        "paper": lab.Preset(seeds=4, cost="3 s", points=40),
    },
    settings={"usual": {}, "crowd": {"points": 20}},
)


@study.arm(
    "walk",
    over={"k": lambda params: range(params.units)},
    uses=("level", "pace", "ends", "delay", "widths", "kinds", "limit", "loud"),
)
def walk(params, seeds, record, *, k):
    """Points that settle at a level."""
    if params.loud:
        print("a line that is no part of what the server reads")
    for step in range(5):
        time.sleep(params.delay / 5)
        record.progress(step + 1, 5)
        noise = seeds.uniform(f"noise {step}", 4)[:, 0] - 0.5
        record(step=step, height=params.level * (step + 1) / 5 + 0.01 * noise)
    if params.ends == "raises":
        raise RuntimeError("the points lost their way")
    if params.ends == "dies":
        os.kill(os.getpid(), signal.SIGKILL)


@study.arm("neurons", uses=("points",))
def neurons(params, seeds, record):
    """Points in a plane that turn to a goal."""
    start = seeds.normal("start", params.points, 2)
    start = 0.4 * start / start.norm(dim=-1, keepdim=True)
    goal = torch.tensor([1.0, 0.0])
    shares = torch.linspace(0, 1, 5)
    points = torch.stack([start + share * (goal - start) for share in shares], 1)
    record.curve(range(5), nearness=points[..., 0].mean(-1).mT)
    record.neurons(range(5), points, landmarks={"goal": goal.expand(len(start), 2)}, cosine=points[..., 0])


@study.arm("extra", optional=True, over={"setting": ["usual", "crowd"]}, uses=("points",))
def extra(params, seeds, record, *, setting):
    """Only when asked for."""
    record(value=float(params.points))
