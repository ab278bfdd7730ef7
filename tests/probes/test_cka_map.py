"""The heat map: every cell is linear_cka of the features that the names stand for."""

import itertools
import json
import sys

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.probes import cka_map, linear_cka
from assay.probes.cka import gram_of, hsic_table


@pytest.fixture
def data():
    return torch.randn(64, 6, generator=torch.Generator().manual_seed(0))


def net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(12, 4))


@pytest.mark.parametrize("unbiased", [True, False])
def test_layers_against_the_layers_of_another_model(data, unbiased):
    one, other = net(0), net(1)
    found = cka_map(one, data, columns=other, layers=["0", "3"], unbiased=unbiased, batch_size=64)
    one.eval(), other.eval()
    assert found.rows == found.columns == ("0", "3")
    assert found["0", "3"] == pytest.approx(linear_cka(one[0](data).detach(), other(data).detach(), unbiased=unbiased))
    # The layer's own output, though the next one writes over it.
    assert found["0", "0"] == pytest.approx(
        linear_cka(one[0](data).detach(), other[0](data).detach(), unbiased=unbiased)
    )


def test_all_blocks_by_default_and_one_on_the_diagonal(data):
    found = cka_map(net(0), data)
    assert found.rows == ("0", "1", "2", "3")
    torch.testing.assert_close(found.values.diagonal(), torch.ones(4, dtype=torch.double))
    torch.testing.assert_close(found.values, found.values.T)


def test_one_layer_goes_by_its_name():
    model = nn.ModuleDict({"body": nn.Linear(6, 4)})
    model.forward = lambda inputs: model["body"](inputs)
    assert cka_map(model, torch.randn(8, 6), layers="body").rows == ("body",)


def test_models_functions_and_features_by_name(data):
    models = {"a": net(0), "b": net(1), "pixels": lambda inputs: inputs}
    found = cka_map(models, data)
    read = {"a": models["a"].eval()(data).detach(), "b": models["b"].eval()(data).detach(), "pixels": data}
    assert found["b", "pixels"] == pytest.approx(linear_cka(read["b"], data, unbiased=True))
    given = cka_map(read)
    torch.testing.assert_close(given.values, found.values)
    assert cka_map(read, unbiased=False)["a", "b"] == pytest.approx(linear_cka(read["a"], read["b"]))


def test_mini_batches_estimate_the_same_number(data):
    wide = torch.randn(2000, 6, generator=torch.Generator().manual_seed(3))
    whole, parts = (cka_map(net(0), wide, batch_size=size).values for size in (2000, 100))
    assert (whole - parts).abs().max() < 0.02
    labels = torch.zeros(2000)
    loader = DataLoader(TensorDataset(wide, labels), batch_size=100)
    torch.testing.assert_close(cka_map(net(0), loader).values, parts)
    assert cka_map(net(0), wide[:203], batch_size=100).samples == 200  # three rows have no unbiased estimate


def hsic(x, y):
    """Unbiased, by sums over four different samples: the mean of K_ij (L_ij + L_qr − 2 L_iq)."""
    k, l, n = x @ x.T, y @ y.T, len(x)
    terms = [k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]) for i, j, q, r in itertools.permutations(range(n), 4)]
    return sum(terms) / len(terms)


def test_a_mini_batch_counts_by_its_samples():
    x = torch.randn(13, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    y = x @ torch.tensor([[1.0, 0.3], [0.2, -1.0]], dtype=torch.double) + x.flip(0)
    parts = list(zip(x.split(8), y.split(8), strict=True))  # 8 and 5
    mean = lambda pick: sum(len(part[0]) * hsic(*pick(*part)) for part in parts) / 13  # noqa: E731
    own = mean(lambda a, _: (a, a)) * mean(lambda _, b: (b, b))
    found = cka_map({"x": x, "y": y}, batch_size=8)["x", "y"]
    assert found == pytest.approx(float(mean(lambda a, b: (a, b)) / own.sqrt()), abs=1e-9)


def test_equal_mini_batches_are_averaged_as_they_are(data):
    """The sums of their tables, to the last bit."""
    features = [net(0).eval()[:2](data).detach(), data]
    parts = zip(*(each.split(16) for each in features), strict=True)
    tables = [hsic_table(*([[gram_of(each) for each in part]] * 2), True) for part in parts]
    found = cka_map({"a": features[0], "b": features[1]}, batch_size=16).values
    assert torch.equal(found, sum(tables[1:], start=tables[0]).ratio())


def test_tokens_and_their_padding():
    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Embedding(9, 4), nn.Linear(4, 4)])

        def forward(self, input_ids, attention_mask):
            return (self.layers[1](self.layers[0](input_ids)),)

    generator = torch.Generator().manual_seed(0)
    batch = {"input_ids": torch.randint(9, (12, 5), generator=generator), "attention_mask": torch.ones(12, 5).long()}
    batch["attention_mask"][:, 3:] = 0
    torch.manual_seed(0)
    model = Text()
    found = cka_map(model, batch)
    assert found.rows == ("layers.0", "layers.1")
    words = model.layers[0](batch["input_ids"])[:, :3]
    expected = linear_cka(words.mean(1).detach(), model.layers[1](words).mean(1).detach(), unbiased=True)
    assert found["layers.0", "layers.1"] == pytest.approx(expected)


def test_the_model_is_as_it_was_also_after_an_error(data):
    model = net(0)
    model[2].eval()
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    cka_map(model, data)
    with pytest.raises(RuntimeError):
        cka_map(model, data[:, :3])
    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(weight.grad is None for weight in model.parameters())


def test_the_report_is_read_saved_and_drawn(data, tmp_path, monkeypatch):
    found = cka_map(net(0), data, layers=["0", "3"])
    assert "unbiased linear CKA over 64 samples" in repr(found)
    assert found.table()[1] == {"row": "0", "column": "3", "cka": found["0", "3"]}
    assert json.loads(found.save(tmp_path / "map.json").read_text()) == found.to_dict()
    pytest.importorskip("altair")
    assert found.figure().to_dict()["layer"]
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match="a figure needs the extra 'lab'"):
        found.figure()


def test_refusals(data):
    for wrong, message in (
        (lambda: cka_map(net(0), data, layers=["9"]), "no layer '9'"),
        (lambda: cka_map({"a": data, "b": net(0)}, data), "not both"),
        (lambda: cka_map({"a": net(0)}), "every representation must be a tensor"),
        (lambda: cka_map({"a": data, "b": data[:3]}), "of the same samples"),
        (lambda: cka_map(net(0), data[:3]), "four samples"),
        (lambda: cka_map({}, data), "nothing to compare"),
        (lambda: cka_map(data), "a model or a mapping .* not a Tensor"),
        (lambda: cka_map([net(0), net(1)], data), "a model or a mapping .* not a list"),
        (lambda: cka_map({"a": data}, batch_size=0), "batch_size must be at least 1"),
        (
            lambda: cka_map({"a": lambda x: x, "b": lambda x: x[:5]}, data),
            r"same samples, and there are \[5, 64\] rows",
        ),
        (lambda: cka_map({"a": data})["a", "b"], "no 'b' in the map; there are a"),
        (lambda: cka_map(net(0), data / 0), "must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
