"""RainbowMNIST from digits, and the stacked learners against the method for any module."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from assay.data.images import ImageSet, load_images
from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.reptile import Reptile
from assay.studies.meta_split.rainbow import COLOURS, COMBINATIONS, META_TRAINING, Rainbow
from assay.studies.meta_split.rainbow_learners import ConvNet, MetaTraining, accuracies, adapt
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1))
NET = ConvNet(8, 10, blocks=2, channels=3)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


@pytest.fixture(scope="module")
def rainbow(digits):
    return Rainbow(digits, 8)


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
    marked = ImageSet(torch.arange(len(digits)).float().reshape(-1, 1, 1, 1).expand(-1, 1, 8, 8) / 2000, digits.labels,
                      "marked", 10)  # fmt: skip
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
    with pytest.raises(ValueError, match="halved"):
        ConvNet(8, 10, blocks=4)
    with pytest.raises(ValueError, match="unknown split"):
        MetaTraining("pooled")
    with pytest.raises(ValueError, match="share"):
        MetaTraining("reptile", outer_rate=2.0)


class Slow(nn.Module):
    """The same network, one at a time, with modules; activation before pooling, as the source has it."""

    def __init__(self, weights, seed):
        super().__init__()
        names = [name for name in weights if name not in ("head", "bias")]
        self.parts = nn.ParameterDict(
            {name: nn.Parameter(weights[name][seed].clone()) for name in [*names, "head", "bias"]}
        )

    def forward(self, x):
        for block in range(2):
            x = functional.conv2d(x, self.parts[f"conv{block}"], padding=1)
            x = functional.batch_norm(x, None, None, self.parts[f"scale{block}"], self.parts[f"shift{block}"], True)
            bent = x.clamp(0, 0.5)
            x = functional.max_pool2d(x.clamp(min=0) - bent + bent.square(), 2)
        return x.flatten(1) @ self.parts["head"].mT + self.parts["bias"]


def as_double(weights):
    return {name: value.double() for name, value in weights.items()}


def episodes_of(rainbow, steps):
    for episodes in rainbow.training(SEEDS, steps, 2, 1, 1):
        yield type(episodes)(episodes.images.double(), episodes.labels, episodes.support)


@pytest.mark.parametrize("split", ["train-train", "train-validation", "reptile"])
def test_stacked_learners_are_the_methods_for_any_module(rainbow, split):
    start = as_double(NET.initial(SEEDS))
    rate = 0.5 if split == "reptile" else 0.01
    *_, (ours, losses) = MetaTraining(split, 0.1, rate, 3).train(NET, start, episodes_of(rainbow, 3))
    for seed in range(2):
        model = Slow(start, seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for episodes in episodes_of(rainbow, 3):
            halves = (torch.arange(10), torch.arange(10, 20))
            tasks = [Task(episodes.images[seed, k], episodes.labels[seed, k], *halves) for k in range(2)]
            if split == "reptile":
                report = Reptile(0.1, 3, epsilon=0.5).step(model, tasks, functional.cross_entropy)
            else:
                chosen = "train-train" if split == "train-train" else "train-val"
                method = Fomaml(0.1, 3, split=chosen)
                report = method.step(model, tasks, functional.cross_entropy, optimizer, generator=torch.Generator())
        for name, value in model.parts.items():
            torch.testing.assert_close(ours[name][seed].detach(), value.detach(), rtol=1e-6, atol=1e-8)
        assert float(losses[seed]) == pytest.approx(report.loss, rel=1e-6)


def test_accuracy_is_that_of_networks_one_by_one(rainbow):
    weights = as_double(NET.initial(SEEDS))
    episodes = rainbow.testing(SEEDS, 1, 1, 2)
    episodes = type(episodes)(episodes.images.double(), episodes.labels, episodes.support)
    after, before = accuracies(NET, weights, episodes, 0.1, 2)
    assert after.shape == before.shape == (2, 16)
    (images, labels), (query, truth) = episodes.parts()
    alone = {name: value[1:] for name, value in weights.items()}
    adapted = adapt(NET, alone, images[1:, 9], labels[1:, 9], 0.1, 2)
    guess = NET.outputs(adapted, query[1:, 9]).argmax(-1)
    assert float(after[1, 9]) == pytest.approx(float((guess == truth[1:, 9]).double().mean()))


def test_relu_is_a_knee_of_zero():
    x = torch.linspace(-2, 2, 9)
    assert torch.equal(ConvNet(8, 10, 2, 3, knee=0.0)._activate(x), torch.relu(x))
