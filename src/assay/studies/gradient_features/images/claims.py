"""Claims about real images, which no theorem is about: what carries over, and what does not."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, combine

from .arms import AT_START, TASKS, Params, part

SIZES = {"1,000 images, 256 neurons": lambda p: p.image_samples >= 1000 and p.image_neurons >= 64}


@part.claim(
    "X12",
    "On images, two halves of the data agree better on a neuron's first gradient with true labels than with shuffled "
    "ones.",
    source="beyond the source: the median cosine of a neuron's gradients; two classes, and odd against even",
)
def halves_agree(m: Measurements[Params]) -> Judgement:
    leads = [
        m.final("agreement", arm="image-gradients", task=task, labels="true")
        - m.final("agreement", arm="image-gradients", task=task, labels="shuffled")
        for task in TASKS
    ]
    return combine(min, leads, "least lead in agreement").above(0)


@part.claim(
    "N13",
    "On images, the median first gradient of shuffled labels is shorter than that of true ones: labels, not images, "
    "make its norm.",
    source="control: labels change hands, images stay",
)
def shuffled_is_shorter(m: Measurements[Params]) -> Judgement:
    ratios = [
        m.final("norm", arm="image-gradients", task=task, labels="shuffled")
        / m.final("norm", arm="image-gradients", task=task, labels="true")
        for task in TASKS
    ]
    return combine(max, ratios, "largest norm, shuffled / true").below(1)


@part.claims_over(
    {"X13": {"size": 16}, "X14": {"size": 64}, "X15": {"size": 256}},
    statement="On odd and even images a head on {size} gradient features is more accurate than one on {size} random "
    "ReLU features, penalties tuned.",
    source="beyond the source: the case of few features, on data without a theorem",
    when=SIZES,
)
def few_features(m: Measurements[Params], *, size: int) -> Judgement:
    where = {"arm": "image-heads", "task": "odd or even", "size": size}
    lead = m.final("test_accuracy", method="gradient", **where) - m.final("test_accuracy", method="relu", **where)
    return lead.named("gradient − random ReLU features").above(0)


@part.claim(
    "X16",
    "On odd and even images the 24 neurons nearest to directions that clustering finds after one step (the ticket) "
    "reach hinge loss 0.3 in fewer steps than 24 random neurons after that step.",
    source="beyond the source: tickets around directions that clustering finds; rates tuned per network",
    when=SIZES,
)
def ticket_beats_random(m: Measurements[Params]) -> Judgement:
    lead = m.final("steps", arm="image-tickets", who="random") - m.final("steps", arm="image-tickets", who="ticket")
    return lead.named("steps, random − ticket").above(0)


@part.claim(
    "X17",
    "On odd and even images the 24 neurons nearest to directions that clustering finds after one step (the ticket) "
    "reach hinge loss 0.3 in fewer steps than the same neurons at the start.",
    source="beyond the source: the best of three ways to scale the start, rates tuned, the first step counted",
    when=SIZES,
)
def ticket_beats_start(m: Measurements[Params]) -> Judgement:
    starts = [m.final("steps", arm="image-tickets", who=who) for who in AT_START]
    best = combine(min, starts, "best start")
    return (best - m.final("steps", arm="image-tickets", who="ticket")).named("steps, best start − ticket").above(0)
