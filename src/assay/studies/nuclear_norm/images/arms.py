"""The stand-in benchmark: every method with the same number of trials, each domain left out in turn."""

from __future__ import annotations

from typing import Any, cast

import torch
from pydantic import Field, PositiveFloat, PositiveInt

from assay import lab
from assay.evaluation import Algorithm, LeaveOneDomainOut
from assay.evaluation.domain_checks import Course
from assay.evaluation.domain_data import Samples
from assay.evaluation.domain_training import train
from assay.methods import NuclearNorm
from assay.training import Seeds

from .learners import Classifier, Kept, Methods, Network, Pretraining, pretrained
from .problem import Cue, Domain, FramedImages, source_images

METHODS = (
    "ERM",
    "ERM-decay",
    "ERM-rank",
    "ERM-NU",
    "Mixup",
    "Mixup-NU",
    "SWAD",
    "SWAD-NU",
    "CORAL",
    "IRM",
)
SHOWN = ("patch", "texture")


class Params(lab.Params):
    images: str = Field("digits", description="image set of the stand-in domains")
    image_side: PositiveInt | None = Field(None, description="side to which images are averaged (none: their own)")
    image_limit: int = Field(15_000, ge=200, description="images at most, shared by four domains and the pretraining")
    cue_pixels: int = Field(60, ge=1, description="weak pixels of a texture cue")
    network: Network = Field("perceptron", description="network: perceptron, cnn or resnet")
    width: int = Field(32, ge=1, description="features of a perceptron, or channels of the first stage")
    pretraining_steps: int = Field(200, ge=1, description="Adam steps on images without cues")
    pretraining_rate: PositiveFloat = Field(1e-3, description="their rate")
    domain_steps: int = Field(120, ge=1, description="Adam steps on the training domains")
    domain_rate: PositiveFloat = Field(1e-3, description="rate of the first trial; others are drawn within a factor 3")
    domain_batch: int = Field(32, ge=2, description="images per training domain in a step")
    domain_looks: int = Field(12, ge=2, description="looks at held-out images during a training")
    domain_trials: int = Field(3, ge=1, description="trainings compared for each method, domain and seed")

    def problem(self, cue: str) -> FramedImages:
        return FramedImages(cast(Cue, cue), self.cue_pixels)

    def course(self, device: str) -> dict[str, Any]:
        every = max(1, self.domain_steps // self.domain_looks)
        return {"steps": self.domain_steps, "batch": self.domain_batch, "check_every": every, "device": device}

    def methods(self, classes: int) -> Methods:
        return Methods(self.domain_rate, self.domain_steps // 50, classes)

    def start(self, cue: str, seed: int, device: str) -> tuple[dict[str, Domain], Classifier, int]:
        """The domains of a seed, the pretrained network and the number of classes."""
        source = source_images(self.images, self.image_side, self.image_limit)
        batch = 3 * self.domain_batch
        recipe = Pretraining(self.network, self.width, self.pretraining_steps, self.pretraining_rate, batch)
        network = pretrained(recipe, self.images, self.image_side, self.image_limit, seed, device)
        return self.problem(cue).domains(source, seed), network, source.classes


part = lab.Part(
    "images",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            image_limit=250, pretraining_steps=5, domain_steps=4, domain_looks=2, domain_trials=1, width=8
        ),
        "laptop": lab.PartPreset(fewer={"benchmark": 6, "zero-strength": 3}),
        "paper": lab.PartPreset(
            images="mnist",
            image_side=14,
            network="cnn",
            width=16,
            pretraining_steps=500,
            domain_steps=300,
            fewer={"benchmark": 5, "no-cue": 5},
        ),
    },
)
OPTIONS: dict[str, Any] = {"needs": lambda p: (f"data:{p.images}",), "chunk": 1, "tolerance": 0.2}


def _judge(params: Params, seeds: Seeds, record: lab.Recorder, cue: str, method: str) -> None:
    """Leave out every domain in turn; record the chosen training of every target and its looks."""
    protocol = LeaveOneDomainOut(**params.course(seeds.device), trials=params.domain_trials)
    found = []
    for seed in seeds:
        domains, network, classes = params.start(cue, seed, seeds.device)
        pairs = {name: (domain.images, domain.labels) for name, domain in domains.items()}
        algorithm = params.methods(classes)(method)
        report = protocol.run(pairs, Kept(network), [algorithm], seeds=[seed], progress=False)
        found.append({outcome.target: outcome for outcome in report.outcomes})
        record.progress(len(found), len(seeds))
    for target in found[0]:
        outcomes = [each[target] for each in found]
        tested = [len(domains[target].labels) for _ in outcomes]
        record(at={"target": target}, trials=tested, accuracy=[each.accuracy for each in outcomes])
        record(
            at={"target": target},
            validation=[each.validation for each in outcomes],
            chosen_step=[each.step for each in outcomes],
            diverged=[each.failed for each in outcomes],
        )
        for name, key, first in _settings(algorithm):
            chosen: dict[str, Any] = {f"chosen_{name}": [each.settings.get(key, first) for each in outcomes]}
            record(at={"target": target}, **chosen)
        looks = zip(*(each.checks for each in outcomes), strict=False)
        for at in looks:
            record(
                at={"target": target},
                step=at[0].step,
                look_validation=[look.validation for look in at],
                look_accuracy=[look.accuracies[target] for look in at],
            )


def _settings(algorithm: Algorithm) -> list[tuple[str, str, float]]:
    """The searched settings: a name for the record, the name of the search and the first trial's value."""
    found = []
    for key in algorithm.search:
        part_of, _, inner = key.partition(".")
        held = getattr(algorithm, part_of)
        found.append((inner or key, key, float(getattr(held, inner) if inner else held)))
    return found


@part.arm("benchmark", over={"cue": list(SHOWN), "method": list(METHODS)}, **OPTIONS)
def benchmark(params: Params, seeds: Seeds, record: lab.Recorder, *, cue: str, method: str) -> None:
    """A method on all targets, chosen by held-out images of the training domains."""
    _judge(params, seeds, record, cue, method)


@part.arm("no-cue", **OPTIONS)
def no_cue(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """ERM on domains whose frames are empty: what the images alone allow."""
    _judge(params, seeds, record, "none", "ERM")


@part.arm("zero-strength", over={"cue": list(SHOWN)}, **OPTIONS)
def zero_strength(params: Params, seeds: Seeds, record: lab.Recorder, *, cue: str) -> None:
    """Plain ERM and ERM with a penalty of strength 0, step by step the same?"""
    same, moved = [], []
    for seed in seeds:
        domains, network, classes = params.start(cue, seed, seeds.device)
        samples = [Samples(name, (domain.images, domain.labels)) for name, domain in domains.items()]
        course = Course(**params.course(seeds.device))
        ends = []
        for penalty in (None, NuclearNorm(0.0, warmup=0), NuclearNorm(0.1, warmup=0)):
            made = Kept(network)
            algorithm = Algorithm("ERM", learning_rate=params.domain_rate, penalty=penalty)
            train(algorithm, made, classes, samples[:-1], samples[-1:], course, seed)
            ends.append(torch.cat([weight.detach().flatten() for weight in made.last.parameters()]))
        same.append(bool(torch.equal(ends[0], ends[1])))
        moved.append(float((ends[0] - ends[2]).abs().max()))
    record(identical=torch.tensor(same), moved_by_penalty=moved)
