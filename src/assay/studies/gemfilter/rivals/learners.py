"""What people would take in place of a filter: windows of the text, ranked by shared words or by a sentence encoder."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from assay._extras import extra
from assay.evaluation import retrieval
from assay.evaluation.needles import Hidden, hide
from assay.networks.pretrained import Loaded, load_encoder
from assay.training.seeds import stream

from ..choice.learners import TINY, TUNING_SEED, tiny_model
from ..chunks.learners import Reading
from ..chunks.problem import Asked, Task, haystack_of
from ..learners import Key, Row, recall, second_runs
from .problem import WORDINGS, words_of

#: Gives each of some windows a number: the higher, the more it has to do with the question.
Ranking = Callable[[str, Sequence[str]], Tensor]


def bm25(question: str, windows: Sequence[str]) -> Tensor:
    """Okapi BM25 of every window for a question, with the two constants that search engines take."""
    return torch.tensor(retrieval.bm25(question, windows, k=1.2, b=0.75, words=words_of))


def dense(encoder: Loaded, question: str, windows: Sequence[str], batch: int = 64) -> Tensor:
    """The cosine between the encoder's mean states of every window and of the question."""
    vectors = retrieval.unit_vectors(encoder, [question, *windows], batch=batch)
    return vectors[1:] @ vectors[0]


@lru_cache(maxsize=2)
def loaded_encoder(name: str, device: str) -> Loaded:
    """The encoder, read once per process; ``tiny`` is a random one, for trying an arm out."""
    if name != TINY:
        return load_encoder(name, device=device)
    with extra("llm", "a random encoder"):
        from transformers import BertConfig, BertModel

    tokenizer = tiny_model("cpu").tokenizer
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **sizes, pad_token_id=0)).eval()
    draw = stream(0, "tiny encoder")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw))
    return Loaded(model.to(device), tokenizer, TINY)


def best_windows(prompt: Asked, head: int, tokenizer: Any, ranking: Ranking, window: int, keep: int) -> Tensor:
    """The positions (1, keep) of the best windows of ``window`` tokens, in their order, with what a retriever puts
    around them: the ``head`` tokens before the text and the question behind it. Windows overlap by half, so that no
    sentence is cut in all of them; the last one to fit is cut to the budget."""
    stop = len(prompt.ids) - prompt.tail
    starts = range(head, max(head + 1, stop - window // 2), window // 2)
    texts = [tokenizer.decode(prompt.ids[start : min(start + window, stop)]) for start in starts]
    chosen = {*range(head), *range(stop, len(prompt.ids))}
    if len(chosen) >= keep:
        raise ValueError(
            f"a budget of {keep} tokens leaves no room for windows beside the {len(chosen)} of the question"
        )
    for place in ranking(prompt.task.question, texts).argsort(descending=True, stable=True).tolist():
        fresh = [i for i in range(starts[place], min(starts[place] + window, stop)) if i not in chosen]
        chosen.update(fresh[: keep - len(chosen)])
        if len(chosen) >= keep:
            break
    return torch.tensor([sorted(chosen)])


def rival_prompt(loaded: Loaded, seed: int, wording: str, length: int, reading: Reading) -> tuple[Asked, int]:
    """A seed's fact in a seed's text, and the number of tokens before the text."""
    needle = WORDINGS[wording](random.Random(f"rival:{wording}:{seed}:{length}"))
    task = Task((needle.sentence,), (0.0,), needle.question, ((needle.answer,),))
    depth, haystack = reading.place(seed)
    draw = random.Random(f"rival text:{seed}:{length}")
    made = hide(
        loaded.tokenizer, task.sentences, task.question, length, [depth], draw=draw, haystack=haystack_of(haystack)
    )
    return Asked(made.input_ids, made.at, made.tail, task), _head(loaded, made, task)


def _head(loaded: Loaded, made: Hidden, task: Task) -> int:
    """Tokens of the template and the introduction: those that a prompt with another text has, too."""
    draw = random.Random("another text")
    other = hide(loaded.tokenizer, [], task.question, len(made.input_ids), [], draw=draw)
    pairs = zip(made.input_ids, other.input_ids, strict=True)
    return next((place for place, (one, two) in enumerate(pairs) if one != two), 0)


def rival_rows(
    loaded: Loaded,
    encoder: Loaded,
    seed: int,
    wording: str,
    length: int,
    reading: Reading,
    windows: Mapping[str, int],
) -> list[Row]:
    """The share of a fact's tokens that filter, BM25 and encoder keep at one budget, and what the model answers."""
    prompt, head = rival_prompt(loaded, seed, wording, length, reading)
    ids = torch.tensor([prompt.ids], device=next(loaded.model.parameters()).device)
    chosen = reading.cut(prompt)
    kept: dict[Key, Tensor] = {"chunks": chosen.select(loaded.model, ids).indices}
    for rival, ranking in _rankings(encoder).items():
        places = best_windows(prompt, head, loaded.tokenizer, ranking, windows[rival], chosen.budget(length))
        kept[rival] = places.to(ids.device)
    rows: list[Row] = []
    for name, tokens in second_runs(loaded.model, ids, kept, reading.new).items():
        share = float(recall(kept[name], prompt.wanted))
        said = loaded.tokenizer.decode(tokens[0], skip_special_tokens=True)
        rows.append(Row({"method": str(name)}, {"recall": share}, trials=len(prompt.wanted)))
        rows.append(Row({"method": str(name)}, {"accuracy": float(prompt.task.right(said))}, trials=1))
    return rows


def window_rows(
    loaded: Loaded, encoder: Loaded, seed: int, length: int, reading: Reading, sizes: Sequence[int]
) -> list[Row]:
    """What the rivals keep with windows of each size, on tuning prompts of both wordings."""
    keep = reading.whole(length).budget(length)
    rows: list[Row] = []
    for name, ranking in _rankings(encoder).items():
        for size in sizes:
            shares = []
            for wording in WORDINGS:
                prompt, head = rival_prompt(loaded, TUNING_SEED + seed, wording, length, reading)
                places = best_windows(prompt, head, loaded.tokenizer, ranking, size, keep)
                shares.append(float(recall(places, prompt.wanted)))
            rows.append(Row({"method": name, "window": size}, {"tuning_recall": sum(shares) / len(shares)}))
    return rows


def _rankings(encoder: Loaded) -> dict[str, Ranking]:
    return {"bm25": bm25, "encoder": lambda question, windows: dense(encoder, question, windows)}
