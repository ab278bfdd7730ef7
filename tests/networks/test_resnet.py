import pytest
import torch
from torch import nn

from assay.networks.resnet import ResNet


def make(width=4, **options):
    return ResNet(width, generator=torch.Generator().manual_seed(0), **options)


def test_the_standard_network_has_the_known_number_of_parameters():
    assert sum(p.numel() for p in ResNet(64).parameters()) == 11_173_962  # ResNet-18 with a 3x3 stem, ten classes
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in ResNet(1).modules()) == 17


def test_stage_widths_double():
    shapes = [tuple(conv.weight.shape) for conv in make().last_convolutions()]
    assert shapes == [(4, 4, 3, 3), (8, 8, 3, 3), (16, 16, 3, 3), (32, 32, 3, 3)]


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 8)])
def test_logits_and_gradients_for_small_images(channels, size):
    model = make(classes=2, channels=channels)
    logits = model(torch.randn(5, channels, size, size))
    assert logits.shape == (5, 2)
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_the_generator_decides_the_weights():
    first, second = make().state_dict(), make().state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    other = ResNet(4, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(other.head.weight, first["head.weight"])


def test_networks_stack_over_seeds_in_evaluation():
    models = [ResNet(2, channels=1).eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    images = torch.randn(4, 1, 8, 8)

    def call(parameters, buffers):
        return torch.func.functional_call(models[0], (parameters, buffers), (images,))

    stacked = torch.func.vmap(call)(parameters, buffers)
    torch.testing.assert_close(stacked, torch.stack([m(images) for m in models]), atol=1e-4, rtol=1e-4)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ResNet(0)
