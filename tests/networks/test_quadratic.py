import pytest
import torch

from assay.networks.quadratic import Quadratic, quadratic, quadratic_parameters
from assay.training.seeds import Seeds


def test_the_module_is_the_formula():
    model = Quadratic(3, inputs=4, classes=2, generator=torch.Generator().manual_seed(0)).double()
    inputs = torch.randn(5, 2, 2, dtype=torch.float64)
    for x, logits in zip(inputs.flatten(1), model(inputs), strict=True):
        units = [
            (sum(w * v for w, v in zip(row, x, strict=True)) + b) ** 2
            for row, b in zip(model.hidden.weight, model.hidden.bias, strict=True)
        ]
        expected = [
            sum(a * u for a, u in zip(row, units, strict=True)) + b
            for row, b in zip(model.head.weight, model.head.bias, strict=True)
        ]
        torch.testing.assert_close(logits, torch.stack(expected))


@pytest.mark.parametrize("shared", [True, False])
def test_the_stacked_form_equals_the_modules(shared):
    models = [Quadratic(3, inputs=4, classes=2) for _ in range(3)]
    for model in models:
        torch.nn.init.normal_(model.hidden.bias)
    parameters, _ = torch.func.stack_module_state(models)
    inputs = torch.randn(5, 4) if shared else torch.randn(3, 5, 4)
    expected = torch.stack([m(inputs if shared else inputs[i]) for i, m in enumerate(models)])
    torch.testing.assert_close(quadratic(parameters, inputs), expected)


def test_a_seed_draws_the_same_parameters_alone_and_in_company():
    together = quadratic_parameters(Seeds((0, 1, 2)), "teacher", 9, inputs=16, classes=10)
    alone = quadratic_parameters(Seeds((1,)), "teacher", 9, inputs=16, classes=10)
    model = Quadratic(9, inputs=16, classes=10)
    assert set(together) == set(model.state_dict())
    for key, value in model.state_dict().items():
        assert torch.equal(together[key][1], alone[key][0])
        assert together[key].shape[1:] == value.shape


def test_the_start_has_unit_pre_activations_and_outputs_of_order_one():
    model = Quadratic(2000, inputs=100, classes=10, generator=torch.Generator().manual_seed(0))
    inputs = torch.randn(500, 100, generator=torch.Generator().manual_seed(1))
    assert model.hidden(inputs).var().item() == pytest.approx(1, rel=0.05)
    assert model(inputs).square().mean().item() == pytest.approx(1, rel=0.5)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        Quadratic(0, inputs=4, classes=2)
