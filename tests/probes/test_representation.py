from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from assay.probes import fit_head, representation_probe, snapshot


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from threads and lose much on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def threshold_data(n: int = 400, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two coordinates of noise and one that carries the label, with a margin."""
    inputs = torch.randn(n, 3, generator=generator(seed), dtype=torch.float64)
    labels = (inputs[:, 0] > 0).long()
    inputs[:, 0] += 0.5 * (2 * labels - 1)
    return inputs, labels


def accuracy(head_labels: Tensor, labels: Tensor) -> float:
    return float((head_labels == labels).double().mean())


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("names", [[0, 1], [-1, 1], [3, 8]])
def test_head_separates_what_is_separable_under_any_label_names(loss: str, names: list[int]) -> None:
    inputs, labels = threshold_data()
    labels = torch.tensor(names)[labels]
    head = fit_head(inputs, labels, loss=loss)
    assert head.classes.tolist() == names
    assert accuracy(head.predict(inputs), labels) > 0.99


def test_penalised_logistic_head_meets_its_optimality_condition() -> None:
    inputs, labels = threshold_data(100)
    head = fit_head(inputs, labels, scaling="raw", penalty=0.05)
    probabilities = head.scores(inputs).softmax(dim=1)
    residual = probabilities - torch.nn.functional.one_hot(labels, 2)
    torch.testing.assert_close(residual.T @ inputs / 100, -2 * 0.05 * head.weight, rtol=0, atol=1e-6)


def test_head_is_deterministic_and_several_classes_work() -> None:
    inputs = torch.randn(300, 4, generator=generator())
    labels = inputs.argmax(dim=1)
    first, second = fit_head(inputs, labels), fit_head(inputs, labels)
    assert torch.equal(first.weight, second.weight)
    assert accuracy(first.predict(inputs), labels) > 0.95
    with torch.no_grad():  # a caller's no_grad must not stop the head from training
        assert torch.equal(fit_head(inputs, labels).weight, first.weight)


def test_only_the_raw_head_is_fooled_by_scale() -> None:
    inputs, labels = threshold_data()
    data = (inputs, labels)

    def tiny(values: Tensor) -> Tensor:
        """A signal of size 1e-9 on top of a constant, as after a first step with a tiny learning rate."""
        return 0.04 + 1e-9 * values

    scores = {score.scaling: score for score in representation_probe({1: tiny}, data, data)}
    assert scores["raw"].balanced_accuracy < 0.6
    assert scores["rescaled"].accuracy > 0.99
    assert scores["standardized"].accuracy > 0.99


def test_spread_at_rounding_level_is_not_blown_up() -> None:
    inputs, labels = threshold_data()
    rounded = (0.04 + 1e-9 * inputs).float()
    for scaling in ("rescaled", "standardized"):
        head = fit_head(rounded, labels, scaling=scaling)
        assert bool((head.scale == 1).all())
    mixed = torch.cat([inputs, torch.full((len(inputs), 1), 7.0)], dim=1)
    assert float(fit_head(mixed, labels).scale[3]) == 1.0


def test_probe_reports_majority_and_balanced_accuracy() -> None:
    labels = torch.tensor([0] * 90 + [1] * 10)
    constant = torch.ones(100, 2)
    data = (constant, labels)
    (score,) = representation_probe({"start": lambda inputs: inputs}, data, data, scalings=["raw"])
    assert score.snapshot == "start"
    assert score.accuracy == pytest.approx(0.9)
    assert score.majority == pytest.approx(0.9)
    assert score.balanced_accuracy == pytest.approx(0.5)
    assert score.tested == 100
    assert score.interval().low < 0.9 < score.interval().high


def test_snapshot_is_frozen_and_leaves_the_model_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 2))
    inputs = torch.randn(7, 3, generator=generator())
    hidden, output = snapshot(model, "1", batch_size=3), snapshot(model)
    before = hidden(inputs)
    torch.testing.assert_close(before, model[1](model[0](inputs)).detach())
    assert output(inputs).shape == (7, 2)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not model[1]._forward_hooks
    with torch.no_grad():
        model[0].weight.zero_()
    assert torch.equal(hidden(inputs), before)
    with pytest.raises(ValueError, match="no layer '9'; it has 0, 1, 2, 3"):
        snapshot(model, "9")


def test_a_snapshot_sees_the_layer_before_an_activation_that_works_in_place() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True))
    inputs = torch.randn(50, 3, generator=generator())
    found = snapshot(model, "0")(inputs)
    torch.testing.assert_close(found, model[0](inputs).detach())
    assert found.min() < 0


def test_a_snapshot_reads_the_outputs_of_transformers() -> None:
    class Wrapped(nn.Module):
        def __init__(self, wrap: Callable[[Tensor], object]) -> None:
            super().__init__()
            self.layer, self.wrap = nn.Linear(3, 2), wrap

        def forward(self, inputs: Tensor) -> object:
            return self.wrap(self.layer(inputs))

    inputs = torch.randn(4, 3, generator=generator())
    output = Wrapped(lambda hidden: SimpleNamespace(last_hidden_state=hidden))
    assert torch.equal(snapshot(output)(inputs), snapshot(output, "layer")(inputs))


def test_bad_requests_are_refused() -> None:
    inputs, labels = threshold_data(20)
    for arguments, reason in (
        ({"scaling": "whitened"}, "scaling must be one of"),
        ({"loss": "square"}, "loss must be one of"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"penalty": -1.0}, "penalty must be at least 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            fit_head(inputs, labels, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two classes"):
        fit_head(inputs, torch.zeros(20))
    with pytest.raises(ValueError, match="labels must be 20"):
        fit_head(inputs, labels[:3])
    with pytest.raises(ValueError, match="finite"):
        fit_head(inputs / 0, labels)
