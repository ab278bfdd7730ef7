"""Fourier circuits: which features networks learn for a_1 + ... + a_k mod p, and why they are cosines.

The theory by enumeration (``identities``, ``constructions``, ``single_neuron``), one-hidden-layer networks trained on
all inputs and on half of them (``full_data``, ``half_data``), and transformers (``grokking``, ``heads``).
"""

from __future__ import annotations

from assay import lab

from .constructions import arms as constructions
from .full_data import arms as full_data
from .grokking import arms as grokking
from .half_data import arms as half_data
from .heads import arms as heads
from .identities import arms as identities
from .single_neuron import arms as single_neuron


class Params(constructions.Params, single_neuron.Params, full_data.Params, half_data.Params, grokking.Params):
    """Every named setting fixes ``learner``, ``modulus``, ``terms``, ``steps`` and, of networks, ``penalty``; change
    these as ``k3.modulus=31``."""


study = lab.Study(
    "fourier-circuits",
    title="Fourier circuits in modular addition",
    question="When a network adds k numbers mod p, what do its neurons and heads compute, and what makes it periodic?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 4 and appendix C",
    params=Params,
    parts=(
        identities.part,
        constructions.part,
        single_neuron.part,
        full_data.part,
        half_data.part,
        grokking.part,
        heads.part,
    ),
    presets={
        "smoke": lab.Preset(seeds=3, cost="10 s", batch=64, looks=2, points=256),
        "laptop": lab.Preset(seeds=8, cost="6 min"),
        "paper": lab.Preset(seeds=3, cost="25 min on a GPU", batch=1024),
    },
)
