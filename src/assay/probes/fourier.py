"""Which frequencies does a model use for cyclic tokens? Spectra of weights and of logits.

Tokens 0..p−1 are cyclic when 0 follows p−1: numbers mod p, weekdays, months, hours. Transforms follow ``torch.fft``,
û(j) = Σ_a u(a) exp(−2πi ja/p), so that cos(θ + 2πζa/p) has its phase θ at the frequency +ζ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from assay._reports import Report, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import one_of, whole

MOST_VECTORS = 120  # in a figure


@dataclass(frozen=True, repr=False)
class FourierSpectrum(Report):
    """Spectra of real vectors over cyclic tokens; ``...`` stands for the axes of the weight besides the tokens'.

    ``power`` (..., frequencies) belongs to ``frequencies`` (frequencies,). ``share`` (...) is the largest power over
    their sum, NaN for a vector without any or with an entry that is not finite, ``peak`` (...) its frequency and
    ``phase`` (...) the angle there. ``dc_share`` (...) is the part of the whole power in the constant, ``norm`` (...)
    the vector's length.
    """

    frequencies: Tensor
    power: Tensor
    share: Tensor
    peak: Tensor
    phase: Tensor
    dc_share: Tensor
    norm: Tensor

    @property
    def normalised(self) -> Tensor:
        """Power divided by its sum: (..., frequencies)."""
        return _ratio(self.power, self.power.sum(-1, keepdim=True))

    def headline(self) -> str:
        strongest, without = float(self.share.nanmean()), int(self.share.isnan().sum())
        left_out = f"; {without} without power, or not finite, are left out" if without else ""
        count = self.share.numel() - without
        return f"{count} vectors, whose strongest frequency has {strongest:.1%} of the power in the mean{left_out}"

    def table(self) -> list[dict[str, Any]]:
        """A row per frequency: its mean share of the power, and how many vectors have their peak there."""
        flat = self.normalised.reshape(-1, self.power.shape[-1]).nanmean(0).tolist()
        peaks = self.peak[self.share.isfinite()].tolist()
        rows = zip(self.frequencies.tolist(), flat, strict=True)
        return [{"frequency": f, "share": share, "peaks": peaks.count(f)} for f, share in rows]

    def figure(self) -> Any:
        """Every vector's share of its power by frequency, vectors in the order of their peaks: the longest 120."""
        shares = self.normalised.reshape(-1, len(self.frequencies)).cpu()
        lengths, known = self.norm.flatten().cpu(), shares.isfinite().all(1)
        kept = torch.where(known, lengths, -1.0).argsort(descending=True)[: min(MOST_VECTORS, int(known.sum()))]
        best, peak = shares[kept].max(1)
        order = sorted(range(len(kept)), key=lambda i: (int(peak[i]), -float(best[i])))
        cells = [
            {"vector": place, "frequency": frequency, "share": share}
            for place, i in enumerate(order)
            for frequency, share in zip(self.frequencies.tolist(), shares[kept[i]].tolist(), strict=True)
        ]
        drawn = (
            chart(cells)
            .mark_rect()
            .encode(
                x={"field": "vector", "type": "ordinal", "axis": {"labels": False, "ticks": False}, "title": "vectors"},
                y={"field": "frequency", "type": "ordinal", "sort": "descending"},
                color={
                    "field": "share",
                    "type": "quantitative",
                    "title": "share of power",
                    "scale": {"domain": [0, 1]},
                },
            )
        )
        return drawn.properties(width=380, height=180)


@of_tensors
def fourier_probe(
    weight: Tensor,
    axis: int = 0,
    *,
    fold: bool = True,
    dc: Literal["drop", "keep"] = "drop",
    tokens: int | None = None,
) -> FourierSpectrum:
    """The spectrum of ``weight`` along ``axis``, whose entries are cyclic tokens in order.

    ``fold`` adds the power at −j to that at j: unfolded, a pure cosine has a share of one half only. ``dc="drop"``
    leaves the constant out of ``power`` and ``share``. ``tokens`` is the number of tokens you expect along the axis.
    """
    one_of("dc", dc, ("drop", "keep"))
    if weight.is_complex() or weight.ndim == 0:
        raise ValueError("the probe reads real weights with an axis of tokens")
    values = weight.detach().movedim(axis, -1)
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    p = values.shape[-1]
    if tokens is not None and p != tokens:
        raise ValueError(f"the weight has {p} rows along axis {axis}, and there are {tokens} tokens")
    whole("the number of tokens", p, 3)  # fewer have no frequency to speak of
    transform = torch.fft.fft(values)
    every = transform.abs().square()
    half = p // 2
    if fold:
        power = every[..., : half + 1].clone()
        power[..., 1 : (p + 1) // 2] *= 2
    else:
        power = every
    first = 1 if dc == "drop" else 0
    power = power[..., first:]
    best = power.argmax(-1)
    peak = best + first
    return FourierSpectrum(
        frequencies=torch.arange(first, first + power.shape[-1], device=weight.device),
        power=power,
        share=_ratio(power.amax(-1), power.sum(-1)),
        peak=peak,
        phase=transform.angle().take_along_dim(peak.unsqueeze(-1), -1).squeeze(-1),
        dc_share=_ratio(every[..., 0], every.sum(-1)),
        norm=torch.linalg.vector_norm(values, dim=-1),
    )


def decode_inputs(flat: Tensor, p: int, k: int) -> Tensor:
    """The digits in base p, highest first, of flat indices (...) below p^k: (..., k)."""
    places = torch.tensor([p**place for place in range(k - 1, -1, -1)], device=flat.device)
    return flat.unsqueeze(-1) // places % p


@dataclass(frozen=True, repr=False)
class LogitSpectrum(Report):
    """How much of a function of k cyclic inputs is modular addition. ``by_frequency`` (p//2,) has the share of the
    power on the modes (j, ..., j, −j) for the folded frequencies j = 1, 2, ...; ``share`` is their sum. Both are NaN
    where a logit is not finite."""

    share: float
    by_frequency: Tensor
    sampled: bool

    def headline(self) -> str:
        if not math.isfinite(self.share):
            return "the logits are not finite, and their power has no shares"
        return f"{self.share:.1%} of the logits' power is modular addition{' (estimated)' if self.sampled else ''}"

    def table(self) -> list[dict[str, Any]]:
        """A row per folded frequency."""
        return [{"frequency": j, "share": share} for j, share in enumerate(self.by_frequency.tolist(), 1)]

    def figure(self) -> Any:
        """The share of each frequency."""
        return chart(self.table()).mark_bar().encode(x="frequency:O", y="share:Q").properties(width=380, height=200)


@of_tensors
def logit_fourier(
    f: Callable[[Tensor], Tensor] | Tensor,
    p: int,
    k: int,
    *,
    samples: int | None = None,
    generator: torch.Generator | None = None,
    limit: int = 5_000_000,
    chunk: int = 16_384,
) -> LogitSpectrum:
    """The share of the logits' power on the diagonal (j, ..., j, −j) of their (k+1)-dimensional transform.

    ``f`` maps inputs (n, k) of integers below p to logits (n, p), or is the table of logits (p, ..., p, p). The mean
    over classes is taken off each input's logits first: no softmax sees it. A function of a_1 + ... + a_k − c alone
    has a share of 1. With ``samples`` the share is estimated, without bias in its numerator, from that many random
    inputs; otherwise all p^k are read, at most ``limit``.
    """
    whole("p", p, 2)
    whole("k", k, 1)
    if samples is not None:
        whole("samples", samples, 2)  # an estimate without bias takes pairs
    total, modes = 0.0, torch.zeros(p, dtype=torch.complex128)
    squares, count = torch.zeros(p, dtype=torch.float64), 0
    for inputs, logits in _logits(f, p, k, samples, generator, limit, chunk):
        if logits.shape != (len(inputs), p):
            raise ValueError(f"the logits have shape {tuple(logits.shape)}, not ({len(inputs)}, {p})")
        values = logits.detach().double().cpu()
        values = values - values.mean(1, keepdim=True)
        # Row by row the class is counted from the right answer; then a diagonal mode is one Fourier coefficient.
        answer = inputs.sum(1, keepdim=True).cpu()
        aligned = values.gather(1, (answer + torch.arange(p)) % p)
        each = torch.fft.fft(aligned).conj()
        total += float(values.square().sum())
        modes, squares, count = modes + each.sum(0), squares + each.abs().square().sum(0), count + len(inputs)
    if total == 0:
        raise ValueError("the logits are the same for all classes: there is no power to share out")
    power = modes.abs().square() / count**2
    if samples is not None:
        power = (modes.abs().square() - squares) / (count * (count - 1))
    shares = power / (p * total / count)
    folded = shares[1 : p // 2 + 1].clone()
    folded[: (p - 1) // 2] *= 2
    return LogitSpectrum(float(folded.sum()), folded, samples is not None)


def _logits(
    f: Callable[[Tensor], Tensor] | Tensor,
    p: int,
    k: int,
    samples: int | None,
    generator: torch.Generator | None,
    limit: int,
    chunk: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    if isinstance(f, Tensor):
        if f.shape != (p,) * (k + 1):
            raise ValueError(f"a table of logits has shape {(p,) * (k + 1)}, not {tuple(f.shape)}")
        table = f.reshape(-1, p)
    if samples is None and p**k > limit:
        raise ValueError(f"{p}^{k} = {p**k} inputs are more than the limit of {limit}: give samples=")
    # As one random number below p^k may not fit into 64 bits, inputs are drawn digit by digit.
    for start in range(0, p**k if samples is None else samples, chunk):
        stop = min(start + chunk, p**k if samples is None else samples)
        if samples is None:
            inputs = decode_inputs(torch.arange(start, stop), p, k)
        else:
            inputs = torch.randint(p, (stop - start, k), generator=generator)
        if isinstance(f, Tensor):
            places = torch.tensor([p**place for place in range(k - 1, -1, -1)])
            yield inputs, table[(inputs * places).sum(1).to(table.device)]
        else:
            with torch.no_grad():
                yield inputs, f(inputs)


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    return above / below.where(below > 0, math.nan)
