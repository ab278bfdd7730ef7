"""The XOR mixture over the dimension: how many samples do heads on gradient features and fixed kernels need?"""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..fixed_features.arms import stepped_network
from ..fixed_features.learners import exact_kernels, kernel_ridge, ridge_head
from ..learners import hidden_layer, wrong
from ..params import FirstStep, Testing, check_growing
from ..problem import GaussianMixture

RATIO = 2.83  # √d/σ_B, at which the Bayes accuracy is 95.6 % in every dimension
NEED_NEURONS = 128  # m, of which the network has 4m


class Params(FirstStep, Testing):
    need_dims: tuple[PositiveInt, ...] = Field((49, 70, 100), description="dimensions at which samples are counted")
    need_ratios: tuple[PositiveFloat, ...] = Field(
        (0.0075, 0.015, 0.03, 0.06, 0.12, 0.2), min_length=2, description="samples over d² there"
    )

    @model_validator(mode="after")
    def _needs_grow(self) -> Self:
        check_growing("need_dims", self.need_dims)
        check_growing("need_ratios", self.need_ratios)
        return self


part = lab.Part(
    "sample_needs",
    params=Params,
    presets={
        "smoke": lab.PartPreset(need_dims=(25, 36), need_ratios=(0.05, 0.2)),
        "paper": lab.PartPreset(arms=("xor-needs-ntk",), need_dims=(49, 70, 100, 144)),
    },
)


@part.arm(
    "xor-needs",
    over={"dim": lambda p: p.need_dims, "method": ("gradient", "quadratic")},
    uses=("threshold", "test_samples", "need_ratios"),
    chunk=2,
    tolerance=0.05,
)
def xor_needs(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int, method: str) -> None:
    """Accuracy with few and with more samples, those of the smaller sizes among those of the larger ones."""
    _needs(params, seeds, record, dim, method, params.need_ratios)


@part.arm(
    "xor-needs-ntk",
    over={"dim": lambda p: p.need_dims},
    uses=("test_samples", "need_ratios"),
    optional=True,
    chunk=1,
    tolerance=0.05,
)
def xor_needs_ntk(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int) -> None:
    """The same for the exact tangent kernel, which needs more samples: up to one and a half times as many."""
    _needs(params, seeds, record, dim, "ntk", (*params.need_ratios, 1.5 * params.need_ratios[-1]))


def _needs(
    params: Params, seeds: Seeds, record: lab.Recorder, dim: int, method: str, ratios: tuple[float, ...]
) -> None:
    problem = GaussianMixture.xor(dim, math.sqrt(dim) / RATIO)
    train = problem.sample(seeds, "train", round(ratios[-1] * dim**2))
    test = problem.sample(seeds, "test", params.test_samples)
    root = math.sqrt(dim)
    for ratio in ratios:
        some = train.part(0, round(ratio * dim**2))
        if method == "gradient":
            threshold = params.threshold * problem.deviation * root
            net = stepped_network(seeds, some, neurons=NEED_NEURONS, threshold=threshold, knot=root / 2)
            fitted = ridge_head(hidden_layer(net), some, test.inputs)
        else:
            typical = root * math.sqrt(1 + problem.deviation**2)
            fitted = kernel_ridge(exact_kernels(dim, typical)[method], some, test.inputs)
        accuracy = 1 - wrong(fitted.outputs, test.labels)
        record(at={"samples": some.labels.shape[1]}, trials=params.test_samples, test_accuracy=accuracy)
