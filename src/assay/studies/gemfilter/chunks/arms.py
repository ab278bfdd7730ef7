"""Long prompts read in chunks by a real model: within its context and beyond it, and where that must lose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..choice.learners import TINY, loaded_model
from ..learners import Rule, report
from ..params import DEPTHS
from .learners import (
    KINDS,
    Reading,
    answer_rows,
    choice_rows,
    control_rows,
    far_rows,
    list_rows,
    recall_rows,
    word_rows,
)
from .problem import FAR, HAYSTACKS

_LEAST = 512


class Params(lab.Params):
    chunk_model: str = Field("smollm2", description="the model that reads in chunks; tiny is a random one, for trying")
    chunk_layer: int = Field(20, ge=0, description="its filter layer, chosen on chunks of other texts")
    chunk_rule: Rule = Field("window", description="its rule, chosen with the layer")
    chunk_kernel: int = Field(9, ge=1, description="its width of pooling, chosen with the layer")
    whole_layer: int = Field(20, ge=0, description="the filter layer of whole prompts, chosen on other texts")
    whole_rule: Rule = Field("window", description="their rule, chosen with the layer")
    whole_kernel: int = Field(17, ge=1, description="their width of pooling, chosen with the layer")
    chunk: int = Field(1024, ge=2, description="tokens of a chunk, as the method's auto takes them")
    chunk_sizes: tuple[PositiveInt, ...] = Field(
        (256, 512, 1024, 2048),
        min_length=1,
        description="sizes of a chunk that are compared, the chosen one among them",
    )
    chunk_lengths: tuple[int, ...] = Field(
        (2048,), min_length=1, description="n of prompts within the model's context; k = n/8, 1024 at most"
    )
    chunk_beyond: tuple[int, ...] = Field(
        (16_384,), min_length=1, description="n of prompts beyond the model's context; k = 1024"
    )
    chunk_depths: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(
        DEPTHS, min_length=1, description="depths of the facts, one a seed in turn"
    )
    chunk_haystacks: tuple[str, ...] = Field(
        tuple(HAYSTACKS),
        min_length=1,
        description="texts, one a seed in turn: manual, library, or a folder of your own",
    )
    chunk_tokens: int = Field(16, ge=1, description="tokens of an answer")
    chunk_prompts: int = Field(18, ge=4, description="tuning prompts per seed: half choose the layer, half judge it")

    @model_validator(mode="after")
    def _chunks_in_a_prompt(self) -> Params:
        if min(*self.chunk_lengths, *self.chunk_beyond) < _LEAST:
            raise ValueError(f"a prompt that is read in chunks needs at least {_LEAST} tokens")
        if self.chunk not in self.chunk_sizes:
            raise ValueError(f"the chunk of {self.chunk} tokens is not among chunk_sizes")
        return self

    def model_needs(self) -> tuple[str, ...]:
        """What must be there for the model that reads."""
        return ("extra:llm",) if self.chunk_model == TINY else ("extra:llm", f"model:{self.chunk_model}")

    def chunk_needs(self) -> tuple[str, ...]:
        """What must be there for an arm that reads the haystacks in chunks."""
        return (*self.model_needs(), *(f"text:{name}" for name in self.own_texts()))

    def own_texts(self) -> list[str]:
        """Folders of the user's among the haystacks, from where the command is given."""
        own = [name for name in self.chunk_haystacks if name not in HAYSTACKS]
        return [str(Path(name).expanduser().absolute()) for name in own]

    def reading(self) -> Reading:
        return Reading(
            self.chunk_layer,
            self.chunk_rule,
            self.chunk,
            self.chunk_sizes,
            self.chunk_depths,
            self.chunk_haystacks,
            self.chunk_tokens,
            self.whole_layer,
            self.whole_rule,
            self.chunk_kernel,
            self.whole_kernel,
        )


ARMS = (
    "chunks",
    "chunks-beyond",
    "chunk-answers",
    "chunk-words",
    "chunks-far",
    "chunk-lists",
    "chunk-controls",
    "chunk-choice",
)

part = lab.Part(
    "chunks",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            arms=ARMS,
            chunk_model=TINY,
            chunk_layer=1,
            whole_layer=1,
            chunk=128,
            chunk_sizes=(128, 256),
            chunk_lengths=(768,),
            chunk_beyond=(1024,),
            chunk_depths=(0.25, 0.5),
            chunk_haystacks=("manual",),
            chunk_tokens=2,
            chunk_prompts=4,
        ),
        "laptop": lab.PartPreset(fewer=dict.fromkeys(ARMS, 8) | {"chunk-choice": 3}),
        "paper": lab.PartPreset(
            arms=ARMS,
            # A prompt of 131,072 tokens takes a GPU some ten seconds in all ways of cutting it: 24 of them, 8 of
            # every kind of fact. Answers are counted on further prompts: 80 of every kind, eight at each
            # depth in each haystack, tell ten points in a hundred, and 400 of one word whether nine in ten are right
            # where some 0.93 are, as 60 prompts had it.
            fewer=dict.fromkeys(ARMS, 40)
            | {
                "chunks-beyond": 8,
                "chunk-answers": 80,
                "chunk-words": 400,
                "chunk-controls": 24,
                "chunk-choice": 3,
            },
            chunk_sizes=(256, 512, 1024, 2048, 4096),
            chunk_lengths=(2048, 4096, 7936),
            chunk_beyond=(16_384, 32_768, 131_072),
        ),
    },
)

READING = (
    "chunk_model",
    "chunk_layer",
    "chunk_rule",
    "chunk_kernel",
    "whole_layer",
    "whole_rule",
    "whole_kernel",
    "chunk",
    "chunk_sizes",
    "chunk_depths",
    "chunk_haystacks",
    "chunk_tokens",
)
# Prompts run one after the other: a batch of chunks fills a device by itself, and a unit that is killed loses little.
_MODEL: dict[str, Any] = {
    "optional": True,
    "needs": Params.chunk_needs,
    "reads": Params.own_texts,
    "chunk": 1,
    "tolerance": 1e-3,
}
_GRID: dict[str, Any] = {"length": lambda p: p.chunk_lengths, "kind": list(KINDS)}


@part.arm("chunks", over=_GRID, uses=READING, **_MODEL)
def chunks(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int, kind: str) -> None:
    """The share of a fact's tokens that is kept, and what is answered from them: full attention, the whole prompt's
    filter, chunks of several sizes, without overlap and with an anchor."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [recall_rows(loaded, seed, kind, length, reading, within=True) for seed in seeds])


@part.arm("chunks-beyond", over={"length": lambda p: p.chunk_beyond, "kind": list(KINDS)}, uses=READING, **_MODEL)
def chunks_beyond(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int, kind: str) -> None:
    """Prompts longer than the model's context: what chunks keep, and what is answered from them."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [recall_rows(loaded, seed, kind, length, reading, within=False) for seed in seeds])


@part.arm("chunk-answers", over={"kind": list(KINDS)}, uses=(*READING, "chunk_lengths"), **_MODEL)
def chunk_answers(params: Params, seeds: Seeds, record: lab.Recorder, *, kind: str) -> None:
    """The longest prompts within the context, in chunks of the chosen size, whole, and with full attention: prompts
    that no other arm reads, and enough of them to compare answers."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    length = max(params.chunk_lengths)
    report(record, [answer_rows(loaded, seed, kind, length, reading) for seed in seeds])


@part.arm("chunk-words", over={"length": lambda p: p.chunk_beyond}, uses=READING, **_MODEL)
def chunk_words(params: Params, seeds: Seeds, record: lab.Recorder, *, length: int) -> None:
    """Facts of one word beyond the context, in chunks of the chosen size alone: prompts that no other arm
    reads, and enough of them to count answers."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [word_rows(loaded, seed, length, reading) for seed in seeds])


@part.arm("chunks-far", over={"task": list(FAR)}, uses=(*READING, "chunk_lengths"), **_MODEL)
def chunks_far(params: Params, seeds: Seeds, record: lab.Recorder, *, task: str) -> None:
    """Questions whose evidence stands in several places, at the first length."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [far_rows(loaded, seed, task, params.chunk_lengths[0], reading) for seed in seeds])


@part.arm("chunk-lists", uses=(*READING, "chunk_lengths"), **_MODEL)
def chunk_lists(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """A list of eight things that stand an eighth of the text apart, at the first length."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [list_rows(loaded, seed, params.chunk_lengths[0], reading) for seed in seeds])


@part.arm("chunk-controls", uses=(*READING, "chunk_lengths"), **_MODEL)
def chunk_controls(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """No question, another fact, a fact on a boundary, another order of the chunks: at the first length."""
    loaded, reading = loaded_model(params.chunk_model, seeds.device), params.reading()
    report(record, [control_rows(loaded, seed, params.chunk_lengths[0], reading) for seed in seeds])


@part.arm(
    "chunk-choice",
    over={"reading": ["chunks", "whole"]},
    uses=("chunk_model", "chunk", "chunk_lengths", "chunk_prompts"),
    **{**_MODEL, "needs": Params.model_needs, "reads": ()},
)
def chunk_choice(params: Params, seeds: Seeds, record: lab.Recorder, *, reading: str) -> None:
    """The filter layer, rule and width of pooling of chunks and of whole prompts, at the longest prompts within the
    context, chosen and judged on texts that no other arm reads."""
    loaded = loaded_model(params.chunk_model, seeds.device)
    sizes = (max(params.chunk_lengths), params.chunk_prompts, params.chunk if reading == "chunks" else None)
    report(record, [choice_rows(loaded, seed, *sizes) for seed in seeds])
