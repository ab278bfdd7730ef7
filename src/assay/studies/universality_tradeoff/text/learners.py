"""A sentence encoder on few labelled texts: a linear head, fine-tuning, and fine-tuning with two dropout passes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from assay.data.text import TextSet
from assay.methods.contrastive_regularization import contrastive_regularized_loss
from assay.networks.pretrained import Loaded, load_encoder
from assay.probes.heads import ridge_head
from assay.probes.label_efficiency import balanced_order
from assay.training import stream

from ..fine_tuning.learners import zero_head

TOKENS = 64


@lru_cache(maxsize=1)
def loaded_encoder(name: str, device: str) -> Loaded:
    """The encoder, read once per process and not once per unit."""
    return load_encoder(name, device=device)


def tokens(loaded: Loaded, texts: list[str], device: str) -> dict[str, Tensor]:
    made = loaded.tokenizer(texts, padding=True, truncation=True, max_length=TOKENS, return_tensors="pt")
    return {name: value.to(device) for name, value in made.items()}


@torch.no_grad()
def embedded(loaded: Loaded, model: Any, texts: list[str], device: str) -> Tensor:
    """The mean of the last states (n, dim) on the CPU, in evaluation mode."""
    model.eval()
    parts = []
    for start in range(0, len(texts), 100):
        inputs = tokens(loaded, texts[start : start + 100], device)
        mask = inputs["attention_mask"].unsqueeze(-1)
        states = model(**inputs).last_hidden_state
        parts.append(((states * mask).sum(1) / mask.sum(1)).float().cpu())
    return torch.cat(parts)


def labelled_texts(texts: TextSet, count: int, seed: int) -> tuple[list[str], Tensor]:
    """``count`` texts, balanced over classes."""
    order = balanced_order(texts.labels, stream(seed, "labelled texts"))[:count]
    return [texts.texts[k] for k in order.tolist()], texts.labels[order]


@dataclass(frozen=True)
class TextTuning:
    """AdamW on encoder and head, rates that fall to zero; ``strength`` is λ, 0 for the plain loss. Dropout is drawn
    from torch's own generator, seeded around the training and put back."""

    steps: int = 60
    batch: int = 16
    rate: float = 5e-5
    head_rate: float = 5e-3
    strength: float = 0.0

    def accuracy(self, loaded: Loaded, train: tuple[list[str], Tensor], test: TextSet, seed: int, device: str) -> float:
        """Test accuracy after fine-tuning on the labelled texts."""
        texts, labels = train
        model = copy.deepcopy(loaded.model).train()
        head = zero_head(int(loaded.model.config.hidden_size), test.classes).to(device)
        groups: list[dict[str, Any]] = [
            {"params": list(model.parameters()), "lr": self.rate},
            {"params": list(head.parameters())},
        ]
        rule = torch.optim.AdamW(groups, lr=self.head_rate, weight_decay=0.01)
        firsts = (self.rate, self.head_rate)
        order = stream(seed, "batches of texts")
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(stream(seed, "dropout").initial_seed() % 2**63)
            for step in range(self.steps):
                for group, first in zip(rule.param_groups, firsts, strict=True):
                    group["lr"] = first * (1 - step / self.steps)
                chosen = torch.randperm(len(texts), generator=order)[: self.batch].tolist()
                inputs = tokens(loaded, [texts[k] for k in chosen], device)
                answers = labels[chosen].to(device)
                found = contrastive_regularized_loss(
                    model, head, inputs, answers, augment="dropout", lambda_=self.strength
                )
                rule.zero_grad()
                torch.autograd.backward(found.total)
                rule.step()
        scores = head.cpu()(embedded(loaded, model, list(test.texts), device)).detach()
        return (
            float((scores.argmax(1) == test.labels).double().mean()) if bool(scores.isfinite().all()) else float("nan")
        )


def head_accuracy(loaded: Loaded, train: tuple[list[str], Tensor], test: TextSet, device: str) -> float:
    """Test accuracy of a ridge head on the frozen encoder."""
    seen = embedded(loaded, loaded.model, train[0], device)
    guessed = ridge_head(seen, train[1]).predict(embedded(loaded, loaded.model, list(test.texts), device))
    return float((torch.as_tensor(guessed).cpu() == test.labels).double().mean())
