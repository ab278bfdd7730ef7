"""Training on the two superclasses, in the theory's network on hierarchical patches."""

from __future__ import annotations

import math

from pydantic import Field
from torch.nn.functional import cross_entropy

from assay import lab
from assay.training import Seeds

from ..hard_samples.theory import rule_report
from ..learners import Initialisation, error_report, looks, residual_for
from ..params import NEARLY_CLEAN, Patches, Testing
from ..theory import Detectors
from . import learners
from .learners import decomposed_outputs, firing_counts, own_outputs
from .theory import log_law_constant

SIGNS = "+−"  # the superclasses


class Params(Testing, Patches):
    coarse_steps: int = Field(400, ge=20, description="steps with coarse labels")


part = lab.Part(
    "coarse",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            coarse_steps=40, settings={"bernoulli": {"coarse_steps": 20}, "jitter": {"coarse_steps": 20}}
        ),
        "laptop": lab.PartPreset(
            fewer={"first-phase": 8}, settings={"bernoulli": {"coarse_steps": 200}, "jitter": {"coarse_steps": 200}}
        ),
        "paper": lab.PartPreset(coarse_steps=1000),
    },
)


@part.arm(
    "coarse",
    over={"setting": ["exact", "bernoulli", "jitter"]},
    tolerance=0.02,
    working_set=lambda p: p.working_set("coarse"),
)
def coarse(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Training on the two superclasses: errors, growth of common and subclass detectors, the logarithmic law."""
    problem, init = params.problem(), params.initialisation()
    start = init.draw(seeds, 2, problem).network
    detectors = Detectors.at(start, problem, "coarse", init)
    easy, hard = problem.test_sets(seeds, params.test_per_subclass)
    record(step=0, trials=len(easy), **error_report(start, easy, hard, "coarse"))
    seen = looks(params.coarse_steps)
    training, residual = params.training(problem), residual_for("coarse", problem)
    for step, batch, update in training.run(start, seeds, params.coarse_steps, residual):
        if step not in seen:
            continue
        network = update.network
        record(step=step, **detectors.report(network), balance=detectors.balance(network))
        record(step=step, trials=len(easy), **error_report(network, easy, hard, "coarse"))
        right = batch.superclass.expand(len(seeds), -1)
        record(step=step, train_loss=cross_entropy(update.outputs.mT, right, reduction="none").mean(1))
        outputs = own_outputs(network, easy, "coarse")
        for y, sign in enumerate(SIGNS):
            record(step=step, at={"superclass": sign}, own_output=outputs[:, y])
    counts = [count.double() for count in detectors.counts()]
    falls = detectors.bias_falls(network)
    record(fewest_detectors=counts[1].flatten(1).amin(1), bias_fall_common=falls[0], bias_fall_subclass=falls[1])
    record(trials=len(hard), **rule_report(network, hard, problem))
    made = decomposed_outputs(network, detectors, easy)
    for y, sign in enumerate(SIGNS):
        record(at={"superclass": sign}, decomposed_output=made[:, y])
    counted = {"firing": firing_counts(network, problem, "coarse"), "initial": (counts[0], counts[1].mean(-1))}
    sizes = (problem.subclasses, problem.feature_patches, problem.patches)
    for kind, (common, subclass) in counted.items():
        for y, sign in enumerate(SIGNS):
            constant = log_law_constant(params.rate, *sizes, params.bias_rate, common[:, y], subclass[:, y])
            record(at={"superclass": sign, "counted": kind}, log_law_constant=constant)


@part.arm(
    "first-phase",
    uses=tuple(Patches.model_fields),
    dtype="float64",
    tolerance=0.02,
    working_set=lambda p: 2 * p.working_set("coarse"),
)
def first_phase(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The first phase of coarse training in slow motion, from the source's own initial scale: when does it end?"""
    problem = params.problem(noise=NEARLY_CLEAN, counts="exact", jitter=0.0)
    scale = 1 / (problem.dim**3 * problem.feature_patches * math.log(problem.dim))
    init = Initialisation(params.neurons, params.threshold, scale)
    record(**learners.first_phase(problem, init, params.bias_rate, seeds))
