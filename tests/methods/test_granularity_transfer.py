from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay.methods.granularity import FineToCoarse, LabelHierarchy, Stage, fine_to_coarse, swap_head
from assay.methods.granularity.readout import strictly_right


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


QUICK = FineToCoarse(Stage(4, 32, 0.3), rates=(0.5, 1.0))


def problem(n: int = 160) -> tuple[torch.Tensor, LabelHierarchy, tuple, tuple]:
    """The coarse class is a parity of two signs; the fine one is the pair of signs."""
    signs = torch.where(torch.rand(3 * n, 6, generator=generator(7)) < 0.5, -1.0, 1.0)
    fine = ((signs[:, 0] > 0) * 2 + (signs[:, 1] > 0)).long()
    coarse = torch.tensor([0, 1, 1, 0])[fine]
    parts = [(signs[i * n : (i + 1) * n], coarse[i * n : (i + 1) * n]) for i in range(3)]
    return parts[0][0], LabelHierarchy("signs", fine[:n], parts[0][1], aligned=True), parts[1], parts[2]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


@pytest.mark.parametrize("readout", ["finetune", "probe", "max"])
def test_transfer_on_tensors_data_sets_and_loaders(readout):
    inputs, hierarchy, validation, test = problem()
    model = small_model()
    before = copy.deepcopy(model.state_dict())
    method = FineToCoarse(Stage(4, 32, 0.3), readout=readout, rates=(0.5, 1.0))
    given = {"validation": validation, "test": test, "seed": 3}
    report = method.run(model, inputs, hierarchy, **given)
    assert report.fine.accuracy > 0.9
    assert 0 <= report.onepass.accuracy <= 1
    assert report.gain == report.fine.accuracy - report.retrain.accuracy
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    dataset = TensorDataset(inputs, torch.full((len(inputs),), 99))  # its own labels are not looked at
    for data in (dataset, DataLoader(dataset, batch_size=7)):
        again = method.transfer(model, data, hierarchy, **given)
        assert again.accuracy > 0.9
    assert method.transfer(model, inputs, hierarchy, **given) == report.fine


def test_seeds_give_the_gain_an_interval():
    inputs, hierarchy, validation, test = problem()
    given = {"validation": validation, "test": test}
    report = QUICK.run(small_model(), inputs, hierarchy, seeds=3, **given)
    alone = [QUICK.run(small_model(), inputs, hierarchy, seed=seed, **given) for seed in range(3)]
    assert report.fine.accuracies == tuple(each.fine.accuracy for each in alone)
    assert report.gain == pytest.approx(sum(each.gain for each in alone) / 3)
    assert report.interval().count == 3
    assert report.advice in ("fine labels help", "fine labels harm", "undecided")
    assert report.advice in report.headline()
    assert {"low", "high"} <= set(report.table()[0])
    assert alone[0].advice == "undecided"
    assert "one seed decides nothing" in alone[0].headline()
    with pytest.raises(ValueError, match="give seed= for one"):
        QUICK.run(small_model(), inputs, hierarchy, **given)


def test_retraining_is_the_transfer_with_coarse_labels():
    inputs, hierarchy, validation, test = problem()
    coarse = LabelHierarchy("coarse", hierarchy.coarse, hierarchy.coarse)
    given = {"validation": validation, "test": test, "seed": 3}
    assert (
        QUICK.transfer(small_model(), inputs, coarse, **given)
        == QUICK.run(small_model(), inputs, hierarchy, **given).retrain
    )
    report = fine_to_coarse(small_model(), inputs, hierarchy.fine, hierarchy.coarse, pretrain=Stage(1, 64), **given)
    assert set(report.fine.validation) == {0.05 / 4 * m for m in (0.25, 1.0, 4.0)}
    assert report.fine.rate in report.fine.validation


class Undecided(nn.Module):
    """Every fine class gets the same logit."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 0 * self.head(inputs)


def test_ties_under_the_maximum_are_errors():
    inputs, hierarchy, validation, test = problem(60)
    method = FineToCoarse(Stage(1, 32), readout="max")
    score = method.transfer(Undecided(), inputs, hierarchy, validation=validation, test=test, seed=0)
    assert score.accuracy == 0
    scores = torch.tensor([[1.0, 1.0], [2.0, 1.0], [math.nan, 0.0], [0.0, -math.inf], [2.0, 1.0]])
    assert strictly_right(scores, torch.tensor([0, 0, 0, 1, 2])).tolist() == [False, True, False, False, False]


def test_with_the_maximum_retraining_has_one_stage_as_well():
    inputs, hierarchy, validation, test = problem()
    given = {"validation": validation, "test": test, "seed": 3}
    method = FineToCoarse(Stage(4, 32, 0.3), readout="max", rates=(0.5, 1.0))
    report = method.run(small_model(), inputs, hierarchy, **given)
    once = method.pretrained(small_model(), inputs, hierarchy.coarse, seed=3)
    assert report.retrain.accuracy == float((once(test[0]).argmax(-1) == test[1]).double().mean())
    assert (report.fine.rate, report.retrain.rate) == (None, None)
    assert set(report.onepass.validation) == {0.15, 0.3}


def test_a_probe_searches_around_its_own_penalty():
    inputs, hierarchy, validation, test = problem(60)
    method = FineToCoarse(Stage(1, 32, 0.3), readout="probe", rates=(0.5, 1.0))
    score = method.transfer(small_model(), inputs, hierarchy, validation=validation, test=test, seed=0)
    assert set(score.validation) == {5e-5, 1e-4}


def test_the_finetuning_stage_takes_a_quarter_by_default():
    assert (QUICK.last.batch, QUICK.last.rate, QUICK.last.epochs) == (8, 0.075, 4)
    own = Stage(2, 5, 0.01)
    assert FineToCoarse(finetune=own).last is own
    shares = [Stage(warmup=0.2).share(step, 10) for step in range(10)]
    assert shares[:3] == [0.5, 1.0, 1.0]
    assert shares == [*shares[:2], *sorted(shares[2:], reverse=True)]


class Encoder(nn.Module):
    """A model as Hugging Face's: keyword inputs, a record with logits, the number of labels kept in its config."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_labels=2)
        self.num_labels = 2
        self.body = nn.Linear(6, 8)
        self.classifier = nn.Linear(8, 2)
        self.unused = nn.Linear(3, 3)

    def forward(self, features: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.classifier(torch.relu(self.body(features))))


def test_models_with_keyword_inputs_and_records():
    inputs, hierarchy, validation, test = problem(60)
    rows = [[{"features": x, "labels": 0} for x in part] for part in (inputs, validation[0], test[0])]
    method = FineToCoarse(Stage(2, 16, 0.1), rates=(1.0,))
    score = method.transfer(
        Encoder(), rows[0], hierarchy, validation=(rows[1], validation[1]), test=(rows[2], test[1]), seed=0
    )
    assert 0 <= score.accuracy <= 1
    assert method.features(Encoder(), rows[0]).shape == (60, 8)
    swapped = swap_head(Encoder(), 7, generator=generator())
    assert (swapped.classifier.out_features, swapped.config.num_labels, swapped.num_labels) == (7, 7, 7)
    assert swapped.unused.out_features == 3


def test_transfer_refuses():
    inputs, hierarchy, validation, test = problem(60)
    given = {"validation": validation, "test": test, "seed": 0}
    with pytest.raises(ValueError, match="60 labels"):
        QUICK.run(small_model(), inputs[:50], hierarchy, **given)
    with pytest.raises(ValueError, match="map-style"):
        QUICK.run(small_model(), iter([1]), hierarchy, **given)
    with pytest.raises(ValueError, match="readout must be one of"):
        FineToCoarse(readout="mean")
    with pytest.raises(ValueError, match="rates must be positive"):
        FineToCoarse(rates=())
    with pytest.raises(ValueError, match="precision"):
        FineToCoarse(precision="half")
    with pytest.raises(ValueError, match="epochs"):
        Stage(0)
    with pytest.raises(ValueError, match="no linear layer 'top'"):
        swap_head(small_model(), 3, generator=generator(), head="top")
    with pytest.raises(ValueError, match="no linear layer that"):
        swap_head(nn.ReLU(), 3, generator=generator())
    for data in (Stream(), DataLoader(Stream(), batch_size=4)):
        with pytest.raises(ValueError, match="a place for every label, not Stream"):
            QUICK.run(small_model(), data, hierarchy, **given)
        with pytest.raises(ValueError, match="a place for every label, not Stream"):
            QUICK.features(small_model(), data)


class Stream(IterableDataset):
    def __iter__(self):
        yield from problem(60)[0]


def test_labels_may_be_of_any_integer_type():
    inputs, hierarchy, validation, test = problem(60)
    given = {"pretrain": Stage(1, 32, 0.3), "rates": (1.0,), "seed": 0}
    wide = fine_to_coarse(
        small_model(), inputs, hierarchy.fine, hierarchy.coarse, validation=validation, test=test, **given
    )
    narrow = fine_to_coarse(
        small_model(),
        inputs,
        hierarchy.fine.to(torch.uint8),
        hierarchy.coarse.bool(),
        **given,
        validation=(validation[0], validation[1].bool()),
        test=(test[0], test[1].to(torch.uint8)),
    )
    assert narrow == wide


def test_a_stage_that_diverges_is_named():
    inputs, hierarchy, validation, test = problem(60)
    given = {"validation": validation, "test": test, "seed": 0}
    wild = Stage(2, 16, 1e30)
    for readout in ("finetune", "probe", "max"):
        with pytest.raises(ValueError, match="pretraining diverged"):
            FineToCoarse(wild, readout=readout).run(small_model(), inputs, hierarchy, **given)
    with pytest.raises(ValueError, match="finetuning diverged"):
        FineToCoarse(Stage(1, 16), finetune=wild).transfer(small_model(), inputs, hierarchy, **given)
    with pytest.raises(ValueError, match="one pass diverged"):
        FineToCoarse(wild).onepass(small_model(), inputs, hierarchy, **given)
    with pytest.raises(ValueError, match="inputs that are not finite"):
        QUICK.run(small_model(), torch.full_like(inputs, math.nan), hierarchy, **given)


def test_a_rate_that_diverges_is_recorded_and_not_chosen():
    inputs, hierarchy, validation, test = problem(60)
    method = FineToCoarse(Stage(2, 16, 0.1), rates=(1.0, 1e31))
    score = method.onepass(small_model(), inputs, hierarchy, validation=validation, test=test, seed=0)
    assert score.rate == 0.1
    assert math.isnan(score.validation[1e30])
    alone = FineToCoarse(Stage(2, 16, 0.1), rates=(1.0,))
    assert (
        alone.onepass(small_model(), inputs, hierarchy, validation=validation, test=test, seed=0).accuracy
        == score.accuracy
    )


@pytest.mark.parametrize("readout", ["finetune", "probe", "max"])
def test_inputs_that_are_not_numbers_are_no_mistakes_of_the_model(readout):
    inputs, hierarchy, validation, test = problem(60)
    broken = test[0].clone()
    broken[5, 2] = math.nan
    method = FineToCoarse(Stage(1, 16), readout=readout, rates=(1.0,))
    with pytest.raises(ValueError, match=r"NaN|not finite"):
        method.transfer(small_model(), inputs, hierarchy, validation=validation, test=(broken, test[1]), seed=0)


def normalised_model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 2))


def test_every_module_keeps_its_mode():
    inputs, *_ = problem(60)
    model = normalised_model().train()
    model[1].eval()  # frozen on purpose
    before = [module.training for module in model.modules()]
    QUICK.features(model, inputs)
    assert [module.training for module in model.modules()] == before
    model[2].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        QUICK.features(model, inputs)
    assert [module.training for module in model.modules()] == before
    assert not model[4]._forward_pre_hooks


@pytest.mark.parametrize("readout", ["finetune", "probe", "max"])
def test_the_seed_decides_alone_and_torchs_generator_is_left_alone(readout):
    inputs, hierarchy, validation, test = problem(60)
    method, model = FineToCoarse(Stage(2, 16, 0.1), readout=readout, rates=(1.0,)), normalised_model(dropout=0.5)
    rows = list(inputs)
    found = []
    for state in (1, 2):
        torch.manual_seed(state)
        before = torch.random.get_rng_state()
        for data in (inputs, rows):
            weights = method.pretrained(model, data, hierarchy.fine, seed=3).state_dict()
            report = method.run(
                model, data, hierarchy, validation=(list(validation[0]), validation[1]), test=test, seed=3
            )
            found.append((report, weights))
            method.features(model, data)
        assert torch.equal(torch.random.get_rng_state(), before)
    for one, other in (found[::2], found[1::2]):
        assert one[0] == other[0]
        assert all(torch.equal(one[1][name], other[1][name]) for name in one[1])
    other_seed = method.pretrained(model, inputs, hierarchy.fine, seed=4).state_dict()
    assert not torch.equal(other_seed["0.weight"], found[0][1]["0.weight"])


@pytest.mark.parametrize("kind", [torch.stack, list])
def test_a_last_sample_is_not_left_alone_with_batch_normalisation(kind):
    inputs, hierarchy, validation, test = problem(61)
    model = normalised_model()
    sizes = []
    model[1].register_forward_hook(lambda module, _, out: sizes.append(len(out)) if module.training else None)
    data = kind(list(inputs))
    for batch, expected in ((60, [61]), (20, [20, 20, 21]), (59, [59, 2])):
        sizes.clear()
        score = FineToCoarse(Stage(2, batch), rates=(1.0,)).onepass(
            model, data, hierarchy, validation=validation, test=test, seed=0
        )
        assert 0 <= score.accuracy <= 1
        assert sizes == 2 * expected


class Named(nn.Module):
    """A hidden layer has a name that heads often have."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 16)
        self.out = nn.Linear(16, 2)
        self.last = last

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits = self.out(torch.relu(self.fc(inputs)))
        return logits.log_softmax(-1) if self.last == "softmax" else logits


@pytest.mark.parametrize("last", ["linear", "softmax"])
def test_the_head_is_the_layer_that_makes_the_logits(last):
    inputs, hierarchy, *_ = problem(60)
    for data in (inputs, list(inputs)):
        trained = FineToCoarse(Stage(1, 16)).pretrained(Named(last).eval(), data, hierarchy.fine, seed=0)
        assert (trained.fc.out_features, trained.out.out_features) == (16, 4)
        assert not trained.fc._forward_hooks
        assert QUICK.features(Named(last), data).shape == (60, 16)
    chosen = FineToCoarse(Stage(1, 16), head="fc").features(Named(last), inputs)
    assert torch.equal(chosen, inputs)
