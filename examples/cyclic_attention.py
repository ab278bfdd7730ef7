"""Does attention know that Monday follows Sunday? Heads of a small transformer before and after it learns the clock.

Run: python examples/cyclic_attention.py
Run: python examples/cyclic_attention.py gpt2      (a Hugging Face model and its weekday tokens; needs the extra llm)
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.probes.attention_fourier import attention_fourier
from assay.probes.fourier import fourier_probe

HOURS, DIM, HEADS = 12, 32, 2


class Clock(nn.Module):
    """Two hours and a question mark in, their sum on a clock of twelve out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(HOURS + 1, DIM)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 64, dropout=0.0, norm_first=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.readout = nn.Linear(DIM, HOURS)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        question = torch.full_like(pairs[:, :1], HOURS)
        return self.readout(self.encoder(self.embedding(torch.cat([pairs, question], 1)))[:, -1])


def show(model: nn.Module, tokens: list[int], layers: int, heads: int, name: str) -> None:
    for layer in range(layers):
        found = [attention_fourier(model, layer, head, tokens) for head in range(heads)]
        print(f"{name}, layer {layer}: share of two modes per head", [round(float(each.share(2)), 2) for each in found])


def add_hours() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Clock()
    pairs = torch.cartesian_prod(torch.arange(HOURS), torch.arange(HOURS))
    show(model, list(range(HOURS)), 1, HEADS, "untrained")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.3)
    for _ in range(800):
        optimizer.zero_grad()
        cross_entropy(model(pairs), pairs.sum(1) % HOURS).backward()
        optimizer.step()
    show(model, list(range(HOURS)), 1, HEADS, "trained  ")
    show(model, torch.randperm(HOURS).tolist(), 1, HEADS, "trained, hours in a random order")
    right = (model(pairs).argmax(1) == pairs.sum(1) % HOURS).float().mean()
    spectrum = fourier_probe(model.embedding.weight[:HOURS], tokens=HOURS).normalised.mean(0)
    print(f"accuracy {right:.2f}; power of the embeddings by frequency:", [round(float(x), 2) for x in spectrum])


def weekdays(name: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    words = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    ids = [tokenizer.encode(f" {word}", add_special_tokens=False) for word in words]
    if any(len(tokens) > 1 for tokens in ids):
        sys.exit(f"{name} has no single token for every weekday: {ids}")
    show(model, [tokens[0] for tokens in ids], 2, model.config.num_attention_heads, name)


if len(sys.argv) > 1:
    weekdays(sys.argv[1])
else:
    add_hours()
