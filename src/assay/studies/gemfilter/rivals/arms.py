"""Chunks against retrievers at one budget of tokens, on questions in the text's words and in others."""

from __future__ import annotations

from typing import Any

from pydantic import Field, PositiveInt

from assay import lab
from assay.training import Seeds

from ..choice.learners import TINY, loaded_model
from ..chunks import arms as chunks
from ..learners import report
from .learners import loaded_encoder, rival_rows, window_rows
from .problem import WORDINGS


class Params(chunks.Params):
    rival_encoder: str = Field("minilm", description="the sentence encoder: a hub name, a folder, minilm, or tiny")
    rival_lengths: tuple[PositiveInt, ...] = Field(
        (2048,), min_length=1, description="n of the prompts on which retrievers are compared"
    )
    rival_windows: tuple[PositiveInt, ...] = Field(
        (32, 64, 128), min_length=1, description="sizes of a window among which each retriever's was chosen"
    )
    bm25_window: int = Field(64, ge=2, description="tokens of a window that BM25 ranks, chosen on tuning prompts")
    encoder_window: int = Field(32, ge=2, description="tokens of a window that the encoder ranks, chosen likewise")

    def rival_needs(self) -> tuple[str, ...]:
        encoder = () if self.rival_encoder == TINY else (f"model:{self.rival_encoder}",)
        return (*self.chunk_needs(), *encoder)


ARMS = ("rivals", "rival-windows")

part = lab.Part(
    "rivals",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            arms=ARMS, rival_encoder=TINY, rival_lengths=(1536,), rival_windows=(32, 64), bm25_window=32
        ),
        "laptop": lab.PartPreset(fewer={"rivals": 20, "rival-windows": 20}),
        "paper": lab.PartPreset(arms=ARMS, fewer={"rivals": 60, "rival-windows": 40}, rival_lengths=(2048, 7936)),
    },
)

_USES = (*chunks.READING, "rival_encoder")
_MODELS: dict[str, Any] = {
    "optional": True,
    "needs": Params.rival_needs,
    "reads": Params.own_texts,
    "chunk": 1,
    "tolerance": 1e-3,
}


@part.arm(
    "rivals",
    over={"wording": list(WORDINGS), "length": lambda p: p.rival_lengths},
    uses=(*_USES, "bm25_window", "encoder_window"),
    **_MODELS,
)
def rivals(params: Params, seeds: Seeds, record: lab.Recorder, *, wording: str, length: int) -> None:
    """What chunks, BM25 and a sentence encoder keep of a fact, and what is answered from it."""
    loaded = loaded_model(params.chunk_model, seeds.device)
    encoder = loaded_encoder(params.rival_encoder, seeds.device)
    windows = {"bm25": params.bm25_window, "encoder": params.encoder_window}
    reading = params.reading()
    report(record, [rival_rows(loaded, encoder, seed, wording, length, reading, windows) for seed in seeds])


@part.arm("rival-windows", uses=(*_USES, "rival_windows", "rival_lengths"), **_MODELS)
def rival_windows(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The size of the retrievers' windows, on prompts that no comparison uses."""
    loaded = loaded_model(params.chunk_model, seeds.device)
    encoder = loaded_encoder(params.rival_encoder, seeds.device)
    sizes = (params.rival_lengths[0], params.reading(), params.rival_windows)
    report(record, [window_rows(loaded, encoder, seed, *sizes) for seed in seeds])
