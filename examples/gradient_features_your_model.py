"""A model of your own: which directions do the gradients of a layer share, and do its units keep them while it trains?

The model is a small transformer that reads batches of named tensors, as Hugging Face models do: does a sequence hold
more tokens of one kind than of another? Any nn.Linear, convolution or transformers Conv1D in any model works the same.
Run: python examples/gradient_features_your_model.py
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from assay.probes import AlignmentTracker, gradient_features

torch.manual_seed(0)
torch.set_num_threads(1)  # a network this small gains nothing from more


class Reader(nn.Module):
    """Tokens to a class: embedding, one encoder layer, the mean over places, a head."""

    def __init__(self, vocabulary: int = 30, dim: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim)
        self.block = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(dim, 2)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.head(self.block(self.embedding(input_ids)).mean(1))


tokens = torch.randint(30, (1200, 12))
labels = ((tokens < 10).sum(1) > (tokens >= 20).sum(1)).long()
even = torch.cat([(labels == c).nonzero().squeeze(1)[:400] for c in (0, 1)])  # as many of each class
rows = [{"input_ids": tokens[i], "labels": labels[i]} for i in even]
loader = DataLoader(rows, batch_size=64, shuffle=True)

model = Reader()
layer = "block.linear1"
before = gradient_features(model, layer, loader, gamma=0.3)  # inside a network directions are wider
print(before, "", sep="\n")
order = torch.randperm(len(rows)).tolist()
shuffled = DataLoader([row | {"labels": rows[place]["labels"]} for row, place in zip(rows, order, strict=True)], 64)
print("with shuffled labels:", gradient_features(model, layer, shuffled, gamma=0.3).headline(), "", sep="\n")

optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
tracker = AlignmentTracker(layer, before.directions, {"input_ids": tokens[:50]}, every=10)
with tracker.attach(model, optimizer) as record:
    for _ in range(4):
        for batch in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"]).backward()
            optimizer.step()
print(record.report())
right = (model.eval()(tokens[even]).argmax(1) == labels[even]).float().mean()
print(f"accuracy on the training sequences: {float(right):.2f}")
