"""Looped transformers: a hand-set linear transformer runs gradient descent on the examples in its prompt.

The construction is gradient descent (``construction``); its error falls as that of descent does (``convergence``), at a
rate that the prompt's condition number sets (``conditions``) and other steps improve (``steps``); one example answers
the task (``shortcut``); and does training find the construction (``trained``)?
"""

from __future__ import annotations

from pydantic import model_validator

from assay import lab

from .conditions import arms as conditions
from .construction import arms as construction
from .convergence import arms as convergence
from .shortcut import arms as shortcut
from .steps import arms as steps
from .trained import arms as trained


class Params(construction.Params, convergence.Params, conditions.Params, trained.Params):
    @model_validator(mode="after")
    def _more_examples_than_dimensions(self) -> Params:
        fewest = min(*self.examples, self.compared_examples // 2)  # trained weights are also tested on half of them
        if fewest <= self.dim:
            raise ValueError(
                f"{fewest} examples in {self.dim} dimensions: every n (and compared_examples/2) must exceed d"
            )
        return self


study = lab.Study(
    "looped-transformers",
    title="Looped transformers run gradient descent in context",
    question="Does a transformer need exponentially many examples to run many steps of gradient descent in its prompt?",
    source="Zhenmei Shi, Understanding Training and Adaptation in Feature Learning: From Two-layer Networks to "
    "Foundation Models (dissertation, University of Wisconsin–Madison, 2024), chapter 8",
    params=Params,
    parts=(construction.part, convergence.part, conditions.part, steps.part, shortcut.part, trained.part),
    presets={
        "smoke": lab.Preset(seeds=3, cost="5 s"),
        "laptop": lab.Preset(seeds=24, cost="1 min"),
        "paper": lab.Preset(seeds=100, cost="5 min"),
    },
)
