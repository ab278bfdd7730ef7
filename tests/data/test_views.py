import pytest
import torch

from assay.data.views import random_view


@pytest.mark.parametrize("channels", [1, 3])
def test_views_are_images_drawn_from_their_generator(channels):
    images = torch.rand(6, channels, 12, 12, generator=torch.Generator().manual_seed(0))
    one, again, other = (random_view(images, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert one.shape == images.shape
    assert one.min() >= 0
    assert one.max() <= 1
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_grey_images_are_not_mirrored_and_colours_are():
    ramp = torch.linspace(0, 1, 16).expand(64, 1, 16, 16).contiguous()
    rising = lambda view: (view[..., 8:].mean((1, 2, 3)) > view[..., :8].mean((1, 2, 3))).double().mean()  # noqa: E731
    assert rising(random_view(ramp, torch.Generator().manual_seed(0))) == 1
    colour = random_view(ramp.expand(-1, 3, -1, -1).contiguous(), torch.Generator().manual_seed(0))
    assert 0.2 < rising(colour) < 0.8
