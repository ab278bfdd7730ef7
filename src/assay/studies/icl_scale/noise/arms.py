"""What does noise in the prompt do to networks of every rank? Their exact errors on one task after training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from assay import lab
from assay.methods import rank_noise
from assay.training import Seeds

from ..learners import answers
from ..params import Regression
from ..problem import InContextRegression
from ..theory import evaluation_error, gap, optimal_gains

SPECTRA = ("all", "important")  # all directions occur in pretraining, or those of the task alone


class Params(Regression):
    useful: tuple[PositiveFloat, ...] = Field((1.0, 0.8), min_length=1, description="a task within the top directions")
    curve: tuple[float, ...] = Field((1, 0.8, 0.6, 0.5, 0.4, 0.3), description="a task that uses all directions")
    prompt: int = Field(20, ge=1, description="examples M in a prompt of the evaluation")
    lengths: tuple[PositiveInt, ...] = Field((10, 20, 40), min_length=1, description="further M, for the best rank")
    noises: tuple[float, ...] = Field((0, 0.5, 1, 2, 4, 8), min_length=2, description="variances σ² of label noise")
    long_prompt: int = Field(1280, ge=1, description="M of a long prompt, in which sampling noise is small")
    test_prompts: int = Field(40_000, ge=100, description="sampled prompts per seed")

    @model_validator(mode="after")
    def _tasks_fit(self) -> Params:
        if len(self.useful) >= self.dim or len(self.curve) != self.dim:
            raise ValueError(f"in {self.dim} dimensions useful has fewer entries and curve has {self.dim}")
        if min(self.noises) < 0 or sorted(set(self.noises)) != list(self.noises):
            raise ValueError("noises are variances in ascending order, none negative")
        return self

    def spectrum(self, name: str) -> InContextRegression:
        """The tokens; of the ``important`` ones the directions beyond the task's have no variance."""
        kept = len(self.useful) if name == "important" else self.dim
        return InContextRegression((*self.eigenvalues[:kept], *[0.0] * (self.dim - kept)))

    def task(self, weights: Sequence[float], seeds: Seeds) -> Tensor:
        """w in the basis of the features (d,)."""
        padded = (*weights, *[0.0] * (self.dim - len(weights)))
        return torch.tensor(padded, device=seeds.device, dtype=seeds.dtype)


part = lab.Part(
    "noise",
    params=Params,
    presets={
        "smoke": lab.PartPreset(test_prompts=2000),
        "paper": lab.PartPreset(curve=(1, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), test_prompts=200_000),
    },
)


def _closed_form(params: Params, lam: Tensor, w: Tensor, length: int, sigma2: float) -> Tensor:
    """Theorem 5.4.2: the error of the optimum at ranks 0 to d on a task in the basis of the features."""
    return rank_noise(lam, pretraining=params.examples, examples=length, noise=sigma2, weights=w).error


@part.arm(
    "noise",
    over={"spectrum": SPECTRA},
    uses=(*Regression.model_fields, "useful", "curve", "prompt", "lengths", "noises", "long_prompt"),
    tolerance=0.05,
)
def noise(params: Params, seeds: Seeds, record: lab.Recorder, *, spectrum: str) -> None:
    """Networks of every rank trained on sampled prompts; their exact error under noise, beside the closed form."""
    problem = params.spectrum(spectrum)
    network = params.pretraining().train(problem, seeds, params.ranks)
    double = Seeds(seeds.values, seeds.device, torch.float64)
    effective, lam = network.effective().double(), problem.spectrum(double)
    covariance, features = problem.covariance(double), problem.features(double)
    tasks = {name: params.task(getattr(params, name), double) for name in ("useful", "curve")}
    lengths = sorted({*params.lengths, params.prompt, params.long_prompt})
    for task, w in tasks.items():
        rotated = (features @ w).unsqueeze(1)
        for length in lengths:
            for sigma2 in params.noises:
                found = evaluation_error(effective, covariance.unsqueeze(1), rotated, length, sigma2)
                exact = _closed_form(params, lam, w, length, sigma2)
                for at, r in enumerate(params.ranks):
                    record(
                        at={"task": task, "length": length, "noise": float(sigma2), "rank": r},
                        error=found.total[:, at],
                        bias=found.bias[:, at],
                        noise_part=(found.label_noise + found.input_noise)[:, at],
                        optimum=float(exact[r]),
                    )
    signal = float((lam * tasks["useful"].square()).sum())
    least = len(params.useful)
    for r in range(least + 1, params.dim + 1):
        slope = gap(lam, params.examples, least, r, signal, params.prompt, 1.0)
        slope -= gap(lam, params.examples, least, r, signal, params.prompt, 0.0)
        record(at={"rank": r}, predicted_slope=slope, long_pretraining_slope=(r - least) / params.prompt)


@part.arm(
    "sampled-noise",
    uses=("dim", "largest", "smallest", "examples", "useful", "prompt", "noises", "test_prompts"),
    tolerance=1e-3,
)
def sampled_noise(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The optimum of every rank on sampled prompts with noisy and with flipped labels, the same for all ranks."""
    problem = params.problem()
    lam, w = problem.spectrum(seeds), params.task(params.useful, seeds)
    features = problem.features(seeds).to(seeds.dtype)
    gains = torch.stack([optimal_gains(lam, params.examples, r) for r in params.ranks])
    networks = (features.unsqueeze(1) * gains.unsqueeze(1)) @ features.unsqueeze(1).mT
    clean = problem.sample(seeds, "test prompts", params.test_prompts, params.prompt, features @ w)
    deviations = seeds.normal("test noise", params.test_prompts, params.prompt)
    for sigma2 in params.noises:
        noisy = clean.noisy(deviations, sigma2**0.5)
        errors = (answers(noisy, networks) - noisy.targets.unsqueeze(1)).square().mean(-1)
        exact = _closed_form(params, lam, w, params.prompt, sigma2)
        for at, r in enumerate(params.ranks):
            record(at={"noise": float(sigma2), "rank": r}, error=errors[:, at], optimum=float(exact[r]))
    order = seeds.uniform("order of flips", params.test_prompts, params.prompt).argsort(-1).argsort(-1)
    for flipped in (0.0, 0.25, 0.5, 0.75, 1.0):
        right = answers(clean.flipped(order, flipped), networks).sign() == clean.targets.sign().unsqueeze(1)
        for at, r in enumerate(params.ranks):
            record(
                at={"flipped": flipped, "rank": r},
                trials=params.test_prompts,
                accuracy=right[:, at].double().mean(-1),
            )
