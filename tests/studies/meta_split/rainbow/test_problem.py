"""RainbowMNIST from digits: colours, rotations and scales, and episodes without an image twice."""

import pytest
import torch

from assay.data.images import ImageSet
from assay.studies.meta_split.rainbow.problem import COLOURS, COMBINATIONS, META_TRAINING, Rainbow
from assay.training import Seeds

SEEDS = Seeds((0, 1))


def test_there_are_56_combinations():
    assert len(COMBINATIONS) == 56
    assert META_TRAINING == 40


def test_an_image_is_coloured_turned_and_scaled(digits, rainbow):
    place = COMBINATIONS.index(("blue", 1, "full"))
    uniforms = torch.zeros(1, 1, 10, 2)
    episodes = rainbow.draw(torch.tensor([[place]]), uniforms, 1)
    first = digits.images[(digits.labels == 0).nonzero()[0, 0], 0]
    grey = torch.rot90(first, 1)
    colour = torch.tensor(COLOURS["blue"]).reshape(3, 1, 1)
    torch.testing.assert_close(episodes.images[0, 0, 0], colour * (1 - grey) + grey)
    half = rainbow.draw(torch.tensor([[COMBINATIONS.index(("blue", 0, "half"))]]), uniforms, 1).images[0, 0, 0]
    assert torch.equal(half[:, 0], colour[:, 0].expand(3, 8))  # the margin shows the background alone
    assert not torch.equal(half[:, 3], colour[:, 0].expand(3, 8))


def test_episodes_have_every_class_in_both_parts_and_no_image_twice(digits):
    marked = ImageSet(
        torch.arange(len(digits)).float().reshape(-1, 1, 1, 1).expand(-1, 1, 8, 8) / 2000, digits.labels, "marked", 10
    )
    source = Rainbow(marked, 8)
    episodes = next(source.training(SEEDS, 1, 3, 2, 3))
    (support, labels), (query, truth) = episodes.parts()
    assert labels.shape == (2, 3, 20)
    assert truth.shape == (2, 3, 30)
    assert torch.equal(labels[0, 0].bincount(), torch.full((10,), 2))
    assert torch.equal(truth[1, 2].bincount(), torch.full((10,), 3))
    for seed in range(2):
        for task in range(3):
            ids = torch.cat([support[seed, task], query[seed, task]])[:, :, 4, 4]
            assert len(ids.round(decimals=5).unique(dim=0)) == 50


@pytest.mark.parametrize("members", [6, 7, 10, 11, 37])
def test_strata_never_give_an_image_twice(members):
    images = torch.arange(2.0 * members).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4) / (2 * members)
    rainbow = Rainbow(ImageSet(images, torch.arange(2).repeat_interleave(members), "numbered", 2), 4)
    draws = torch.rand(1, 4000, 2, 6, generator=torch.Generator().manual_seed(0))
    draws[:, :10] = torch.tensor([0.0, 1 - 1e-7]).repeat(3)
    order = torch.rand(draws.shape, generator=torch.Generator().manual_seed(1)).argsort(-1)
    episodes = rainbow.draw(torch.zeros(1, 4000, dtype=torch.long), draws, 3, order)
    shown = episodes.images[0, :, :, 1, 0, 0].sort(-1).values  # the green of a red background is the image's own
    assert float(shown.diff(dim=-1).amin()) > 0
    assert len(episodes.images[0, :, :, 1, 0, 0].unique()) == 2 * members


def test_meta_testing_uses_the_other_combinations(rainbow):
    order = SEEDS.permutation("combinations", 56)
    episodes = rainbow.testing(SEEDS, 2, 1, 2)
    assert episodes.labels.shape == (2, 32, 30)
    assert not set(order[0, :META_TRAINING].tolist()) & set(order[0, META_TRAINING:].tolist())


def test_episodes_of_a_seed_do_not_depend_on_its_company(rainbow):
    alone = next(rainbow.training(Seeds((1,)), 1, 2, 1, 1))
    together = next(rainbow.training(SEEDS, 1, 2, 1, 1))
    assert torch.equal(alone.images[0], together.images[1])


def test_colour_images_and_too_few_samples_are_refused(digits, rainbow):
    with pytest.raises(ValueError, match="grey"):
        Rainbow(ImageSet(torch.zeros(4, 3, 8, 8), torch.arange(4), "colour", 4), 8)
    with pytest.raises(ValueError, match="different images"):
        next(rainbow.training(SEEDS, 1, 1, 100, 100))
