"""Networks trained on half of the inputs, as in the source's figures: do their neurons become single cosines?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..full_data.arms import TRAINING, train_network
from ..params import NetworkParams


class Params(NetworkParams):
    networks: tuple[Literal["k3", "k4", "k5"], ...] = Field(("k3", "k4"), min_length=1, description="k of split data")


LISTED = {"rate": 5e-3, "penalty": 0.005}  # in the source's appendix C.10.1

part = lab.Part(
    "half_data",
    params=Params,
    settings={
        "k3": {"terms": 3, "modulus": 23, "penalty": 0.02, "steps": 2500},
        "k4": {"terms": 4, "modulus": 11, "width": 320, "penalty": 0.05, "steps": 3000},
        "k5": {"terms": 5, "modulus": 7, "width": 512, "penalty": 0.05, "steps": 3000},
        "k3-decay": {"terms": 3, "modulus": 23, "regulariser": "decay", "penalty": 0.005, "steps": 2000},
    },
    presets={
        "smoke": lab.PartPreset(
            settings={
                "k3": {"modulus": 7, "steps": 60},
                "k4": {"modulus": 5, "width": 40, "steps": 60},
                "k3-decay": {"modulus": 7, "steps": 60},
            }
        ),
        "laptop": lab.PartPreset(fewer={"network": 4, "weight-decay": 3}),
        "paper": lab.PartPreset(
            networks=("k3", "k4", "k5"),
            settings={
                "k3": {"modulus": 97, "steps": 12_000} | LISTED,
                "k4": {"modulus": 47, "width": None, "steps": 30_000} | LISTED,
                "k5": {"modulus": 23, "width": None, "steps": 30_000} | LISTED,
                "k3-decay": {"modulus": 97, "steps": 10_000, "rate": 5e-3},
            },
        ),
    },
)


@part.arm("network", over={"setting": lambda p: p.networks}, **TRAINING)
def network(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Networks trained on half of the inputs with the penalty λ‖θ‖."""
    train_network(params, seeds, record)


@part.arm("weight-decay", over={"setting": ["k3-decay"]}, **TRAINING)
def weight_decay(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """The same with decoupled weight decay in place of the penalty."""
    train_network(params, seeds, record)
