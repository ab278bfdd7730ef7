"""Claims about lottery tickets: they exist after the first step, and learning without that step is slower."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, combine

from .arms import AT_START, Params, part

SIZES = {
    "200 dimensions, noise 3, 512 neurons": lambda p: (
        (p.ticket_dim, p.ticket_noise, p.ticket_neurons) == (200, 3.0, 128)
    )
}


@part.claim(
    "C6a",
    "On the XOR mixture the 24 neurons nearest to features after one step reach hinge loss 0.05 in fewer steps than 24 "
    "random ones.",
    source="Lottery tickets: neurons in the support of the constructed head; rates tuned per network",
    when=SIZES,
    headline=True,
)
def ticket_beats_random(m: Measurements[Params]) -> Judgement:
    lead = m.final("steps", arm="tickets", who="random") - m.final("steps", arm="tickets", who="ticket")
    return lead.named("steps, random − ticket").above(0)


@part.claim(
    "C6b",
    "On the XOR mixture the ticket of 24 neurons reaches hinge loss 0.05 in at most twice the steps of all 512.",
    source="Lottery tickets: similar loss in similar time",
    when=SIZES,
)
def ticket_like_full(m: Measurements[Params]) -> Judgement:
    ratio = m.final("steps", arm="tickets", who="ticket") / m.final("steps", arm="tickets", who="full")
    return ratio.named("steps, ticket / full").at_most(2)


@part.claims_over(
    {
        "C6c": {"who": "init", "words": "their own norms"},
        "C6d": {"who": "init, ticket's norms", "words": "the ticket's norms"},
        "C6e": {"who": "init, ticket's norms, outputs", "words": "the ticket's norms and outputs ±0.1"},
    },
    statement="On the XOR mixture the ticket reaches hinge loss 0.05 in fewer steps than the same neurons at the start "
    "with {words}.",
    source="Lottery tickets: they need not exist at the start; the first step is counted, rates tuned per network",
    when=SIZES,
)
def ticket_beats_start(m: Measurements[Params], *, who: str) -> Judgement:
    lead = m.final("steps", arm="tickets", who=who) - m.final("steps", arm="tickets", who="ticket")
    return lead.named(f"steps, {who} − ticket").above(0)


@part.claim(
    "C6f",
    "On the XOR mixture the ticket reaches hinge loss 0.05 with fewer samples than a random subset and than the same "
    "neurons at the start.",
    source="Lottery tickets; the 1,000 samples of the first step are counted",
    when=SIZES,
)
def fewer_samples(m: Measurements[Params]) -> Judgement:
    others = [m.final("samples", arm="tickets", who=who) for who in ("random", *AT_START)]
    best = combine(min, others, "best of the others")
    return (best - m.final("samples", arm="tickets", who="ticket")).named("samples, best other − ticket").above(0)


@part.claim(
    "C6g",
    "On the XOR mixture the ticket of 24 neurons ends within half a point of the test error of all 512 neurons.",
    source="Lottery tickets: similar loss",
    when=SIZES,
)
def same_error(m: Measurements[Params]) -> Judgement:
    gap = m.final("error", arm="tickets", who="ticket") - m.final("error", arm="tickets", who="full")
    return gap.named("error, ticket − full").at_most(0.005)


@part.claim(
    "X8",
    "On the XOR mixture a ticket around directions found by clustering the stepped weights needs fewer steps than a "
    "random subset.",
    source="beyond the source: the features need not be known to cut a ticket",
    when=SIZES,
)
def discovered_ticket(m: Measurements[Params]) -> Judgement:
    lead = m.final("steps", arm="tickets", who="random") - m.final("steps", arm="tickets", who="discovered")
    return lead.named("steps, random − discovered").above(0)


@part.claim(
    "X6",
    "On the XOR mixture the same neurons at the start end within half a point of the ticket's error: the ticket buys "
    "speed only.",
    source="beyond the source: the worst of three ways to scale the start",
    when={**SIZES, "60 steps or more": lambda p: p.race_steps >= 60},
)
def speed_only(m: Measurements[Params]) -> Judgement:
    worst = combine(max, [m.final("error", arm="tickets", who=who) for who in AT_START], "worst start")
    return (worst - m.final("error", arm="tickets", who="ticket")).named("error, start − ticket").at_most(0.005)
