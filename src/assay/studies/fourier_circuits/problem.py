"""Modular addition: k numbers below p, label their sum mod p. Inputs are indices, never one-hot vectors.

The features are known: cos and sin of 2πζa/p for every frequency ζ = 1..(p−1)/2, and the ideal logit Σ_ζ cos_ζ(Σa − c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.methods.modular_margin import check_modulus
from assay.probes.fourier import decode_inputs
from assay.training.seeds import Seeds

Form = Literal["short", "operators"]


@dataclass(frozen=True)
class ModularAddition:
    """``p`` is the modulus, ``k`` the number of inputs. All p^k inputs are addressed by one flat index, so that a
    split of millions is a permutation of integers; they are decoded when a batch is read.

    p = 2 (the parity of k bits) is allowed here; the theory of maximum margins refuses it.
    """

    p: int
    k: int

    def __post_init__(self) -> None:
        if self.p < 2 or self.k < 2:
            raise ValueError(f"p = {self.p} and k = {self.k}: modular addition needs p ≥ 2 and k ≥ 2")
        if self.p**self.k >= 2**62:
            raise ValueError(f"{self.p}^{self.k} inputs have no 64-bit index")

    @property
    def size(self) -> int:
        return int(self.p**self.k)

    def inputs(self, flat: Tensor) -> Tensor:
        """Flat indices (...) to inputs (..., k)."""
        return decode_inputs(flat, self.p, self.k)

    def flat(self, inputs: Tensor) -> Tensor:
        """Inputs (..., k) to flat indices (...)."""
        if bool(((inputs < 0) | (inputs >= self.p)).any()):
            raise ValueError(f"inputs must lie in 0..{self.p - 1}")
        places = torch.tensor([self.p**i for i in range(self.k - 1, -1, -1)], device=inputs.device)
        return (inputs * places).sum(-1)

    def labels(self, inputs: Tensor) -> Tensor:
        return inputs.sum(-1) % self.p

    def split(self, seeds: Seeds, train: int) -> tuple[Tensor, Tensor]:
        """Flat indices of ``train`` random inputs per seed, and of the others: (seeds, train), (seeds, rest)."""
        if not 1 <= train <= self.size:
            raise ValueError(f"{train} training inputs cannot be drawn from {self.size}")
        order = seeds.permutation(f"split of {self.p}^{self.k}", self.size)
        return order[:, :train], order[:, train:]

    def features(self, frequency: int) -> Tensor:
        """cos and sin of one frequency over the p tokens: (2, p)."""
        if not 1 <= frequency <= self.p // 2:
            raise ValueError(f"frequencies lie in 1..{self.p // 2}, not {frequency}")
        angle = 2 * math.pi / self.p * (frequency * torch.arange(self.p) % self.p).double()
        return torch.stack([angle.cos(), angle.sin()])

    def mirrored(self, train: Tensor, validation: Tensor) -> Tensor:
        """Which validation pairs (a, b) have (b, a) in training: (seeds, n), for k = 2."""
        if self.k != 2:
            raise ValueError("a mirror image is that of a pair")
        known = torch.zeros(len(train), self.size, dtype=torch.bool, device=train.device).scatter_(1, train, True)
        return known.gather(1, self.flat(self.inputs(validation).flip(-1)))

    def vocabulary(self, form: Form = "short") -> int:
        """Numbers, the sign =, and in the longer form an operator."""
        return self.p + (1 if form == "short" else 2)

    def length(self, form: Form = "short") -> int:
        return self.k + 1 if form == "short" else 2 * self.k

    def sequence(self, inputs: Tensor, form: Form = "short") -> Tensor:
        """Tokens ``a_1 ... a_k =`` or ``a_1 o a_2 o ... a_k =`` of inputs (..., k): (..., length). The answer is
        asked for at the last one."""
        equals = torch.full_like(inputs[..., :1], self.p)
        if form == "short":
            return torch.cat([inputs, equals], -1)
        if form != "operators":
            raise ValueError(f"unknown form '{form}' (allowed: short, operators)")
        tokens = torch.full_like(inputs.repeat_interleave(2, -1), self.p + 1)
        tokens[..., 0::2] = inputs
        tokens[..., -1:] = equals
        return tokens


def pair(case: str) -> tuple[int, int]:
    """'7-3' to (p, k) = (7, 3)."""
    p, _, k = case.partition("-")
    return int(p), int(k)


def check_pairs(cases: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no pair p-k of the theory, and pairs with too many inputs to go through them all."""
    for case in cases:
        try:
            p, k = pair(case)
        except ValueError:
            raise ValueError(f"write pairs as p-k, such as 7-3, not '{case}'") from None
        check_modulus(p, k)
        if p**k > 100_000:
            raise ValueError(f"{case} has {p**k} inputs; at most 100,000 are enumerated here")
    return cases
