from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from assay.data.text import TextSet
from assay.networks.pretrained import Loaded
from assay.studies.universality_tradeoff.text.learners import TextTuning, embedded, head_accuracy, labelled_texts

GOOD, BAD = ("good", "fine", "great"), ("bad", "dull", "poor")
WORDS = ("film", "book", "song", "play")
PAIRS = [(f"{word} {said}", label) for label, ends in enumerate((BAD, GOOD)) for word in WORDS for said in ends]
TEXTS = TextSet(tuple(t for t, _ in PAIRS), torch.tensor([label for _, label in PAIRS]), "made up", 2)


class Tiny(nn.Module):
    """Stands in for a sentence encoder: word vectors and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(hidden_size=16)
        self.embedding, self.dropout = nn.Embedding(64, 16), nn.Dropout(0.2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.dropout(self.embedding(input_ids)))


def tokenizer(texts: list[str], **_: object) -> dict[str, torch.Tensor]:
    known = {word: k for k, word in enumerate((*WORDS, *GOOD, *BAD))}
    ids = torch.tensor([[known[word] for word in text.split()] for text in texts])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.fixture
def loaded() -> Loaded:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Loaded(Tiny().eval(), tokenizer, "tiny")


def test_texts_are_balanced(loaded):
    texts, labels = labelled_texts(TEXTS, 8, 0)
    assert len(texts) == 8
    assert torch.bincount(labels).tolist() == [4, 4]
    assert embedded(loaded, loaded.model, texts, "cpu").shape == (8, 16)


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_fine_tuning_learns_and_leaves_model_and_generator(loaded, strength):
    kept = loaded.model.embedding.weight.detach().clone()
    train = (list(TEXTS.texts), TEXTS.labels)
    state = torch.random.get_rng_state()
    recipe = TextTuning(steps=40, rate=1e-2, head_rate=5e-2, strength=strength)
    found = [recipe.accuracy(loaded, train, TEXTS, 0, "cpu") for _ in range(2)]
    assert torch.equal(state, torch.random.get_rng_state())
    assert found[0] == found[1] > 0.9
    torch.testing.assert_close(loaded.model.embedding.weight.detach(), kept)


def test_a_head_on_the_frozen_encoder(loaded):
    assert head_accuracy(loaded, (list(TEXTS.texts), TEXTS.labels), TEXTS, "cpu") > 0.9
