"""What an index costs: reading the texts once, its bytes, every question, and from which question on it is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.methods._checks import whole
from assay.methods.gemfilter.chunks import shared_tokens
from assay.methods.gemfilter.cost import Shape, check_chunk, full_prefill, prefill_layer, scoring
from assay.methods.gemfilter.index.shelf import Shelf

_ID = 4  # bytes of a token's number, which is stored beside its keys and values


@dataclass(frozen=True)
class IndexCost:
    """Operations (a multiplication and an addition are two) and bytes; of a question, up to the tokens that it selects.

    ``anew`` reads the same chunks again for one question, as a filter without an index does; ``full`` is the prefill of
    all texts and the question by the whole model. What follows a selection, the second pass, is the same with and
    without an index and is left out.
    """

    chunks: int
    build_flops: float
    question_flops: float
    anew_flops: float
    full_flops: float
    index_bytes: int

    def total(self, questions: int) -> float:
        """Operations of the index and so many questions."""
        return self.build_flops + questions * self.question_flops

    @property
    def break_even(self) -> int:
        """The number of questions from which on an index takes fewer operations than reading anew for each."""
        return first_worth(self.build_flops, self.question_flops, self.anew_flops)


def first_worth(build: float, question: float, anew: float) -> int:
    """The least number of questions with build + questions · question < questions · anew; 0 where there is none."""
    return 0 if question >= anew else int(build / (anew - question)) + 1


def index_cost(
    shape: Shape,
    *,
    lengths: int | Sequence[int],
    layer: int,
    question: int,
    chunk: int = 1024,
    overlap: int | None = None,
    head: int = 0,
    item: int = 2,
) -> IndexCost:
    """The cost of an index of texts of ``lengths`` tokens, and of questions of ``question`` tokens, template and all.

    ``chunk``, ``overlap`` and ``head`` are those of ``FilterIndex``, ``item`` the bytes of a stored number. Scores are
    by the rule ``logits``. Chunks that several texts share are counted for each.
    """
    sizes = [lengths] if isinstance(lengths, int) else list(lengths)
    if not 0 <= layer < shape.layers:
        raise ValueError(f"an index needs a layer between 0 and {shape.layers - 1}, not {layer}")
    whole("layer", layer)
    if not sizes or min(sizes) < 1 or question < 1:
        raise ValueError("an index has texts and is asked questions, of at least one token each")
    check_chunk(chunk, overlap)
    shelf = Shelf(sizes, chunk, overlap=shared_tokens(chunk, overlap), head=head, tail=question)
    build = asked = anew = stored = 0.0
    for layout in shelf.layouts:
        both = layout.chunk_length
        read = both - question
        once = layer * prefill_layer(shape, read) + _projections(shape, read)
        again = layer * (prefill_layer(shape, both) - prefill_layer(shape, read)) + _projections(shape, question)
        build += layout.chunks * once
        asked += layout.chunks * (again + 2 * both * shape.kv_heads * shape.head_dim)
        anew += layout.chunks * (layer * prefill_layer(shape, both) + scoring(shape, both))
        stored += layout.chunks * read
    token = (2 * layer + 1) * shape.kv_heads * shape.head_dim * item + _ID
    return IndexCost(shelf.chunks, build, asked, anew, full_prefill(shape, shelf.length), int(stored) * token)


def _projections(shape: Shape, n: int) -> float:
    """The filter layer's queries, keys and values: its attention is reached with all three."""
    return 2 * n * shape.hidden * shape.head_dim * (shape.heads + 2 * shape.kv_heads)
