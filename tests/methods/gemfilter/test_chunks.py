"""A prompt read in overlapping chunks: what they cover, that their scores are joined, and that nothing is lost."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.evaluation import needle_prompt
from assay.methods.gemfilter import FilterIndex, GemFilter, OneRun, choose_filter_layer, layer_scan
from assay.methods.gemfilter import chunks as chunking
from assay.methods.gemfilter.adapter import read_layers
from assay.methods.gemfilter.chunks import Layout
from assay.methods.gemfilter.prompts import prompt_of
from assay.methods.gemfilter.scoring import causal_logits, logit_scores, pool
from assay.studies.gemfilter.learners import anchored

RULES = ("logits", "softmax", "window")
TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
CUT = {"chunk": 20, "overlap": 6, "tail": 10, "window": 8}


@settings(deadline=None, max_examples=60)
@given(
    length=st.integers(1, 200),
    chunk=st.integers(2, 60),
    overlap=st.integers(0, 40),
    tail=st.integers(1, 30),
    anchor=st.integers(0, 20),
    sink=st.integers(0, 6),
)
def test_chunks_cover_the_prompt_and_their_first_tokens_are_scored_by_others(
    length, chunk, overlap, tail, anchor, sink
):
    overlap = min(overlap, chunk - 1)
    layout = Layout.of(length, chunk, overlap=overlap, tail=tail, anchor=anchor, sink=sink)
    pieces = [layout.positions(number).tolist() for number in range(layout.chunks)]
    assert all(len(piece) == layout.chunk_length == len(set(piece)) for piece in pieces)
    assert all(piece == sorted(piece) and piece[-1] == length - 1 for piece in pieces)
    assert set().union(*pieces) == set(range(length))
    scored = [set(layout.positions(n)[layout.scored(n)].tolist()) for n in range(layout.chunks)]
    assert set().union(*scored) == set(range(length))
    if layout.chunks == 1:
        assert pieces == [list(range(length))]
        return
    steps = [after - before for before, after in zip(layout.starts, layout.starts[1:], strict=False)]
    assert set(steps[:-1]) <= {chunk - overlap}
    assert 0 < steps[-1] <= chunk - overlap
    longer = Layout.of(length + 20, chunk, overlap=overlap, tail=tail, anchor=anchor, sink=sink)
    assert longer.starts[: layout.chunks - 1] == layout.starts[:-1]
    # Whatever is no longer than the overlap, less the sink, stands whole in a chunk that scores all of it.
    whole = max(1, overlap - sink)
    body = range(layout.anchor, length - layout.tail - whole + 1)
    for first in body if overlap > sink else ():
        assert any(set(range(first, first + whole)) <= part for part in scored)


def test_a_prompt_that_fits_into_one_chunk_is_read_whole(any_model, ids):
    for rule in RULES:
        whole = GemFilter(layer=3, keep=16, rule=rule, window=8)
        one = GemFilter(layer=3, keep=16, rule=rule, window=8, chunk=50, tail=10)
        made, expected = one.select(any_model, ids), whole.select(any_model, ids)
        assert torch.equal(made.scores, expected.scores)
        assert torch.equal(made.indices, expected.indices)
        assert made.chunks == 0


@pytest.mark.parametrize("anchor", [0, 7])
@pytest.mark.parametrize("rule", RULES)
def test_scores_are_one_softmax_over_all_chunks(any_model, ids, rule, anchor):
    """Against every chunk run alone, with the logits of all of them put side by side."""
    chosen = anchored(GemFilter(layer=3, keep=16, rule=rule, **CUT, sink=2), anchor)
    layout = chosen.layout(any_model, 60)
    assert layout.chunks > 2
    logits, places, allowed = [], [], []
    for number in range(layout.chunks):
        found = []
        here = layout.positions(number)
        read_layers(any_model, ids[:, here], None, [3], None, lambda _, projected, found=found: found.append(projected))
        one = found[0].of(0)
        if rule == "logits":
            logits.append(logit_scores(one.queries[:, -1], one.keys))
        else:
            logits.append(causal_logits(one.queries[:, -(8 if rule == "window" else 1) :], one.keys, one.scaling))
        places.append(here)
        allowed.append(layout.scored(number))
    side_by_side = torch.cat(logits, dim=-1)
    values = side_by_side if rule == "logits" else side_by_side.softmax(dim=-1).mean(dim=1).sum(dim=0)
    places, allowed = torch.cat(places), torch.cat(allowed)
    best = torch.stack([values[(places == i) & allowed].max() for i in range(60)])
    scores = chosen.score(any_model, prompt_of(any_model, ids))[0]
    expected = pool(best, "avg", 5)
    assert torch.allclose(scores, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("rule", RULES)
def test_chunks_of_a_batch_score_as_one_by_one(any_model, ids, rule):
    prompt = prompt_of(any_model, ids)
    together, alone = (
        GemFilter(layer=3, rule=rule, **CUT, chunk_memory=memory).score(any_model, prompt) for memory in (1.0, 1e-9)
    )
    assert torch.allclose(together, alone, rtol=1e-3, atol=1e-4 * float(alone.abs().max()))


def test_batches_of_chunks_fill_the_memory_that_was_stated(llama, ids, monkeypatch):
    sizes = []
    usual = chunking.read_layers
    monkeypatch.setattr(chunking, "read_layers", lambda *given, **k: sizes.append(len(given[1])) or usual(*given, **k))
    one = chunking.sequence_bytes(llama, 30)
    GemFilter(layer=2, keep=8, **CUT, chunk_memory=2.5 * one / 2**30).select(llama, ids)
    assert sizes == [2, 2]
    sizes.clear()
    assert GemFilter(layer=2, keep=8, **CUT).select(llama, ids).chunks == 4
    assert sizes == [4]


@pytest.mark.parametrize("rule", RULES)
def test_left_padding_and_unequal_prompts_change_no_selection(any_model, ids, rule):
    chosen = GemFilter(layer=3, keep=12, rule=rule, **CUT)
    rows = [ids[0], ids[0, 7:], ids[0, 35:], ids[0, 50:]]  # four chunks, three, one, and a prompt that fits
    batch, mask = torch.zeros(4, 60, dtype=torch.long), torch.zeros(4, 60, dtype=torch.long)
    for place, row in enumerate(rows):
        batch[place, 60 - len(row) :], mask[place, 60 - len(row) :] = row, 1
    made = chosen.select(any_model, batch, attention_mask=mask)
    for place, row in enumerate(rows):
        alone = chosen.select(any_model, row[None])
        assert [i - (60 - len(row)) for i in made.kept(place)] == alone.kept()
    assert made.scores[1, :7].eq(float("-inf")).all()


def test_a_decoder_of_another_family_and_one_without_a_head_are_read_in_chunks(ids, llama):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = dict(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=8)
    model = transformers.GraniteForCausalLM(transformers.GraniteConfig(**sizes, pad_token_id=0)).eval()
    chosen = GemFilter(layer=2, keep=12, **CUT)
    assert chosen.select(model, ids).chunks == 4
    assert torch.equal(chosen.select(llama.model, ids).scores, chosen.select(llama, ids).scores)


def test_prompts_beyond_the_context_never_leave_it(make_model, ids):
    model, seen = make_model("Llama", max_position_embeddings=32), []
    model.model.rotary_emb.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(int((kwargs["position_ids"] if kwargs else args[1]).max())),
        with_kwargs=True,
    )
    long = ids.repeat(1, 5)
    with pytest.warns(UserWarning, match="300 tokens at once exceed the 32 that the model was trained for"):
        GemFilter(layer=2, keep=8).select(model, long)
    assert max(seen) == 299
    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chunk in (16, "auto"):
            made = GemFilter(layer=2, keep=8, chunk=chunk, tail=8, window=8).select(model, long)
            assert made.chunks > 5
    assert 16 <= max(seen) < 32
    with pytest.warns(UserWarning, match="48 tokens at once exceed"):
        GemFilter(layer=2, keep=8, chunk=40, tail=8).select(model, long)


def test_auto_leaves_short_prompts_whole(make_model):
    model = make_model("Llama", max_position_embeddings=100_000)
    chosen = GemFilter(layer=2, chunk="auto")
    assert chosen.layout(model, 4096) is None
    assert chosen.layout(model, 4097).size == 1024
    assert chosen.layout(model, 4097).chunk_length == 1024 + 128
    assert chosen.layout(make_model("Llama"), 513).chunk_length == 256  # half of its context of 512


@pytest.mark.parametrize(("overlap", "shared"), [(None, 3), (8, 8), (12, 12), (200, 12)])
def test_an_automatic_chunk_leaves_a_step(make_model, ids, overlap, shared):
    """An overlap that was meant for a chunk of 1,024 tokens is more than one of 24 has."""
    model = make_model("Llama", max_position_embeddings=64)
    chosen = GemFilter(layer=2, keep=16, chunk="auto", overlap=overlap, tail=8, window=8)
    layout = chosen.layout(model, 2400)
    assert (layout.size, layout.starts[1]) == (24, 24 - shared)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        made = chosen.select(model, ids.repeat(1, 5))
        index = FilterIndex(model, GemFilter(layer=2, keep=16, overlap=overlap and 4 * overlap))
    assert made.chunks == chosen.layout(model, 300).chunks < 25
    assert (index.size, index.overlap) == (32, min(16, 4 * overlap) if overlap else 4)
    sentence = "neighbours share 12 and not 200 tokens, half of the 24 that this model's context leaves"
    told = [str(one.message) for one in heard if sentence in str(one.message)]
    assert len(told) == (overlap == 200)


def test_a_sliding_layer_that_sees_a_whole_chunk_can_filter(make_model, ids):
    model = make_model("Mistral", sliding_window=32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GemFilter(layer=2, keep=8, **CUT).select(model, ids)
    with pytest.warns(UserWarning, match="last 32 tokens only"):
        GemFilter(layer=2, keep=8, **{**CUT, "chunk": 30}).select(model, ids)


def planted(cut: int):
    """A hand-set model, and a prompt of filler with a fact at ``cut``: the question's key, and its value behind it."""
    from assay.studies.gemfilter.planted.problem import PlantedNeedle
    from assay.studies.gemfilter.planted.theory import hand_set_model

    task = PlantedNeedle(240)
    model = hand_set_model(task)
    filler = task.vocabulary - 1
    ids = torch.full((1, 240), filler)
    key, value = 2, 2 + task.entities
    ids[0, cut], ids[0, cut + 1], ids[0, -1] = key, value, key
    return model, ids


def test_a_needle_across_a_boundary_is_found_with_overlap():
    chunk, tail = 40, 40
    apart = GemFilter(layer=1, keep=6, rule="softmax", pooling=None, chunk=chunk, tail=tail, overlap=0, sink=0)
    edge = apart.layout(planted(50)[0], 240).starts[2] - 1
    model, ids = planted(edge)  # the key ends one chunk, its value begins the next
    assert edge + 1 not in apart.select(model, ids).kept()
    shared = GemFilter(layer=1, keep=6, rule="softmax", pooling=None, chunk=chunk, tail=tail)
    assert edge + 1 in shared.select(model, ids).kept()
    assert edge + 1 in GemFilter(layer=1, keep=6, rule="softmax", pooling=None).select(model, ids).kept()


def test_a_scan_of_all_layers_reads_the_chunks_that_a_filter_reads(make_model, tokenizer):
    model = make_model("Llama", vocab_size=400)
    prompts = [needle_prompt(tokenizer, 160, depth, seed=3, haystack=TEXT) for depth in (0.2, 0.7)]
    base = GemFilter(layer=0, chunk=40, tail=30)
    scan = layer_scan(model, prompts, keep=24, base=base)
    for which, rule in enumerate(scan.rules):
        for layer in (0, 2, 4):
            chosen = GemFilter(layer=layer, keep=24, rule=rule, chunk=40, tail=30)
            for number, needle in enumerate(prompts):
                kept = chosen.select(model, [needle.input_ids])
                assert scan.recall[which, layer, number] == pytest.approx(kept.recall(needle.needle_at))


def test_a_layer_is_chosen_on_chunks_and_beyond_the_context(make_model, tokenizer):
    model = make_model("Llama", vocab_size=400, max_position_embeddings=96)
    base = GemFilter(layer=0, chunk=40, tail=30)
    options = {"texts": {"story": TEXT}, "needles": ("ingredient",), "warn": False, "remember": False}
    choice = choose_filter_layer(model, tokenizer, keep=24, prompts=4, base=base, **options)
    assert choice.length == 192
    assert choice.filter().chunk == 40
    assert choice.filter(keep=9) == GemFilter(choice.layer, 9, choice.rule, chunk=40, tail=30)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"chunk": 1}, "chunk must be at least 2"),
        ({"chunk": "some"}, "chunk must be one of auto or an integer"),
        ({"chunk": 2.5}, "chunk must be an integer"),
        ({"chunk": 20, "overlap": 20}, "overlap must be smaller than a chunk of 20 tokens"),
        ({"chunk": 20, "tail": 0}, "tail must be at least 1"),
        ({"chunk": 20, "chunk_memory": 0}, "chunk_memory must be positive"),
        ({"chunk": 20, "chunk_memory": float("nan")}, "chunk_memory must be a number"),
        ({"chunk": 20, "row": "middle"}, "chunks go with row='last' only"),
        ({"chunk": 20, "rule": "window", "tail": 8}, "tail must hold the 16 rows of the window"),
    ],
)
def test_chunks_that_make_no_sense_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        GemFilter(layer=2, **options)


def test_one_run_reads_the_prompt_whole():
    with pytest.raises(ValueError, match="its filter must have chunk=None"):
        OneRun(GemFilter(layer=2, chunk=64))
