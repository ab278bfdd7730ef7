"""What an index is said to cost is what torch counts and what its tensors hold."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from assay.methods import cost_model, index_cost, profile_index
from assay.methods.gemfilter import FilterIndex, FolderStore, GemFilter
from assay.methods.gemfilter.chunks import Layout
from assay.methods.gemfilter.cost import Shape
from assay.methods.gemfilter.index import IndexProfile, MemoryStore

LLAMA = Shape(32, 4096, 14336, 32, 8, 128, 128_256)
LENGTHS, HEAD, QUESTION = (150, 25, 90), [5, 6, 7], 20
CUT = {"chunk": 40, "overlap": 8}


def tokens(count, seed):
    return torch.randint(3, 97, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def filled(model, dtype="float16", layer=3, store=None):
    index = FilterIndex(model, GemFilter(layer, keep=30, **CUT), store, head=HEAD, dtype=dtype)
    for number, length in enumerate(LENGTHS):
        index.add(str(number), tokens(length, number))
    return index


def held(store):
    """Bytes of the tensors that a store holds in memory."""
    return sum(part.numel() * part.element_size() for state in store._chunks.values() for part in state.values())


@pytest.mark.parametrize(("dtype", "item"), [("float16", 2), ("float32", 4)])
@pytest.mark.parametrize("layer", [0, 3])
def test_the_bytes_of_an_index_are_those_of_its_tensors(llama, dtype, item, layer):
    store = MemoryStore()
    index = filled(llama, dtype, layer, store)
    expected = index_cost(
        Shape.of(llama.config), lengths=LENGTHS, layer=layer, question=QUESTION, head=3, item=item, **CUT
    )
    assert held(store) == index.stored_bytes == expected.index_bytes
    assert index.select(tokens(QUESTION, 9)).chunks == expected.chunks == len(store._chunks)
    index.add("again", tokens(LENGTHS[0], 0))  # the same text under another name
    assert held(store) == index.stored_bytes == expected.index_bytes
    index.remove("2")
    assert held(store) == index.stored_bytes < expected.index_bytes


def test_large_chunks_share_what_those_of_an_index_share(make_model):
    """An eighth of a chunk, and 256 tokens at most."""
    model = make_model(num_hidden_layers=2, max_position_embeddings=8192)
    index = FilterIndex(model, GemFilter(1, keep=16, chunk=4096))
    index.add("one", tokens(15_616, 0))
    expected = index_cost(Shape.of(model.config), lengths=15_616, layer=1, question=QUESTION, chunk=4096)
    assert expected == index_cost(
        Shape.of(model.config), lengths=15_616, layer=1, question=QUESTION, chunk=4096, overlap=256
    )
    assert expected.index_bytes == index.stored_bytes
    assert expected.chunks == len(index.store._chunks) == 4


def test_files_hold_those_bytes_and_their_headers(llama, tmp_path):
    index = filled(llama, store=FolderStore(tmp_path))
    files = list(tmp_path.glob("chunks/*/*.safetensors"))
    headers = sum(8 + int.from_bytes(path.read_bytes()[:8], "little") for path in files)
    assert sum(path.stat().st_size for path in files) == index.stored_bytes + headers


def test_a_model_that_reads_anew_keeps_tokens_alone(make_model):
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    store = MemoryStore()
    index = filled(make_model("Llama", max_position_embeddings=48, rope_parameters=rope), store=store)
    assert not index.continues
    assert held(store) == index.stored_bytes


def test_operations_are_what_torch_counts(make_model):
    model = make_model("Llama", "eager")
    shape, layer = Shape.of(model.config), 3
    index = FilterIndex(model, GemFilter(layer, keep=30, **CUT), head=HEAD)
    expected = index_cost(shape, lengths=LENGTHS, layer=layer, question=QUESTION, head=3, **CUT)
    with FlopCounterMode(display=False) as building:
        for number, length in enumerate(LENGTHS):
            index.add(str(number), tokens(length, number))
    with FlopCounterMode(display=False) as asking:
        index.select(tokens(QUESTION, 9))
    # The eager attention computes the whole rectangle; the model counts what is not in the future.
    once = again = 0
    for length in LENGTHS:
        cut = Layout.of(3 + length + QUESTION, CUT["chunk"], overlap=CUT["overlap"], tail=QUESTION, anchor=3)
        read, width = cut.chunk_length - QUESTION, 2 * layer * shape.heads * shape.head_dim
        once += cut.chunks * width * read * (read - 1)
        again += cut.chunks * width * QUESTION * (QUESTION - 1)
    assert building.get_total_flops() == pytest.approx(expected.build_flops + once, rel=2e-3)  # rotations
    assert asking.get_total_flops() == pytest.approx(expected.question_flops + again, rel=2e-3)


def test_reading_anew_is_the_filter_over_the_same_chunks():
    made = index_cost(LLAMA, lengths=100_000, layer=13, question=128, chunk=2048)
    gem = cost_model("gemfilter", LLAMA, n=100_128, layer=13, chunk=2048, tail=128)
    full = cost_model("full", LLAMA, n=100_128)
    assert made.anew_flops == gem.prefill_flops
    assert made.full_flops == full.prefill_flops
    assert made.question_flops < 0.1 * made.anew_flops


def test_the_break_even_is_the_first_question_that_pays():
    for question in (8, 128, 1024):
        made = index_cost(LLAMA, lengths=[50_000, 3_000], layer=13, question=question)
        least = made.break_even
        assert made.total(least) < least * made.anew_flops
        assert made.total(least - 1) >= (least - 1) * made.anew_flops
    assert IndexProfile(1, 1, 10.0, 2.0, 4.0, None, None, 0).break_even == 6
    assert IndexProfile(1, 1, 10.0, 4.0, 4.0, None, None, 0).break_even == 0
    assert IndexProfile(1, 1, 10.0, 2.0, 4.0, None, None, 0).per_question(5) == 4.0


def test_a_profile_counts_what_it_measured(llama):
    made = []

    def make():
        made.append(FilterIndex(llama, GemFilter(3, keep=30, rule="window", **CUT), head=HEAD))
        return made[-1]

    found = profile_index(make, LENGTHS, question=QUESTION, questions=2)
    assert found.tokens == sum(LENGTHS)
    assert found.chunks == 9
    assert found.index_bytes == held(made[0].store)
    assert min(found.build, found.question, found.anew) > 0
    with pytest.raises(ValueError, match="make an empty one"):
        profile_index(lambda: made[0], 50)


def test_what_has_no_cost_is_refused(llama):
    for wrong, sentence in (
        ({"layer": 32}, "between 0 and 31, not 32"),
        ({"lengths": []}, "at least one token each"),
        ({"question": 0}, "at least one token each"),
        ({"layer": 2.5}, "layer must be an integer, not 2.5"),
        ({"chunk": 8, "overlap": 8}, "overlap must be smaller than a chunk of 8 tokens, not 8"),
        ({"chunk": "auto"}, "chunk='auto' depends on the model's context"),
    ):
        with pytest.raises(ValueError, match=sentence):
            index_cost(LLAMA, **{"lengths": 100, "layer": 3, "question": 5, **wrong})
    with pytest.raises(ValueError, match="at least one question"):
        profile_index(lambda: filled(llama), 50, questions=0)
