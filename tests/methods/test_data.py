from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from assay.methods._data import Labelled, as_targets, batches_of, labelled, rows_of, size_of, split_batch, whole_set

CPU = torch.device("cpu")
INPUTS, LABELS = torch.arange(20.0).reshape(10, 2), torch.arange(10) % 3


def kinds():
    yield "pair", (INPUTS, LABELS), None
    yield "apart", INPUTS, LABELS
    yield "arrays", INPUTS.double().numpy(), LABELS.numpy().astype(np.uint8)
    yield "mapping", {"x": INPUTS, "labels": LABELS}, None
    yield "loader", DataLoader(TensorDataset(INPUTS, LABELS), batch_size=4), None
    yield "list of mappings", [{"x": INPUTS[:5], "label": LABELS[:5]}, {"x": INPUTS[5:], "label": LABELS[5:]}], None
    yield "generator", ((INPUTS[i : i + 2], LABELS[i : i + 2]) for i in range(0, 10, 2)), None


@pytest.mark.parametrize(("data", "targets"), [kind[1:] for kind in kinds()], ids=[kind[0] for kind in kinds()])
def test_every_kind_gives_the_same_samples_each_time(data, targets):
    found = Labelled(data, targets, size=3, device=CPU)
    for _ in range(2):
        batches = list(found)
        inputs = torch.cat([batch["x"] if isinstance(batch, dict) else batch for batch, _ in batches])
        torch.testing.assert_close(inputs, INPUTS)
        assert torch.equal(torch.cat([labels for _, labels in batches]), LABELS)
        assert max(len(labels) for _, labels in batches) <= 3
    assert torch.equal(found.targets(), LABELS)


def test_a_limit_is_kept_over_batches():
    found = Labelled([(INPUTS[:4], LABELS[:4]), (INPUTS[4:], LABELS[4:])], size=3, device=CPU, limit=6)
    assert sum(len(labels) for _, labels in found) == 6
    assert len(found.targets()) == 6


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_empty_batch_ends_no_pass(place):
    batches = [(INPUTS[:4], LABELS[:4]), (INPUTS[4:], LABELS[4:])]
    batches.insert(place, (INPUTS[:0], LABELS[:0]))
    for limit, samples in ((None, 10), (6, 6)):
        found = Labelled(batches, size=3, device=CPU, limit=limit)
        assert torch.equal(torch.cat([labels for _, labels in found]), LABELS[:samples])
        assert torch.equal(found.targets(), LABELS[:samples])
    assert torch.equal(whole_set(batches, "train", CPU)[1], LABELS)
    with pytest.raises(ValueError, match="test holds no sample"):
        whole_set((INPUTS[:0], LABELS[:0]), "test", CPU)


def test_labels_of_every_kind():
    for kind in (torch.int8, torch.int32, torch.uint8, torch.bool):
        assert as_targets(LABELS.clamp(max=1).to(kind)).dtype == torch.int64
    assert as_targets([0, 1, 1]).dtype == torch.int64
    assert as_targets(np.array([0.5, 1.0])).dtype == torch.get_default_dtype()
    with pytest.raises(ValueError, match="complex"):
        as_targets(torch.tensor([1j]))
    for words in (["cat", "dog"], np.array(["cat", "dog"])):
        with pytest.raises(ValueError, match=r"targets must be integers or real numbers, and these are none.*'cat'"):
            as_targets(words)


def test_rows_of_tensors_and_mappings():
    mask = torch.arange(10) < 3
    assert len(rows_of(INPUTS, mask)) == 3
    chosen = rows_of({"x": INPUTS, "name": "kept"}, mask)
    assert (len(chosen["x"]), chosen["name"]) == (3, "kept")


@pytest.mark.parametrize(
    ("sentence", "data", "targets"),
    [
        ("alone has no targets", INPUTS, None),
        ("alone has no targets", 3, None),
        ("10 inputs come with targets", INPUTS, LABELS[:3]),
        ("a mapping needs labels", {"x": INPUTS}, None),
        ("a batch is a pair", [(INPUTS, LABELS, LABELS)], None),
        ("hold no sample", [], None),
        ("hold no sample", INPUTS[:0], LABELS[:0]),
        ("the inputs must be finite", INPUTS * torch.nan, LABELS),
        ("the targets must be finite", INPUTS, torch.full((10,), torch.inf)),
    ],
)
def test_refusals(sentence, data, targets):
    with pytest.raises(ValueError, match=sentence):
        list(Labelled(data, targets, size=3, device=CPU))


@pytest.mark.parametrize(("data", "targets"), [kind[1:] for kind in kinds()], ids=[kind[0] for kind in kinds()])
def test_every_kind_is_joined_to_one_set(data, targets):
    inputs, labels = whole_set(data if targets is None else (data, targets), "train", CPU)
    torch.testing.assert_close(inputs["x"] if isinstance(inputs, dict) else inputs, INPUTS)
    assert torch.equal(labels, LABELS)
    with pytest.raises(ValueError, match="train must be"):
        whole_set(INPUTS, "train", CPU)


def test_batches_keep_order_and_texts_stay_texts():
    for data in (INPUTS, {"x": INPUTS}, [INPUTS[:6], INPUTS[6:]], DataLoader(TensorDataset(INPUTS), batch_size=4)):
        batches, labels = batches_of(data, 4)
        assert labels is None
        assert sum(map(size_of, batches)) == 10
    assert batches_of(["a", "b", "c"], 2) == ([["a", "b"], ["c"]], None)
    assert torch.equal(labelled((INPUTS, LABELS.to(torch.int16)), 4, "train")[1], LABELS)
    with pytest.raises(ValueError, match="train must be"):
        labelled(INPUTS, 4, "train")


def test_a_batch_counts_its_samples_and_not_its_keys():
    batch, labels = split_batch(
        {"input_ids": np.ones((5, 3), dtype=int), "attention_mask": np.ones((5, 3)), "label": 1}
    )
    assert size_of(batch) == 5
    assert labels == 1
    with pytest.raises(ValueError, match="one first axis"):
        size_of({"a": INPUTS, "b": INPUTS[:3]})
