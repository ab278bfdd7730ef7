"""Training on the two superclasses, in the theory's network on hierarchical patches."""

from __future__ import annotations

from pydantic import Field
from torch.nn.functional import cross_entropy

from assay import lab
from assay.training import Seeds

from ..hard_samples.theory import rule_report
from ..learners import error_report, looks, residual_for
from ..params import Patches, Testing
from ..theory import Detectors
from .learners import firing_counts, own_outputs
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
        "laptop": lab.PartPreset(settings={"bernoulli": {"coarse_steps": 200}, "jitter": {"coarse_steps": 200}}),
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
    record(step=0, **error_report(start, easy, hard, "coarse"))
    seen = looks(params.coarse_steps)
    training, residual = params.training(problem), residual_for("coarse", problem)
    for step, batch, update in training.run(start, seeds, params.coarse_steps, residual):
        if step not in seen:
            continue
        network = update.network
        record(step=step, **detectors.report(network), **error_report(network, easy, hard, "coarse"))
        right = batch.superclass.expand(len(seeds), -1)
        record(step=step, train_loss=cross_entropy(update.outputs.mT, right, reduction="none").mean(1))
        outputs = own_outputs(network, easy, "coarse")
        for y, sign in enumerate(SIGNS):
            record(step=step, at={"superclass": sign}, own_output=outputs[:, y])
    counts = [count.double() for count in detectors.counts()]
    record(fewest_detectors=counts[1].flatten(1).amin(1), **rule_report(network, hard, problem))
    counted = {"firing": firing_counts(network, problem, "coarse"), "initial": (counts[0], counts[1].mean(-1))}
    sizes = (problem.subclasses, problem.feature_patches, problem.patches)
    for kind, (common, subclass) in counted.items():
        for y, sign in enumerate(SIGNS):
            constant = log_law_constant(params.rate, *sizes, params.bias_rate, common[:, y], subclass[:, y])
            record(at={"superclass": sign, "counted": kind}, log_law_constant=constant)
