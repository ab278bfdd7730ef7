"""Claims about a sentence encoder with a contrastive regulariser on two dropout passes (C8)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

SOURCE = "Tables 7.2 and F.8, SimCSE on BERT; here all-MiniLM-L6-v2 and few labels, with the source's rate and λ"


def gain(m: Measurements[Params], data: str, over: str = "fine-tuning") -> Values:
    labels = m.params.text_labels[0]
    ours, other = (m.final("accuracy", arm="text", data=data, labels=labels, way=w) for w in ("regularised", over))
    return (ours - other).named(f"accuracy, {labels} labels, regularised − {over}")


@part.claims_over(
    {"C8m": {"data": "ag_news", "words": "AG News"}, "C8n": {"data": "sst2", "words": "SST-2"}},
    statement="On few labelled texts of {words} a sentence encoder fine-tuned with a contrastive regulariser is more "
    "accurate than without.",
    source=SOURCE,
)
def regulariser_helps(m: Measurements[Params], *, data: str) -> Judgement:
    return gain(m, data).above(0)


@part.claim(
    "C8o",
    "On few labelled texts of AG News a sentence encoder fine-tuned with a contrastive regulariser beats a linear "
    "head.",
    source=SOURCE,
)
def beats_head(m: Measurements[Params]) -> Judgement:
    return gain(m, "ag_news", "linear head").above(0)
