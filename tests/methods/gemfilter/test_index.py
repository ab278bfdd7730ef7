"""An index answers as a fresh pass over the same chunks does, keeps what is whole, and touches what changed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay.methods.gemfilter import FilterIndex, FolderStore, GemFilter
from assay.methods.gemfilter.chunks import Layout
from assay.methods.gemfilter.index import DamagedIndex, MemoryStore, OtherIndex
from assay.methods.gemfilter.index.reader import Reader
from assay.methods.gemfilter.index.shelf import Shelf, pieces
from assay.studies.gemfilter.learners import anchored

transformers = pytest.importorskip("transformers")
RULES = ("logits", "softmax", "window")
CUT = {"chunk": 40, "overlap": 8, "window": 8, "pooling": None}
SIZES = dict(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=8)
MORE = dict(num_key_value_heads=2, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=None)
GPT = dict(vocab_size=97, n_embd=64, n_layer=4, n_head=8, n_positions=512, pad_token_id=0, eos_token_id=None)
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=8, mamba_expand=2, mamba_n_groups=1)
#: Families that are read through the attention interface: options, filter layer, and whether they can go on.
OTHERS = {
    "GPT2": (GPT, 2, True),
    "GPTNeoX": ({**SIZES, **MORE, "rotary_pct": 0.25}, 2, True),
    "Gemma2": ({**SIZES, **MORE, "head_dim": 16, "sliding_window": 16}, 3, True),
    "Cohere": ({**SIZES, **MORE}, 2, True),
    "Olmo2": ({**SIZES, **MORE}, 2, True),
    "Mixtral": ({**SIZES, **MORE, "num_local_experts": 4}, 2, True),
    "GraniteMoeHybrid": (
        {**SIZES, **MORE, **MAMBA, "layer_types": ["mamba", "attention"] * 2, "num_local_experts": 4},
        3,
        False,
    ),
    "MiniMax": ({**SIZES, **MORE, "num_local_experts": 4, "head_dim": 8}, 2, False),
}


def tokens(count, seed):
    return torch.randint(3, 97, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


HEAD, TAIL = tokens(3, 1), tokens(20, 2)
DOCUMENTS = {"long": tokens(150, 3), "short": tokens(25, 4), "middle": tokens(90, 5)}


def other(family):
    options, layer, _ = OTHERS[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**options)
    model = getattr(transformers, f"{family}ForCausalLM", None) or getattr(transformers, f"{family}LMHeadModel")
    return model(config).eval(), layer


def agrees_with_a_fresh_pass(model, layer, rule, store=None):
    """One document: the very selection of the filter over the same chunks, whose budget holds the question as well."""
    chosen = GemFilter(layer, keep=30, rule=rule, **CUT)
    index = FilterIndex(model, chosen, store, head=HEAD, dtype="float32")
    document = DOCUMENTS["long"]
    index.add("long", document)
    found = index.select(TAIL)
    fresh = anchored(replace(chosen, keep=10_000, tail=len(TAIL), keep_last=len(TAIL)), len(HEAD))
    prompt = torch.tensor([HEAD + document + TAIL])
    scores = replace(fresh, keep=53).select(model, prompt).scores[0, 3:153]
    assert torch.allclose(found.scores["long"], scores, rtol=1e-3, atol=1e-3 * float(scores.std()))
    expected = scores.sort(descending=True, stable=True).indices[:30].sort().values.tolist()
    assert found.kept == {"long": expected}
    return index


@pytest.mark.parametrize("rule", RULES)
def test_an_index_selects_what_a_fresh_pass_selects(any_model, rule):
    assert agrees_with_a_fresh_pass(any_model, 3, rule).continues


@pytest.mark.parametrize("family", OTHERS)
def test_other_families_do_too_and_those_that_cannot_go_on_are_read_anew(family, tmp_path):
    model, layer = other(family)
    for rule in ("logits", "window"):
        index = agrees_with_a_fresh_pass(model, layer, rule, FolderStore(tmp_path / rule))
        assert index.continues is OTHERS[family][2]


def test_rotations_that_depend_on_the_length_are_found_out(make_model):
    """Dynamic NTK turns a chunk by other angles when the question stands behind it."""
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model = make_model("Llama", max_position_embeddings=48, rope_parameters=rope)
    index = FilterIndex(model, GemFilter(3, keep=30, **CUT), head=HEAD)
    assert not index.continues
    index.add("long", DOCUMENTS["long"])
    with pytest.warns(UserWarning, match="63 tokens at once exceed the 48"):
        found = index.select(TAIL)
    assert found.tokens == 30


@pytest.mark.parametrize("rule", RULES)
def test_scores_of_all_documents_are_one_softmax(llama, rule):
    """Against every chunk of every document read whole, joined over the shelf."""
    chosen = GemFilter(3, keep=40, rule=rule, **CUT)
    made = []
    for continues in (True, False):
        index = FilterIndex(llama, chosen, head=HEAD, dtype="float32")
        index.reader.continues = continues
        for name, ids in DOCUMENTS.items():
            index.add(name, ids)
        made.append(index.select(TAIL))
    for name in DOCUMENTS:
        assert torch.allclose(made[0].scores[name], made[1].scores[name], rtol=1e-3, atol=1e-5)
    assert made[0].kept == made[1].kept
    assert made[0].tokens == 40
    if rule != "logits":
        assert sum(float(scores.sum()) for scores in made[0].scores.values()) < 8  # heads; the question has the rest
    alone = FilterIndex(llama, chosen, head=HEAD, dtype="float32")
    alone.add("short", DOCUMENTS["short"])
    among = index.select(TAIL, among=["short"])
    assert torch.allclose(alone.select(TAIL).scores["short"], among.scores["short"], rtol=1e-3, atol=1e-5)


def test_chunks_never_mix_documents():
    shelf = Shelf([150, 25, 90], 40, overlap=8, head=3, tail=20, sink=4)
    assert shelf.length == 288
    covered = set()
    for number in range(shelf.chunks):
        places = shelf.positions(number).tolist()
        body = places[3:-20]
        assert places[:3] == [0, 1, 2]
        assert places[-20:] == list(range(268, 288))
        begin = shelf.begins[shelf.numbers[number][0]]
        assert begin <= body[0] <= body[-1] < begin + shelf.lengths[shelf.numbers[number][0]]
        covered |= {place for place, scored in zip(places, shelf.scored(number), strict=True) if scored}
    assert covered == set(range(288))
    assert [len(piece) for piece in pieces(list(range(150)), 40, 8)] == [40] * Layout.of(
        150, 40, overlap=8, tail=0
    ).chunks


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_smaller_store_says_what_it_loses(llama, dtype, tmp_path):
    chosen = GemFilter(3, keep=30, **{**CUT, "pooling": "avg"})
    exact = FilterIndex(llama, chosen, head=HEAD, dtype="float32")
    small = FilterIndex(llama, chosen, FolderStore(tmp_path), head=HEAD, dtype=dtype)
    assert exact.loss < 1e-4 < small.loss < 0.2
    for index in (exact, small):
        index.add("long", DOCUMENTS["long"])
    scores, near = (index.select(TAIL).scores["long"] for index in (exact, small))
    assert float((scores - near).abs().max()) < 3 * small.loss * float(scores.std())
    state = small.store.get(small.store.documents()["long"]["chunks"][0])
    assert {tensor.dtype for name, tensor in state.items() if name != "ids"} == {getattr(torch, dtype)}
    assert FilterIndex(llama.bfloat16(), chosen, head=HEAD).dtype == "bfloat16"


class Counting(MemoryStore):
    def __init__(self):
        super().__init__()
        self.written, self.dropped = [], []

    def put(self, key, state):
        self.written.append(key)
        super().put(key, state)

    def drop(self, keys):
        keys = list(keys)
        self.dropped += keys
        super().drop(keys)


def test_adding_changing_and_removing_touch_the_documents_own_chunks(llama):
    store = Counting()
    index = FilterIndex(llama, GemFilter(3, keep=30, **CUT), store)
    for name, ids in DOCUMENTS.items():
        index.add(name, ids)
    first = {name: set(store.documents()[name]["chunks"]) for name in DOCUMENTS}
    assert index.add("long", DOCUMENTS["long"]).read == 0
    store.written.clear()
    changed = [*DOCUMENTS["long"][:-1], 5]
    took = index.add("long", changed)
    assert (took.read, took.reused) == (1, len(first["long"]) - 1)
    assert set(store.dropped) == first["long"] - set(store.documents()["long"]["chunks"])
    index.add("copy", DOCUMENTS["short"])
    index.remove("short")
    assert first["short"].isdisjoint(store.dropped), "the copy still has them"
    index.remove("copy")
    assert first["short"] <= set(store.dropped)
    assert set(index.documents) == {"long", "middle"}
    made = index.update({"middle": DOCUMENTS["middle"], "new": DOCUMENTS["short"]})
    assert (made.read, made.removed) == (1, 1)
    fresh = FilterIndex(llama, GemFilter(3, keep=30, **CUT))
    fresh.update({"middle": DOCUMENTS["middle"], "new": DOCUMENTS["short"]})
    assert fresh.select(TAIL).kept == index.select(TAIL).kept


@pytest.mark.parametrize("more", [1, 5, 20, 33])
def test_of_a_document_that_grew_the_last_chunks_are_read(llama, more):
    index = FilterIndex(llama, GemFilter(3, keep=30, **CUT))
    index.add("log", tokens(1000, 6))
    took = index.add("log", tokens(1000, 6) + tokens(more, 7))
    assert took.read <= 2
    assert took.reused >= 30
    fresh = FilterIndex(llama, GemFilter(3, keep=30, **CUT))
    fresh.add("log", tokens(1000, 6) + tokens(more, 7))
    assert fresh.select(TAIL).kept == index.select(TAIL).kept


def test_a_stored_index_opens_again_and_reads_nothing(llama, tmp_path, monkeypatch):
    chosen = GemFilter(3, keep=30, rule="window", **CUT)
    index = FilterIndex(llama, chosen, FolderStore(tmp_path), head=HEAD)
    for name, ids in DOCUMENTS.items():
        index.add(name, ids, source={"path": name})
    expected = index.select(TAIL)
    monkeypatch.setattr(Reader, "read", None)
    again = FilterIndex(llama.model, replace(chosen, keep=10), FolderStore(tmp_path), head=HEAD)
    assert again.documents == index.documents
    assert again.source("long") == {"path": "long"}
    assert (again.loss, again.continues) == (index.loss, True)
    assert all(again.add(name, ids).read == 0 for name, ids in DOCUMENTS.items())
    assert again.select(TAIL).tokens == 10
    for name in DOCUMENTS:
        assert torch.allclose(again.select(TAIL).scores[name], expected.scores[name])
    assert "documents" in repr(expected)


KILLED = """
import os, sys, torch
sys.path.insert(0, {tests!r})
from conftest import tiny_model
from assay.methods.gemfilter import FilterIndex, FolderStore, GemFilter
class Dies(FolderStore):
    left = 2
    def put(self, key, state):
        if not self.left:
            os.kill(os.getpid(), 9)
        self.left -= 1
        super().put(key, state)
index = FilterIndex(tiny_model(), GemFilter(3, keep=30, chunk=40, overlap=8, chunk_memory=1e-9), Dies({folder!r}))
index.add("long", {ids})
"""


def test_a_killed_index_goes_on_where_it_stopped(llama, tmp_path):
    script = KILLED.format(tests=str(Path(__file__).parents[2]), folder=str(tmp_path), ids=DOCUMENTS["long"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    index = FilterIndex(llama, GemFilter(3, keep=30, chunk=40, overlap=8), FolderStore(tmp_path))
    assert index.documents == {}
    took = index.add("long", DOCUMENTS["long"])
    assert (took.read, took.reused) == (3, 2)


def test_another_model_layer_or_cut_is_refused(llama, make_model, tmp_path):
    chosen = GemFilter(3, keep=30, **CUT)
    FilterIndex(llama, chosen, FolderStore(tmp_path))
    for model, one, head, sentence in (
        (make_model(seed=1), chosen, (), "made with another model"),
        (llama, chosen.at(2), (), "another model|another layer"),
        (llama, replace(chosen, chunk=50), (), r"another chunk \(40, not 50\)"),
        (llama, chosen, HEAD, "another beginning of its chunks"),
    ):
        with pytest.raises(OtherIndex, match=sentence):
            FilterIndex(model, one, FolderStore(tmp_path), head=head)


def test_damage_is_named_and_never_used(llama, tmp_path):
    chosen = GemFilter(3, keep=30, **CUT)
    index = FilterIndex(llama, chosen, FolderStore(tmp_path))
    index.add("long", DOCUMENTS["long"])
    path = sorted(tmp_path.glob("chunks/*/*.safetensors"))[0]
    whole = path.read_bytes()
    for damaged, sentence in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), "does not match its checksum"),
        (whole[: len(whole) // 2], "cannot be read as safetensors"),
        (b"", "cannot be read as safetensors"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DamagedIndex, match=sentence) as caught:
            index.select(TAIL)
        assert caught.value.key == path.stem
    path.unlink()
    with pytest.raises(DamagedIndex, match="is missing from the index"):
        index.select(TAIL)
    assert index.add("long", DOCUMENTS["long"]).read == 1
    assert index.select(TAIL).tokens == 30
    (document,) = tmp_path.glob("documents/*.json")
    document.write_text(document.read_text().replace("150", "151"))
    again = FilterIndex(llama, chosen, FolderStore(tmp_path))
    assert again.documents == {}
    assert again.add("long", DOCUMENTS["long"]).read == 0
    manifest = tmp_path / "manifest.json"
    made = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**made, "settings": {**made["settings"], "layer": 2}}))
    with pytest.raises(DamagedIndex, match=r"manifest.json is damaged: remove"):
        FilterIndex(llama, chosen, FolderStore(tmp_path))


def test_a_full_disk_leaves_nothing_half_written(llama, tmp_path, monkeypatch):
    index = FilterIndex(llama, GemFilter(3, keep=30, **CUT), FolderStore(tmp_path))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write the index in .*: No space left on device"):
        index.add("long", DOCUMENTS["long"])
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".unfinished", ".safetensors")] == []
    assert index.add("long", DOCUMENTS["long"]).read == 5


def test_questions_go_through_batches_of_bounded_memory(llama, monkeypatch):
    sizes, usual = [], Reader.behind
    counted = lambda self, states, *rest: sizes.append(len(states)) or usual(self, states, *rest)  # noqa: E731
    monkeypatch.setattr(Reader, "behind", counted)
    made = []
    for memory in (1.0, 1e-9):
        index = FilterIndex(llama, GemFilter(3, keep=30, **CUT, chunk_memory=memory))
        for name, ids in DOCUMENTS.items():
            index.add(name, ids)
        made.append(index.select(TAIL).kept)
    assert sizes == [1, 8, *[1] * 9]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda model: FilterIndex(model, GemFilter("auto")), "needs a filter with a layer"),
        (lambda model: FilterIndex(model, GemFilter(9)), "layer must lie between 0 and 4"),
        (lambda model: FilterIndex(model, GemFilter(2, row="middle")), "row='last' only"),
        (lambda model: FilterIndex(model, GemFilter(2), dtype="int8"), "dtype must be one of"),
        (lambda model: FilterIndex(model, GemFilter(2)).add("x", []), "x has no tokens"),
        (lambda model: FilterIndex(model, GemFilter(2)).select(TAIL), "the index is empty"),
        (lambda model: FilterIndex(model, GemFilter(2)).select(TAIL, among=["x"]), "has no document 'x'"),
        (lambda model: FilterIndex(model, GemFilter(2, rule="window")).select([]), "the question is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(llama, act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act(llama)
