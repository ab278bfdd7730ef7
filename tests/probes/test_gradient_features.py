from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from assay.probes.gradient_features import gradient_features


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


DIM, UNITS = 24, 96


def axes_data(n: int = 1500, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Four components ±6 e_0 (label 1) and ±6 e_1 (label −1) with unit noise: no linear rule, two features."""
    draws = generator(seed)
    component = torch.randint(4, (n,), generator=draws)
    centres = 6 * torch.cat([torch.eye(DIM)[:2], -torch.eye(DIM)[:2]])
    return centres[component] + torch.randn(n, DIM, generator=draws), torch.where(component % 2 == 0, 1, -1)


def network(outputs: int = 1, seed: int = 1) -> nn.Sequential:
    """A first layer whose neurons see one component each: the features are those of theory."""
    model = nn.Sequential(nn.Linear(DIM, UNITS), nn.ReLU(), nn.Linear(UNITS, outputs))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=generator(seed + number)))
        model[0].bias.fill_(-7.0)
    return model


def simplified_gradient(model: nn.Sequential, inputs: Tensor, residual: Tensor) -> Tensor:
    """G_i = mean of residual · input · 1{active}, sample by sample."""
    active = (model[0](inputs) > 0).to(inputs)
    return torch.stack([(residual * active[:, i]) @ inputs / len(inputs) for i in range(UNITS)]).detach()


def test_rows_are_the_simplified_gradient_whatever_the_outgoing_weights():
    model, (inputs, labels) = network(), axes_data()
    found = gradient_features(model, "0", inputs, labels)
    expected = simplified_gradient(model, inputs, labels.float()) * model[2].weight.detach().sign().T
    torch.testing.assert_close(found.gradients, expected, atol=1e-5, rtol=1e-4)


def test_rows_are_autograds_gradient_of_the_loss_at_zero_output():
    # With the output layer at zero output (paired units) the hinge, logistic and squared losses all send ±1 · const.
    model, (inputs, labels) = network(), axes_data(300)
    with torch.no_grad():
        model[2].bias.zero_()
        for parameter in (model[0].weight, model[0].bias):
            parameter[UNITS // 2 :] = parameter[: UNITS // 2]
        model[2].weight[:, UNITS // 2 :] = -model[2].weight[:, : UNITS // 2]
    outputs = model(inputs).squeeze(1)
    assert float(outputs.detach().abs().max()) < 1e-4
    loss = nn.functional.softplus(-labels * outputs).mean()
    (gradient,) = torch.autograd.grad(loss, [model[0].weight])
    found = gradient_features(model, "0", inputs, labels)
    scale = -0.5 * model[2].weight.detach().T  # ℓ'(0) of the logistic loss, and the outgoing weight
    expected = gradient / scale * model[2].weight.detach().sign().T
    torch.testing.assert_close(found.gradients, expected, atol=1e-4, rtol=1e-3)
    loss_signal = gradient_features(model, "0", inputs, labels, center=False)
    torch.testing.assert_close(2 * loss_signal.gradients, found.gradients, atol=1e-4, rtol=1e-3)


def test_regression_takes_the_centred_target():
    model, (inputs, _) = network(), axes_data(400)
    targets = inputs[:, 0] ** 2 + 3
    found = gradient_features(model, "0", inputs, targets)
    expected = simplified_gradient(model, inputs, targets - targets.mean()) * model[2].weight.detach().sign().T
    torch.testing.assert_close(found.gradients, expected, atol=1e-3, rtol=1e-3)


def test_several_outputs_one_at_a_time():
    model, (inputs, labels) = network(outputs=3), axes_data(400)
    classes = torch.where(labels == 1, 0, 2)
    found = gradient_features(model, "0", inputs, classes, output=2)
    residual = (classes == 2).float() - 1 / 3
    expected = simplified_gradient(model, inputs, residual) * model[2].weight.detach()[2].sign().unsqueeze(1)
    torch.testing.assert_close(found.gradients, expected, atol=1e-4, rtol=1e-3)
    together = gradient_features(model, "0", inputs, classes)
    (gradient,) = torch.autograd.grad(
        (model(inputs) * (nn.functional.one_hot(classes, 3) - 1 / 3)).sum(), [model[0].weight]
    )
    torch.testing.assert_close(
        nn.functional.normalize(together.gradients[found.gradients.abs().amax(1) > 0]),
        nn.functional.normalize(gradient[found.gradients.abs().amax(1) > 0]),
        atol=1e-4,
        rtol=1e-3,
    )


def test_known_features_are_found_and_noise_is_refused():
    model, (inputs, labels) = network(), axes_data(4000)
    found = gradient_features(model, "0", inputs, labels)
    nearest = found.directions[:, :2].abs().max(1).values
    assert len(found.directions) >= 2
    assert float(nearest[:2].min()) > 0.95
    assert float(found.stability.min()) >= 0.7
    assert set(found.own.tolist()) <= {-1, *range(len(found.directions))}
    shuffled = labels[torch.randperm(len(labels), generator=generator(3))]
    nothing = gradient_features(model, "0", inputs, shuffled)
    assert len(nothing.directions) < len(found.directions)
    assert nothing.refused
    assert max(each.stability for each in nothing.refused) < 0.7
    assert "not named" in repr(nothing)
    # Whoever wants them all the same says so.
    assert len(gradient_features(model, "0", inputs, shuffled, stability=-1).directions) > 0


def test_the_report():
    pytest.importorskip("altair")
    found = gradient_features(network(), "0", *axes_data())
    assert [row["direction"] for row in found.table()] == list(range(len(found.directions)))
    assert set(found.table()[0]) == {"direction", "units", "mass", "width", "stability", "positive_bias"}
    assert found.table()[0]["positive_bias"] == 0.0
    saved = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert "gradients" not in saved
    assert len(saved["directions"]) == len(found.directions)
    assert "directions are shared by" in repr(found)
    assert found.figure(shape=(4, 6)).to_dict()["vconcat"]
    with pytest.raises(ValueError, match="no picture"):
        found.figure(shape=(5, 7))


def test_a_figure_without_altair_is_one_sentence(monkeypatch):
    found = gradient_features(network(), "0", *axes_data(200))
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match="a figure needs the extra 'lab'"):
        found.figure()


def test_uneven_classes_are_warned_about():
    model, (inputs, labels) = network(), axes_data(800)
    kept = (labels == 1) | (torch.arange(len(labels)) % 5 == 0)
    found = gradient_features(model, "0", inputs[kept], labels[kept])
    assert "balance the classes" in found.warnings[0]
    assert gradient_features(model, "0", inputs, labels).warnings == ()


class Dictionary(nn.Module):
    """A model that reads named inputs and answers with a record, as Hugging Face models do."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.inner = model

    def forward(self, features: Tensor, labels: Tensor | None = None):
        assert labels is None, "a model is not to compute a loss of its own"
        return type("Record", (), {"logits": self.inner(features)})()


def test_data_of_every_kind_give_the_same_numbers():
    model, (inputs, labels) = network(), axes_data(300)
    expected = gradient_features(model, "0", inputs, labels, batch_size=64).gradients
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=50)
    wrapped = Dictionary(model)
    kinds = [
        (model, "0", (inputs, labels), None),
        (model, "0", inputs.double().numpy(), labels.numpy().astype(np.int16)),
        (model, "0", loader, None),
        (model, "0", [(inputs[:100], labels[:100]), (inputs[100:], labels[100:])], None),
        (model, "0", ((inputs[i : i + 100], labels[i : i + 100]) for i in range(0, 300, 100)), None),
        (wrapped, "inner.0", {"features": inputs, "labels": (labels + 1) // 2}, None),
        (wrapped, "inner.0", [{"features": inputs, "label": labels}], None),
    ]
    for each, layer, data, targets in kinds:
        found = gradient_features(each, layer, data, targets)
        torch.testing.assert_close(found.gradients, expected, atol=1e-5, rtol=1e-4)
    assert gradient_features(model, "0", loader, samples=120).samples == 120


def test_labels_in_a_column_are_labels_and_several_signs_are_numbers():
    model, (inputs, labels) = network(), axes_data(300)
    plain = gradient_features(model, "0", inputs, labels).gradients
    for column in (labels.unsqueeze(1), labels.clamp(min=0).unsqueeze(1), labels.unsqueeze(1).float()):
        assert torch.equal(gradient_features(model, "0", inputs, column).gradients, plain)
    three = network(3)
    classes = torch.arange(300) % 3
    assert torch.equal(
        gradient_features(three, "0", inputs, classes.unsqueeze(1)).gradients,
        gradient_features(three, "0", inputs, classes).gradients,
    )
    several = (inputs[:, :3] > 0).float()
    torch.testing.assert_close(
        gradient_features(three, "0", inputs, 2 * several - 1, output=0).gradients,
        2 * gradient_features(three, "0", inputs, several, output=0).gradients,
    )


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_model_that_squeezes_its_answer_may_meet_one_sample(outputs):
    class Squeezes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network(outputs)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).squeeze()

    model, (inputs, labels) = Squeezes(), axes_data(40)
    labels = labels.clamp(min=0)
    found = gradient_features(model, "inner.0", inputs, labels, batch_size=1)
    expected = gradient_features(model.inner, "0", inputs, labels, batch_size=1)
    assert torch.equal(found.gradients, expected.gradients)


def test_class_labels_are_read_in_one_pass():
    model, (inputs, labels) = network(), axes_data(300)

    class Once:
        def __init__(self) -> None:
            self.batches = ((inputs[i : i + 100], labels[i : i + 100]) for i in range(0, 300, 100))

        def __iter__(self):
            return self.batches

    found = gradient_features(model, "0", Once(), batch_size=100)
    assert found.samples == 300
    assert torch.equal(found.gradients, gradient_features(model, "0", inputs, labels, batch_size=100).gradients)


def test_nothing_is_left_behind_also_after_an_error():
    model, (inputs, labels) = network(), axes_data(200)
    model.insert(2, nn.Dropout())
    model[0].weight.requires_grad_(False)
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=64, shuffle=True)
    gradient_features(model, "0", loader)
    broken = inputs.clone()
    broken[7, 3] = torch.nan
    with pytest.raises(ValueError, match="the inputs must be finite"):
        gradient_features(model, "0", broken, labels)
    with pytest.raises(ValueError, match="a single output needs labels"):
        gradient_features(model, "0", inputs, labels + 5)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [module.training for module in model.modules()] == modes
    assert not model[0].weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_it_works_where_gradients_are_off():
    model, (inputs, labels) = network(), axes_data(200)
    expected = gradient_features(model, "0", inputs, labels).gradients
    with torch.no_grad():
        torch.testing.assert_close(gradient_features(model, "0", inputs, labels).gradients, expected)
    with torch.inference_mode():
        made_inside = inputs.clone()
        torch.testing.assert_close(gradient_features(model, "0", made_inside, labels).gradients, expected)


def test_autocast_gives_the_same_directions():
    model, (inputs, labels) = network(), axes_data()
    plain = gradient_features(model, "0", inputs, labels)
    with torch.autocast("cpu", torch.bfloat16):
        model(inputs[:4])  # fills the cache of casts
        mixed = gradient_features(model, "0", inputs, labels)
    assert len(mixed.directions) == len(plain.directions)
    alike = (plain.directions @ mixed.directions.T).abs().max(1).values
    assert float(alike.min()) > 0.98


def test_a_compiled_model_is_read_as_it_was_written():
    model, (inputs, labels) = network(), axes_data(200)
    compiled = torch.compile(model, backend="eager")
    plain = gradient_features(model, "0", inputs, labels).gradients
    for name in ("0", "_orig_mod.0"):  # as it was written, and as the compiled model lists it
        found = gradient_features(compiled, name, inputs, labels)
        assert found.layer == "0"
        torch.testing.assert_close(found.gradients, plain)


def refusals():
    model, (inputs, labels) = network(), axes_data(100)
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(DIM, 4))
    yield "has no layer '9'; it has", (model, "9", inputs, labels), {}
    yield "must be nn.Linear", (model, "1", inputs, labels), {}
    yield "parametrisation", (nn.Sequential(normed, nn.Linear(4, 1)), "0", inputs, labels), {}
    yield "gamma must lie in", (model, "0", inputs, labels), {"gamma": 1.0}
    yield "drop must be a number", (model, "0", inputs, labels), {"drop": float("nan")}
    yield "stability must", (model, "0", inputs, labels), {"stability": "high"}
    yield "alone has no targets", (model, "0", inputs), {}
    yield "100 inputs come with targets", (model, "0", inputs, labels[:50]), {}
    yield "a mapping needs labels", (model, "0", {"x": inputs}), {}
    yield "hold no sample", (model, "0", []), {}
    yield "hold no sample", (model, "0", inputs[:0], labels[:0]), {}
    yield "one class label from 0 to 2", (network(3), "0", inputs, labels + 2), {}
    yield "the targets must be finite", (model, "0", inputs, torch.full((100,), torch.nan)), {}
    yield "all the same", (model, "0", inputs, torch.ones(100) * 3), {}
    yield "one answer per sample", (model[:1], "0", inputs.unsqueeze(1), labels), {}
    yield "output must", (network(3), "0", inputs, labels * 0), {"output": 3}


@pytest.mark.parametrize(
    ("sentence", "given", "options"), refusals(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_bad_input_is_refused_in_a_sentence(sentence, given, options):
    with pytest.raises(ValueError, match=sentence):
        gradient_features(*given, **options)


def test_a_layer_that_the_output_ignores_and_one_that_is_silent():
    inputs, labels = axes_data(100)

    class Ignores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused, self.used = nn.Linear(DIM, 3), nn.Linear(DIM, 1)

        def forward(self, x: Tensor) -> Tensor:
            self.unused(x)
            return self.used(x)

    with pytest.raises(ValueError, match="does not depend on the layer 'unused'"):
        gradient_features(Ignores(), "unused", inputs, labels)
    silent = network()
    with torch.no_grad():
        silent[0].bias.fill_(-1e6)
    with pytest.raises(ValueError, match="all are inactive"):
        gradient_features(silent, "0", inputs, labels)


def test_shuffled_labels_name_nothing_even_where_inputs_have_two_large_directions():
    model, (inputs, labels) = network(), axes_data(1500)
    named = 0
    for seed in range(10):
        shuffled = labels[torch.randperm(len(labels), generator=generator(30 + seed))]
        named += len(gradient_features(model, "0", inputs, shuffled).directions)
    assert named <= 2, "ten shuffles, several cones each"
