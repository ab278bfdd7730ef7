"""The nuclear-norm penalty in a plain PyTorch loop: the three lines that are marked.

Digits in three training domains carry weak pixels that go with the class more often than not, and in a fourth domain
against it. The penalty is one way to keep a network from relying on them. The report says what it did to the features,
and whether only scale moved from the features to the head; plain training that stops earlier is the comparison that a
gain must survive. Run: python examples/nuclear_norm.py
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay.data import load_images
from assay.methods import NuclearNorm
from assay.probes import rank_report

torch.set_num_threads(1)  # networks this small are fastest on one core
digits, held_out = load_images("digits"), load_images("digits", "test")
codes = torch.where(torch.rand(10, 60, generator=torch.Generator().manual_seed(0)) < 0.5, -0.5, 0.5)


def with_cues(images: Tensor, labels: Tensor, agreement: float, seed: int) -> Tensor:
    """Images (n, 64) with 60 pixels more, each of which shows its class's sign with probability ``agreement``."""
    chance = torch.rand(len(labels), 60, generator=torch.Generator().manual_seed(seed))
    return torch.cat([images.flatten(1), torch.where(chance < agreement, codes[labels], -codes[labels])], dim=1)


parts = torch.arange(len(digits)) % 3
domains = [
    (
        with_cues(digits.images[parts == part], digits.labels[parts == part], agreement, part),
        digits.labels[parts == part],
    )
    for part, agreement in enumerate((0.75, 0.7, 0.65))
]
seen, unseen = (with_cues(held_out.images, held_out.labels, agreement, 3) for agreement in (0.7, 0.3))


def train(lam: float, steps: int) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(124, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    penalty = NuclearNorm(lam=lam).attach(model)  # 1. the features are those that reach the last linear layer
    for _ in range(steps):
        batch = [torch.randint(len(labels), (32,), generator=generator) for _, labels in domains]
        inputs = torch.cat([each[chosen] for (each, _), chosen in zip(domains, batch, strict=True)])
        labels = torch.cat([each[chosen] for (_, each), chosen in zip(domains, batch, strict=True)])
        loss = penalty(cross_entropy(model(inputs), labels))  # 2. added after a warm-up of 100 steps
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    penalty.remove()  # 3. the model is as it was, but trained
    print(f"\n{penalty.report()}")
    return model.eval()


for lam, steps in ((0.0, 400), (0.0, 120), (0.3, 400)):
    model = train(lam, steps)
    with torch.no_grad():
        inside, outside = ((model(each).argmax(1) == held_out.labels).float().mean() for each in (seen, unseen))
    print(
        f"accuracy on new digits {inside:.3f}, in the unseen domain {outside:.3f}; {rank_report(unseen, model=model)}"
    )
