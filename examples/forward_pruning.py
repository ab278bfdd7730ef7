"""Contrastive pretraining on a long tail of digit images, with and without forward pruning.

Class counts fall by a factor of 10 from the most to the least frequent class. A linear probe on balanced labels then
reads the frozen features. On a set this small the difference is within the noise: the point is how to use the parts.
Run: python examples/forward_pruning.py
"""

import torch
from torch import Tensor, nn

from assay.data.images import load_images
from assay.data.long_tail import balanced, long_tailed
from assay.methods.forward_pruning import ForwardMagnitudePruner
from assay.probes.head_tail import head_tail_probe
from assay.probes.specialisation import specialisation

torch.set_num_threads(1)  # networks this small are fastest on one core
train, test = load_images("digits"), load_images("digits", "test")
tail = long_tailed(train, ratio=10, generator=torch.Generator().manual_seed(0))
labelled = balanced(train, 50, generator=torch.Generator().manual_seed(1))
counts = torch.bincount(tail.labels).tolist()
print("images per class:", counts)


def view(images: Tensor, generator: torch.Generator) -> Tensor:
    """Shifted by up to one pixel, noisy: two views of an image show the same digit."""
    shift = torch.randint(-1, 2, (2,), generator=generator).tolist()
    return images.roll(shift, dims=(2, 3)) + 0.2 * torch.randn(images.shape, generator=generator)


def pretrain(alpha: float, epochs: int = 30) -> nn.Sequential:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
    encoder = nn.Sequential(backbone, nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    pruner = ForwardMagnitudePruner(encoder, alpha=alpha, granularity="weight", scope="global", refresh="epoch")
    generator = torch.Generator().manual_seed(2)
    for _ in range(epochs):
        for batch in torch.randperm(len(tail), generator=generator).split(128):
            images = tail.images[batch]
            loss = pruner.loss(view(images, generator), view(images, generator), tau=0.2)
            optimizer.zero_grad()
            loss.surrogate.backward()
            optimizer.step()
        pruner.end_epoch()
    print(f"\nalpha {alpha:g}: masked {pruner.report().share:.0%} of the weights, last loss {loss.loss:.3f}")
    return encoder.eval()


for alpha in (0.0, 0.3):
    encoder = pretrain(alpha)
    with torch.no_grad():
        features, test_features = (encoder[0](each.images) for each in (labelled, test))
    probe = head_tail_probe(features, labelled.labels, test_features, test.labels, counts)
    print(f"probe accuracy {probe.accuracy:.3f}, head − tail {probe.gap:+.3f}")

# Would pruning neurons hit the rare classes at all? Ask the first layer, with class means as candidate directions.
flat = labelled.images.flatten(1)
means = torch.stack([flat[labelled.labels == c].mean(0) for c in range(10)]) - flat.mean(0)
groups = ["head" if count > 50 else "tail" for count in counts]
print("\n" + str(specialisation(encoder[0][1].weight, means, groups=groups, frequencies=counts, alpha=0.125)))
