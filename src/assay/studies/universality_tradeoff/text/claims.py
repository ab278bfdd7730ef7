"""Claims about a sentence encoder, fine-tuned or under an adapter, with a contrastive regulariser (C8)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

ADAPTERS = (
    "Tables 7.2, F.6 and F.7, frozen CLIP and MoCo v3 with ten views: −0.1 to 1.6 points with 1 % of the labels; here "
    "all-MiniLM-L6-v2 with ten dropout views, sixteen settings of each way tried on tuning texts; paired over seeds"
)
SOURCE = "Tables 7.2 and F.8, SimCSE on BERT; here all-MiniLM-L6-v2 and few labels, with the source's rate and λ"


def gain(m: Measurements[Params], data: str, over: str = "fine-tuning") -> Values:
    return _lead(m, "text", data, "regularised", over)


def adapter_gain(m: Measurements[Params], data: str, over: str = "adapter") -> Values:
    return _lead(m, "text-adapter", data, "regularised adapter", over)


def _lead(m: Measurements[Params], arm: str, data: str, way: str, over: str) -> Values:
    """Of one way over another in accuracy, at the fewest labels."""
    labels = m.params.text_labels[0]
    ours, other = (m.final("accuracy", arm=arm, data=data, labels=labels, way=each) for each in (way, over))
    return (ours - other).named(f"accuracy, {labels} labels, {way} − {over}")


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


@part.claim(
    "C8r",
    "On few labelled texts of AG News an adapter on frozen sentence embeddings is more accurate when it is trained "
    "with a contrastive regulariser than without.",
    source=ADAPTERS,
    when=AG_NEWS,
)
def adapter_helps_on_news(m: Measurements[Params]) -> Judgement:
    return adapter_gain(m, "ag_news").above(0)


@part.claim(
    "C8s",
    "On few labelled texts of SST-2 an adapter on frozen sentence embeddings is more accurate when it is trained with "
    "a contrastive regulariser than without.",
    source=ADAPTERS,
    when=SST2,
)
def adapter_helps_on_reviews(m: Measurements[Params]) -> Judgement:
    return adapter_gain(m, "sst2").above(0)


@part.claim(
    "C8t",
    "On few labelled texts of AG News an adapter on frozen sentence embeddings, trained with a contrastive "
    "regulariser, beats a linear head on them.",
    source=ADAPTERS,
    when=AG_NEWS,
)
def adapter_beats_head(m: Measurements[Params]) -> Judgement:
    return adapter_gain(m, "ag_news", "linear head").above(0)
