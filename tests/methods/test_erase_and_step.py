from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from assay.methods.erase_and_step import EraseAndStep


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 3)).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.5 * normal(*parameter.shape, seed=number))
    return model


INPUTS, LABELS = normal(30, 5), torch.arange(30) % 3
BATCHES = [(INPUTS[:20], LABELS[:20]), (INPUTS[20:], LABELS[20:])]


def autograd_gradients(model: nn.Module) -> dict[str, Tensor]:
    twin = copy.deepcopy(model)
    cross_entropy(twin(INPUTS), LABELS).backward()
    return {name: p.grad for name, p in twin.named_parameters() if p.grad is not None}


def test_weights_become_the_scaled_negative_gradient_of_the_whole_sample() -> None:
    model = network()
    before, gradients = copy.deepcopy(model.state_dict()), autograd_gradients(model)
    (report,) = EraseAndStep(["0"], learning_rate=2.0).apply(model, cross_entropy, BATCHES)
    torch.testing.assert_close(model[0].weight.detach(), -2.0 * gradients["0.weight"])
    assert report.name == "0.weight"
    assert report.norm_before == pytest.approx(float(before["0.weight"].norm()))
    assert report.norm_after == pytest.approx(2 * float(gradients["0.weight"].norm()))
    assert abs(report.cosine) < 1
    assert report.zero_rows == 0
    untouched = [name for name in before if name != "0.weight"]
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in untouched)
    assert all(p.grad is None for p in model.parameters())


def test_forgetting_equals_a_decayed_sgd_step() -> None:
    """Decay 1 / (2 rate) on |w|^2 erases; a smaller decay keeps its share; none is plain gradient descent."""
    rate = 0.5
    for forget in (0.0, 0.25, 1.0):
        model, reference = network(), network()
        EraseAndStep(["3.weight"], learning_rate=rate, forget=forget).apply(model, cross_entropy, BATCHES)
        optimizer = torch.optim.SGD([reference[3].weight], lr=rate, weight_decay=forget / rate)
        cross_entropy(reference(INPUTS), LABELS).backward()
        optimizer.step()
        torch.testing.assert_close(model[3].weight, reference[3].weight)


def test_erasure_is_exact_where_subtraction_would_leave_a_residue() -> None:
    gradient = autograd_gradients(network())["0.weight"]
    model = network().float()
    (report,) = EraseAndStep(["0"], learning_rate=1e-9).apply(model, cross_entropy, [(INPUTS.float(), LABELS)])
    weight = model[0].weight.detach().double()
    assert (weight / weight.norm() * -gradient / gradient.norm()).sum() > 1 - 1e-9
    before = network()[0].weight.detach()
    assert report.cosine == pytest.approx(float((before / before.norm() * -gradient / gradient.norm()).sum()), abs=1e-5)


def test_without_a_rate_norms_are_kept_and_only_directions_change() -> None:
    model = network()
    reports = EraseAndStep(["0", "3"]).apply(model, cross_entropy, BATCHES)
    assert [report.name for report in reports] == ["0.weight", "3.weight"]
    for report in reports:
        assert report.norm_after == pytest.approx(report.norm_before)
        assert report.cosine < 0.9


def test_dead_rows_are_counted() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    with torch.no_grad():
        model[0].bias[1] = -100.0
    (report,) = EraseAndStep(["0"]).apply(model, cross_entropy, BATCHES)
    assert report.zero_rows >= 1


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.lm_head = nn.Linear(4, 5, bias=False)
        self.lm_head.weight = self.embed.weight
        self.input_rmsnorm = nn.RMSNorm(4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lm_head(self.input_rmsnorm(self.embed(tokens)))


WEIGHT_NORMED = nn.utils.parametrizations.weight_norm(nn.Linear(5, 3))


@pytest.mark.parametrize(
    ("model", "layer", "reason"),
    [
        (Tied(), "lm_head", r"tied to embed\.weight"),
        (Tied(), "embed.weight", r"tied to lm_head\.weight"),
        (Tied(), "input_rmsnorm", "normalisation"),
        (network(), "1", "normalisation"),
        (network(), "1.weight", "normalisation"),
        (network(), "0.bias", "trainable"),
        (network(), "", "no weight matrix"),
        (network(), "fc", "no layer 'fc'; it has 0, 1, 2, 3"),
        (WEIGHT_NORMED, "parametrizations.weight.original1", "parametrisation"),
    ],
)
def test_weights_that_must_not_be_erased_are_refused(model: nn.Module, layer: str, reason: str) -> None:
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=reason):
        EraseAndStep([layer]).apply(model, cross_entropy, BATCHES)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_useless_gradient_changes_nothing() -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())

    def no_loss(scores: Tensor, labels: Tensor) -> Tensor:
        return 0 * scores.sum()

    with pytest.raises(ValueError, match=r"gradient of '0\.weight' is zero"):
        EraseAndStep(["0", "3"]).apply(model, no_loss, BATCHES)
    with torch.no_grad():
        zeroed = network()
        zeroed[3].weight.zero_()
    with pytest.raises(ValueError, match="no norm to keep"):
        EraseAndStep(["3"]).apply(zeroed, cross_entropy, BATCHES)
    with pytest.raises(ValueError, match="zero or not finite"):
        EraseAndStep(["0"]).apply(model, cross_entropy, [])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def normalised() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3)).double()


@pytest.mark.parametrize("scale", [1.0, float("nan")])
def test_statistics_of_batch_normalisation_stay_whether_the_step_is_taken_or_refused(scale: float) -> None:
    model = normalised()
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm1d)
    objects, before = [id(b) for b in model.buffers()], [b.clone() for b in model.buffers()]
    step = EraseAndStep(["0"])
    if scale == 1:
        step.apply(model, cross_entropy, BATCHES)
    else:
        with pytest.raises(ValueError, match="not finite"):
            step.apply(model, lambda scores, labels: scale * cross_entropy(scores, labels), BATCHES)
    assert [id(b) for b in model.buffers()] == objects
    assert all(torch.equal(old, new) for old, new in zip(before, model.buffers(), strict=True))
    model(INPUTS)
    assert norm.num_batches_tracked == 1


def test_many_batches_are_summed_in_single_precision_at_least() -> None:
    torch.manual_seed(0)
    inputs, labels = 1 + 0.1 * torch.randn(900, 5), torch.zeros(900, dtype=torch.long)  # every gradient points one way
    batches = list(zip(inputs.bfloat16().split(1), labels.split(1), strict=True))
    model = nn.Linear(5, 3).bfloat16()
    wide = copy.deepcopy(model).float()
    (half,) = EraseAndStep(["weight"], learning_rate=1.0).apply(model, cross_entropy, batches)
    (full,) = EraseAndStep(["weight"], learning_rate=1.0).apply(
        wide, cross_entropy, [(x.float(), y) for x, y in batches]
    )
    assert half.norm_after == pytest.approx(full.norm_after, rel=0.01)
    torch.testing.assert_close(model.weight.float(), wide.weight, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"layers": []}, "list of at least one"),
        ({"layers": "0"}, "list of at least one"),
        ({"layers": ["0"], "learning_rate": 0.0}, "must be positive"),
        ({"layers": ["0"], "learning_rate": 1.0, "forget": 1.5}, r"forget must lie in \[0, 1\]"),
        ({"layers": ["0"], "forget": 0.5}, "give a learning_rate"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        EraseAndStep(**arguments)  # type: ignore[arg-type]


class Named(nn.Module):
    """The same network for mappings, with a record for an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x: Tensor, mask: Tensor, extra: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.inner(x))


def test_batches_count_by_their_samples_in_every_form() -> None:
    expected, loaded, named = network(), network(), Named()
    EraseAndStep(["0"], learning_rate=2.0).apply(expected, cross_entropy, BATCHES)
    loader = DataLoader(TensorDataset(INPUTS, LABELS.int()), batch_size=7)
    EraseAndStep(["0"], learning_rate=2.0).apply(loaded, cross_entropy, loader)
    batches = [{"x": x, "mask": x, "extra": x, "labels": y.to(torch.int16)} for x, y in BATCHES]
    EraseAndStep(["inner.0"], learning_rate=2.0).apply(named, cross_entropy, batches)
    torch.testing.assert_close(loaded[0].weight, expected[0].weight)
    torch.testing.assert_close(named.inner[0].weight, expected[0].weight)
