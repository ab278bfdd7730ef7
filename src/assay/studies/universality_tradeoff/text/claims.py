"""Claims about a sentence encoder with a contrastive regulariser on two dropout passes (C8)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

SOURCE = "Tables 7.2 and F.8, SimCSE on BERT; here all-MiniLM-L6-v2 and few labels, with the source's rate and λ"


def gain(m: Measurements[Params], data: str, over: str = "fine-tuning") -> Values:
    labels = m.params.text_labels[0]
    ours, other = (m.final("accuracy", arm="text", data=data, labels=labels, way=w) for w in ("regularised", over))
    return (ours - other).named(f"accuracy, {labels} labels, regularised − {over}")


AG_NEWS = {"AG News": lambda p: "ag_news" in p.text_sets}
SST2 = {"SST-2": lambda p: "sst2" in p.text_sets}


@part.claim(
    "C8m",
    "On few labelled texts of AG News a sentence encoder fine-tuned with a contrastive regulariser is more accurate "
    "than without.",
    source=SOURCE,
    when=AG_NEWS,
)
def helps_on_news(m: Measurements[Params]) -> Judgement:
    return gain(m, "ag_news").above(0)


@part.claim(
    "C8n",
    "On few labelled texts of SST-2 a sentence encoder fine-tuned with a contrastive regulariser is more accurate than "
    "without.",
    source=SOURCE,
    when=SST2,
)
def helps_on_reviews(m: Measurements[Params]) -> Judgement:
    return gain(m, "sst2").above(0)


@part.claim(
    "C8o",
    "On few labelled texts of AG News a sentence encoder fine-tuned with a contrastive regulariser beats a linear "
    "head.",
    source=SOURCE,
    when=AG_NEWS,
)
def beats_head(m: Measurements[Params]) -> Judgement:
    return gain(m, "ag_news", "linear head").above(0)
