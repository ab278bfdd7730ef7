"""A study with one of everything that a page must show."""

import torch
from pydantic import Field

from assay import lab


class Params(lab.Params):
    level: float = Field(0.5, gt=0, lt=1, description="where <i>it</i> settles")
    size: int = Field(3, ge=1, description="how many")


study = lab.Study(
    "gallery",
    title="One of <b>everything</b>",
    question="Does a page show all that a study can hold?",
    source="nobody & sons",
    params=Params,
    presets={
        "smoke": lab.Preset(seeds=3, cost="1 s"),
        "laptop": lab.Preset(seeds=3, cost="1 s", size=4),
        "paper": lab.Preset(seeds=3, cost="1 s"),
    },
    settings={"small": {"size": 1}, "usual": {}},
)


@study.arm("drawn", over={"setting": ["small", "usual"], "k": [2, 1]})
def drawn(params, seeds, record, *, setting, k):
    """Noise around a level."""
    noise = seeds.uniform("noise", 4) - 0.5
    record(value=params.level + 0.01 * noise[:, 0], tiny=1e-9 * (1 + noise[:, 1]), centred=noise[:, 2])
    record.curve(range(3), missing=torch.full((3, len(noise)), float("nan")))
    record.note(learning_rate=0.1 * k)


@study.arm("extra", optional=True)
def extra(params, seeds, record):
    """Only when asked for."""
    record(value=1.0)


@study.arm("fast", needs=("gpu",))
def fast(params, seeds, record):
    """On a GPU."""
    record(value=1.0)
