"""How close is a network to the largest margin on modular addition? The optimum, networks that attain it, certificates.

The network has k inputs a_j in 0..p−1, m neurons and activation z^k: f(a)[c] = Σ_i (Σ_j u_ij(a_j))^k w_i(c), kept as
U (..., k, p, m) and W (..., m, p); leading axes are networks. Its norm is ‖θ‖_{2,k+1} over neurons, and every neuron
takes all its k+1 vectors with it. Only odd p: at even p the frequency p/2 is its own mirror image and does better.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from assay._reports import Report, bars
from assay.probes.fourier import decode_inputs

from ._arrays import of_tensors
from ._checks import one_of, whole

Construction = Literal["polarisation", "thirds"]
CONSTRUCTIONS: tuple[Construction, ...] = ("polarisation", "thirds")


def check_modulus(p: int, k: int) -> None:
    """Refuse what the theory does not cover."""
    if whole("p", p) < 3 or p % 2 == 0:
        raise ValueError(f"p = {p}: the maximum margin is known for odd p from 3 on (p/2 is its own conjugate)")
    if whole("k", k) < 2:
        raise ValueError(f"k = {k}: with one input nothing makes neurons sparse; k must be at least 2")


def max_margin(p: int, k: int) -> float:
    """γ* = 2·k! / ((2k+2)^{(k+1)/2} (p−1) p^{(k−1)/2}), the largest margin at ‖θ‖_{2,k+1} = 1 (Theorem 4.9)."""
    check_modulus(p, k)
    return margin_formula(p, k)


def margin_formula(p: int, k: int) -> float:
    """The same expression for any p, to show where it does not apply (p even)."""
    return 2 * math.factorial(k) / (math.pow(2 * k + 2, (k + 1) / 2) * (p - 1) * math.pow(p, (k - 1) / 2))


def required_width(p: int, k: int, construction: Construction = "polarisation") -> int:
    """Neurons of a network that attains γ*: 2^{2k−2}(p−1), or 3^k(p−1)/2 with thirds.

    As a score it says how hard a modular task is: it grows by a factor 4, or 3, with every input.
    """
    check_modulus(p, k)
    return len(neuron_phases(k, construction)) * (p - 1) // 2


def neuron_phases(k: int, construction: Construction = "polarisation") -> Tensor:
    """The phases θ_1..θ_k of the neurons of one frequency: (neurons, k), with θ_w their sum.

    ``polarisation`` (Lemma 4.11): cos or sin of each input times signs, the first of them +. ``thirds``: every
    θ_l in {0, 2π/3, 4π/3}; each input contributes θ_l − 3 more turns or none, and z^k has no room for three.
    """
    one_of("construction", construction, CONSTRUCTIONS)
    if construction == "thirds":
        turns = torch.tensor(list(itertools.product(range(3), repeat=k)), dtype=torch.float64)
        return turns * (2 * math.pi / 3)
    sines = torch.tensor(list(itertools.product((0, 1), repeat=k)), dtype=torch.float64)
    flips = torch.tensor(list(itertools.product((0, 1), repeat=k - 1)), dtype=torch.float64)
    flips = torch.cat([torch.zeros(len(flips), 1, dtype=torch.float64), flips], 1)
    return (-math.pi / 2 * sines.unsqueeze(1) + math.pi * flips).reshape(-1, k)


def cosine_neurons(p: int, frequency: Tensor, phases: Tensor) -> tuple[Tensor, Tensor]:
    """Unit-norm neurons u_l(a) = β cos(θ_l + 2πζa/p), w(c) = β cos(Σθ_l + 2πζc/p) with β = √(2/((k+1)p)), from their
    frequencies (neurons,) and phases (neurons, k): (k, p, neurons) and (neurons, p). Each has J = γ* (Lemma 4.10)."""
    k = phases.shape[1]
    # ζa is reduced mod p first: the cosine of a large angle loses digits.
    turns = 2 * math.pi / p * (frequency.unsqueeze(1) * torch.arange(p, device=phases.device) % p).to(phases)
    beta = math.sqrt(2 / ((k + 1) * p))
    inputs = beta * torch.cos(phases.mT.unsqueeze(1) + turns.mT)
    return inputs, beta * torch.cos(phases.sum(1, keepdim=True) + turns)


def build_max_margin(
    p: int, k: int, construction: Construction = "polarisation", *, offsets: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A network (U, W) of norm 1 with margin γ* on every input, in float64: f(a)[c] = γ*(1[c = Σa] − 1/p).

    ``offsets`` ((p−1)/2, k) turns the phases of each frequency's inputs; the function stays the same.
    """
    check_modulus(p, k)
    phases = neuron_phases(k, construction)
    count, half = len(phases), (p - 1) // 2
    each = phases.repeat(half, 1)
    if offsets is not None:
        each = each + offsets.double().repeat_interleave(count, 0)
    inputs, outputs = cosine_neurons(p, torch.arange(1, half + 1).repeat_interleave(count), each)
    scale = (half * count) ** (-1 / (k + 1))
    return scale * inputs, scale * outputs


def network_logits(U: Tensor, W: Tensor, inputs: Tensor) -> Tensor:
    """f(a) for inputs (n, k): (..., n, p)."""
    k, p, _ = _shape(U, W)
    if inputs.shape[-1] != k or bool(((inputs < 0) | (inputs >= p)).any()):
        raise ValueError(f"inputs must be (n, {k}) of numbers in 0..{p - 1}")
    chosen = [U[..., l, :, :].index_select(-2, inputs[:, l].to(U.device)) for l in range(k)]
    return integer_power(torch.stack(chosen).sum(0), k) @ W


def integer_power(z: Tensor, k: int) -> Tensor:
    """z^k with the sign kept for odd k, by multiplication: far faster than a general power."""
    result = z
    for _ in range(whole("k", k, 1) - 1):
        result = result * z
    return result


def neuron_norms(U: Tensor, W: Tensor) -> Tensor:
    """‖θ_i‖: (..., m)."""
    squares: Tensor = U.square().sum((-3, -2)) + W.square().sum(-1)
    return squares.sqrt()


@of_tensors
def expected_margin(U: Tensor, W: Tensor) -> Tensor:
    """J(θ), the mean over all inputs of f[y] minus the mean wrong logit, without enumerating them: (...).

    J = k!/((p−1)p^k) Σ_i Σ_{j≠0} ŵ_i(−j) Π_l û_il(j). No vector needs mean zero. Differentiable.
    """
    return neuron_expected_margin(U, W).sum(-1)


def neuron_expected_margin(U: Tensor, W: Tensor) -> Tensor:
    """Each neuron's part of J: (..., m). Exact for any p from 2 on."""
    k, p, _ = _shape(U, W)
    product = torch.fft.fft(U, dim=-2).prod(-3) * torch.fft.fft(W, dim=-1).conj().mT
    scale = math.factorial(k) / ((p - 1) * float(p) ** k)
    parts: Tensor = scale * product[..., 1:, :].real.sum(-2)
    return parts


@dataclass(frozen=True, repr=False)
class MarginCertificate(Report):
    """What is known about a network's margin; every field has the networks' leading axes.

    margin ≤ expected ≤ bound: the smallest margin over inputs, its class-weighted mean J, and γ*·‖θ‖^{k+1}.
    ``exact`` tells whether all inputs were read; from a sample ``margin`` is only an upper bound of the true one.
    """

    margin: Tensor
    mean_margin: Tensor
    expected: Tensor
    bound: Tensor
    exact: bool

    @property
    def alignment_ratio(self) -> Tensor:
        """expected/bound ≤ 1; 1 exactly when every neuron is a cosine at one frequency with matching phases."""
        return self.expected / self.bound

    @property
    def margin_ratio(self) -> Tensor:
        """margin/bound ≤ alignment_ratio; 1 exactly for a network of maximum margin."""
        return self.margin / self.bound

    def is_max_margin(self, tolerance: float = 1e-6) -> Tensor:
        """Whether the margin is the maximum within ``tolerance``; a sample can only refute it."""
        if not self.exact:
            raise ValueError("a sampled margin is an upper bound and certifies nothing; read all inputs")
        return self.margin_ratio >= 1 - tolerance

    def headline(self) -> str:
        kind = "all inputs were read" if self.exact else "from a sample: the margin is an upper bound"
        return f"{self.margin.numel()} networks; {kind}"

    def table(self) -> list[dict[str, Any]]:
        """A row per network."""
        parts = {
            "margin": self.margin,
            "expected": self.expected,
            "bound": self.bound,
            "margin_ratio": self.margin_ratio,
            "alignment_ratio": self.alignment_ratio,
        }
        columns = {name: part.flatten().tolist() for name, part in parts.items()}
        return [
            {"network": place, **{name: values[place] for name, values in columns.items()}}
            for place in range(self.margin.numel())
        ]

    def figure(self) -> Any:
        """How much of the largest margin each network has, and how much its alignment allows."""
        rows = [
            {"network": str(row["network"]), "ratio": row[name], "what": what}
            for row in self.table()
            for name, what in (("margin_ratio", "margin"), ("alignment_ratio", "alignment"))
        ]
        return bars(rows, "network", "ratio", "what", ratio="share of the largest margin")


@of_tensors
def margin_certificate(
    U: Tensor,
    W: Tensor,
    *,
    samples: int | None = None,
    generator: torch.Generator | None = None,
    limit: int = 10_000_000,
) -> MarginCertificate:
    """The certificate of networks U (..., k, p, m), W (..., m, p), from all p^k inputs or ``samples`` random ones.

    Use float64 for exact statements: γ* of a unit-norm network is of order 1e-5 already at k = 3, p = 97.
    """
    k, p, m = _shape(U, W)
    gamma = max_margin(p, k)
    if samples is not None:
        whole("samples", samples, 1)
    elif p**k > limit:
        raise ValueError(f"{p}^{k} = {p**k} inputs are more than the limit of {limit}: give samples=")
    count = p**k if samples is None else samples
    networks = max(1, U[..., 0, 0, 0].numel())
    chunk = max(1, 2**24 // (networks * m))
    least, total = None, torch.zeros_like(W[..., 0, 0])
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        if samples is None:
            inputs = decode_inputs(torch.arange(start, stop, device=U.device), p, k)
        else:
            inputs = torch.randint(p, (stop - start, k), generator=generator).to(U.device)
        found = margins(network_logits(U, W, inputs), inputs.sum(-1) % p)
        least = found.amin(-1) if least is None else torch.minimum(least, found.amin(-1))
        total = total + found.sum(-1)
    assert least is not None
    bound = gamma * neuron_norms(U, W).pow(k + 1).sum(-1)
    return MarginCertificate(least, total / count, expected_margin(U, W), bound, samples is None)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """g = f[y] − max_{y'≠y} f[y'] of logits (..., n, p) and labels (n,) or (..., n): (..., n)."""
    index = labels.expand(logits.shape[:-1]).unsqueeze(-1)
    right = logits.gather(-1, index)
    wrong = logits.scatter(-1, index, -math.inf).amax(-1, keepdim=True)
    return (right - wrong).squeeze(-1)


def _shape(U: Tensor, W: Tensor) -> tuple[int, int, int]:
    if U.ndim < 3 or W.ndim != U.ndim - 1 or W.shape[:-2] != U.shape[:-3] or W.shape[-2:] != (U.shape[-1], U.shape[-2]):
        raise ValueError(f"U (..., k, p, m) and W (..., m, p) do not fit: {tuple(U.shape)} and {tuple(W.shape)}")
    return U.shape[-3], U.shape[-2], U.shape[-1]
