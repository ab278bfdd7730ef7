import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

pytest.importorskip("transformers", reason="language models need the extra llm")

FILMS = [f"a {word} film number {i} of many" for i in range(40) for word in ("dull", "fine")]
LABELS = [0, 1] * 40


class Words:
    """A tokenizer that needs no file: a token per word with its blank, per line break and per mark."""

    unk_token_id = 0

    def __init__(self, unknown=()):
        self.known, self.unknown = [], unknown

    def __call__(self, text, **_):
        return {"input_ids": [self.number(piece) for piece in re.findall(r"\n| ?\w+| ?[^\w\s]|\s", text)]}

    def number(self, piece):
        if piece in self.unknown:
            return 0
        if piece not in self.known:
            self.known.append(piece)
        return 1 + self.known.index(piece)

    def decode(self, ids):
        return "".join(self.known[i - 1] for i in ids)


class Reader(nn.Module):
    """A stub without parameters, cache or configuration: ``rule`` gives, from the pieces of a prompt, the logits of
    what comes next by its name."""

    def __init__(self, tokenizer, rule, size=400):
        super().__init__()
        self.tokenizer, self.rule, self.size, self.seen = tokenizer, rule, size, []

    def forward(self, input_ids):
        logits = torch.zeros(*input_ids.shape, self.size)
        for row, ids in enumerate(input_ids.tolist()):
            ids = [i for i in ids if i]
            pieces = [self.tokenizer.known[i - 1] for i in ids]
            self.seen.append(pieces)
            for name, value in self.rule(pieces).items():
                logits[row, : len(ids), self.tokenizer.number(name)] = value
        return SimpleNamespace(logits=logits)


def copies_the_majority(pieces):
    """Answers with the label that demonstrations of the query's word have."""
    lines = "".join(pieces).split("\n\n")
    word = lines[-1].split()[2]
    votes = [line.split()[-1].rstrip(".") for line in lines[:-1] if line.split()[2] == word]
    return {f" {label}": float(votes.count(label)) for label in ("negative", "positive")}


def knows_the_words(pieces):
    """Answers from the query alone, whatever was shown."""
    word = "".join(pieces).split("\n\n")[-1].split()[2]
    return {" positive": float(word == "fine"), " negative": float(word == "dull")}


@pytest.fixture
def films():
    return FILMS, LABELS


@pytest.fixture
def words():
    """Make a tokenizer that does not know some words."""
    return Words


@pytest.fixture
def copying():
    """A model that follows the demonstrations, and its tokenizer."""
    tokenizer = Words()
    return Reader(tokenizer, copies_the_majority), tokenizer


@pytest.fixture
def knowing():
    """A model that follows what it knows."""
    tokenizer = Words()
    return Reader(tokenizer, knows_the_words), tokenizer
