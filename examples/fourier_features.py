"""What does a network learn for a + b mod 11? Train with the group-norm penalty, then read its frequencies and margin.

Run: python examples/fourier_features.py [FIGURE.svg]
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.methods.group_norm import GroupPenalty
from assay.methods.modular_margin import margin_certificate, required_width
from assay.probes.fourier import fourier_probe, logit_fourier

torch.manual_seed(0)
torch.set_num_threads(1)  # a network this small gains nothing from more
P, WIDTH = 11, required_width(11, 2)


class Adder(nn.Module):
    """One hidden layer with activation z², a table of input weights per operand."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(P, WIDTH), nn.Embedding(P, WIDTH)
        self.readout = nn.Linear(WIDTH, P, bias=False)
        for part in self.parameters():
            nn.init.normal_(part, std=P**-0.5)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        return self.readout((self.first(pairs[:, 0]) + self.second(pairs[:, 1])).square())


spectra = {}


def describe(model: Adder, name: str) -> None:
    spectra[name] = fourier_probe(model.first.weight, tokens=P)
    shares = spectra[name].share
    tables = torch.stack([model.first.weight, model.second.weight]).detach().double()
    found = margin_certificate(tables, model.readout.weight.detach().double().mT)
    logits = logit_fourier(model, P, 2)
    print(
        f"{name:9} median share of one frequency {shares.median():.2f}, modular share of logits {logits.share:.2f}, "
        f"margin {float(found.margin_ratio):+.2f} of the maximum, at most {float(found.alignment_ratio):+.2f}"
    )


pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P))
labels = pairs.sum(1) % P
model = Adder()
penalty = GroupPenalty([("first.weight", 1), ("second.weight", 1), ("readout.weight", 1)], order=3, power=3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.9, 0.98))
describe(model, "untrained")
for step in range(1, 1201):
    optimizer.zero_grad()
    (cross_entropy(model(pairs), labels) + 1e-4 * penalty(model)).backward()
    optimizer.step()
    if step in (150, 1200):
        describe(model, f"step {step}")
if len(sys.argv) > 1:
    titles = {"untrained": "untrained", "step 1200": "after 1,200 steps"}
    left, right = (spectra[name].figure().properties(width=300, title=title) for name, title in titles.items())
    (left | right).save(sys.argv[1])
