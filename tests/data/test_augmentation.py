import pytest
import torch

from assay.data import augmented

IMAGES = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def test_without_any_change_images_stay():
    same = augmented(IMAGES, generator=draws(), scale=(1.0, 1.0), flip=0.0, jitter=0.0, grey=0.0)
    torch.testing.assert_close(same, IMAGES)
    mirrored = augmented(IMAGES, generator=draws(), scale=(1.0, 1.0), flip=1.0, jitter=0.0, grey=0.0)
    torch.testing.assert_close(mirrored, IMAGES.flip(3))


def test_grey_images_have_equal_channels():
    grey = augmented(IMAGES, generator=draws(), scale=(1.0, 1.0), flip=0.0, jitter=0.0, grey=1.0)
    torch.testing.assert_close(grey, IMAGES.mean(1, keepdim=True).expand(-1, 3, -1, -1))


def test_a_crop_of_a_slope_is_a_gentler_slope():
    slope = torch.linspace(0, 1, 32).expand(4, 1, 32, 32)
    found = augmented(slope, generator=draws(), scale=(0.25, 0.25), flip=0.0, jitter=0.0)
    # A quarter of the area is half of the width: neighbours differ half as much.
    torch.testing.assert_close(found.diff(dim=3)[..., 2:-2], torch.full((4, 1, 32, 27), 0.5 / 31), atol=1e-5, rtol=0)
    assert len({round(float(each[0, 0, 0]), 4) for each in found}) == 4, "each image has its own place"


def test_images_stay_images_and_draws_are_the_generators():
    before = torch.get_rng_state()
    one, other = (augmented(IMAGES, generator=draws(3)) for _ in range(2))
    assert torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(one, IMAGES)
    assert one.shape == IMAGES.shape
    assert bool((one >= 0).all() and (one <= 1).all())


@pytest.mark.parametrize("options", [{"scale": (0.0, 1.0)}, {"scale": (0.9, 0.5)}, {"flip": 2}, {"jitter": -1}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match="must lie"):
        augmented(IMAGES, generator=draws(), **options)
