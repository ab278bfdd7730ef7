"""Rankings of texts: counted words against a value by hand and a slow loop, vectors against the mean of one text."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.evaluation.retrieval import bm25, unit_vectors, words_of
from assay.networks.pretrained import Loaded

TEXTS = ["the cat sat on the mat", "a dog and a cat", "nothing of the kind here", "cat cat cat cat"]


def slowly(question, texts, k, b):
    counts = [words_of(text) for text in texts]
    mean = sum(map(len, counts)) / len(counts)
    found = []
    for words in counts:
        total = 0.0
        for word in set(words_of(question)):
            holding = sum(word in other for other in counts)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            often = words.count(word)
            total += idf * often * (k + 1) / (often + k * (1 - b + b * len(words) / mean))
        found.append(total)
    return found


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(alphabet="ab .é", min_size=1, max_size=30).map(lambda text: f"x {text}"), min_size=1, max_size=6),
    st.text(alphabet="ab é", max_size=12),
    st.sampled_from([1.2, 1.5]),
)
def test_counted_words_are_the_slow_formula(texts, question, k):
    assert bm25(question, texts, k=k) == pytest.approx(slowly(question, texts, k, 0.75))


def test_a_value_by_hand():
    """One word in one of two texts of one length: ln(1 + 1.5 / 1.5) · 1 · 2.2 / (1 + 1.2) = ln 2."""
    assert bm25("cat", ["a cat", "a dog"], k=1.2) == pytest.approx([math.log(2), 0.0])
    assert bm25("cat", ["...", "!"]) == [0.0, 0.0], "texts without words"


def test_a_split_of_ones_own():
    assert words_of("Café, snake_case!") == ["café", "snake_case"]
    assert bm25("snake", ["snake_case", "other"]) == [0.0, 0.0]
    assert bm25("snake", ["snake_case", "other"], words=lambda text: text.split("_"))[0] > 0


class Words:
    """A tokenizer that fills up with zeros and tells of token types, which not every encoder takes."""

    def __call__(self, texts, *, padding, truncation, max_length, return_tensors):
        rows = [[1 + TEXTS[0].split().index(word) for word in text.split()][:max_length] for text in texts]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "token_type_ids": torch.zeros_like(ids)}


class Table(torch.nn.Module):
    device = "cpu"

    def __init__(self):
        super().__init__()
        self.rows = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))

    def forward(self, input_ids, attention_mask):
        return type("Made", (), {"last_hidden_state": self.rows[input_ids]})


@pytest.mark.parametrize("batch", [1, 2, 32])
def test_vectors_are_means_of_a_texts_own_tokens(batch):
    texts = ["the cat sat on the mat", "cat", "on the mat"]
    model = Table()
    found = unit_vectors(Loaded(model, Words(), "table"), texts, batch=batch, longest=4)
    for text, vector in zip(texts, found, strict=True):
        mean = torch.stack([model.rows[1 + TEXTS[0].split().index(word)] for word in text.split()[:4]]).mean(dim=0)
        assert torch.allclose(vector, mean / mean.norm(), atol=1e-6)
