"""How fast gradient descent solves a least-squares problem: conditioning, step sizes, error bounds, loops needed.

Everything is about ½‖y − Xθ‖² with G = XᵀX, μ and L its smallest and largest eigenvalue, κ = L/μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from assay._reports import Report, curves

from ._arrays import of_tensors
from ._checks import all_finite, number, one_of, whole

Number = TypeVar("Number", float, Tensor)
STEP_RULES = ("1/L", "2/(L+mu)", "chebyshev")
BOUNDS = (*STEP_RULES, "theorem")


@dataclass(frozen=True, repr=False)
class PromptCondition(Report):
    """The extreme eigenvalues of XᵀX, one pair per prompt, and their ratio κ."""

    smallest: Tensor
    largest: Tensor

    @property
    def condition(self) -> Tensor:
        return self.largest / self.smallest

    def headline(self) -> str:
        worst = float(self.condition.max())
        return f"condition numbers of {self.condition.numel()} prompts, the largest {worst:.4g}"

    def table(self) -> list[dict[str, Any]]:
        """A row per prompt, with the loops that a thousandth of error takes at the step 1/L."""
        rows = zip(self.smallest.flatten().tolist(), self.largest.flatten().tolist(), strict=True)
        return [
            {
                "prompt": place,
                "smallest": low,
                "largest": high,
                "condition": high / low,
                "loops": required_loops(max(1.0, high / low), 1e-3),
            }
            for place, (low, high) in enumerate(rows)
        ]

    def figure(self) -> Any:
        """The error bound of the worst prompt over the loops, by step rule."""
        worst = max(1.0, float(self.condition.max()))
        most = required_loops(worst, 1e-3)
        points = sorted({round(most * k / 40) for k in range(41)})
        rows = [
            {"loops": loops, "bound": error_bound(worst, loops, bound=rule), "steps": rule}
            for rule in STEP_RULES
            for loops in points
        ]
        return curves(rows, "loops", "bound", "steps", bound="largest error")


@of_tensors
def prompt_condition(inputs: Tensor) -> PromptCondition:
    """The conditioning of the examples ``inputs`` (..., n, dim); it says how many loops a prompt needs.

    Refused where κ does not exist: with n ≤ dim, or with linearly dependent columns. Descent from zero then ends at
    the solution of minimum norm, and the directions outside the examples are never learned.
    """
    all_finite("examples", inputs)
    examples, dim = inputs.shape[-2:]
    limit = "descent from zero ends at the minimum-norm solution"
    if examples <= dim:
        raise ValueError(f"{examples} examples in {dim} dimensions: a condition number needs n > d ({limit})")
    values = torch.linalg.eigvalsh(inputs.mT @ inputs)
    smallest, largest = values[..., 0], values[..., -1]
    if bool((smallest <= examples * torch.finfo(inputs.dtype).eps * largest).any()):
        raise ValueError(f"the examples of a prompt are linearly dependent, so κ is infinite ({limit})")
    return PromptCondition(smallest, largest)


def error_bound(condition: Number, loops: int, alpha: float = 1.0, *, bound: str = "1/L") -> Number:
    """The largest error |⟨output, θ*⟩ − α| after ``loops`` from zero, for unit θ*; also |α|·‖θ − θ*‖.

    ``1/L``, ``2/(L+mu)`` and ``chebyshev`` are the sharp bounds of these step rules: (1 − 1/κ)^T, ((κ−1)/(κ+1))^T and
    1/T_T((κ+1)/(κ−1)). ``theorem`` is the printed exp(−T/(2κ)) for 1/L, loose by a factor of two or more in the
    exponent.
    """
    _check_condition(condition)
    whole("loops", loops, 0)
    one_of("bound", bound, BOUNDS)
    if bound == "1/L":
        return abs(alpha) * (1 - 1 / condition) ** loops
    if bound == "2/(L+mu)":
        return abs(alpha) * ((condition - 1) / (condition + 1)) ** loops
    if bound == "chebyshev":
        root: Number = condition**0.5
        rate: Number = ((root - 1) / (root + 1)) ** loops
        return abs(alpha) * 2 * rate / (1 + rate**2)
    decay: Number = math.e ** (-loops / (2 * condition))
    return abs(alpha) * decay


def required_loops(condition: float, tolerance: float, alpha: float = 1.0, *, bound: str = "1/L") -> int:
    """The fewest loops whose ``error_bound`` is at most ``tolerance``."""
    _check_condition(condition)
    number("tolerance", tolerance, above=0)
    if error_bound(condition, 0, alpha, bound=bound) <= tolerance:
        return 0
    most = 1
    while error_bound(condition, most, alpha, bound=bound) > tolerance:
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (
            (middle, most) if error_bound(condition, middle, alpha, bound=bound) > tolerance else (least, middle)
        )
    return most


def step_sizes(rule: str, inputs: Tensor, loops: int) -> Tensor:
    """The step sizes of a rule for each prompt (..., n, dim): (loops, ...). Differentiable in the inputs."""
    one_of("the step rule", rule, STEP_RULES)
    if rule == "1/L":
        all_finite("examples", inputs)
        largest = largest_eigenvalue(inputs)
        if not bool((largest > 0).all()):
            raise ValueError("a prompt whose examples are all zero has no step size")
        return (1 / largest).expand(loops, *largest.shape)
    if rule == "2/(L+mu)":
        found = prompt_condition(inputs)
        step = 2 / (found.largest + found.smallest)
        return step.expand(loops, *step.shape)
    found = prompt_condition(inputs)
    middle, half = (found.largest + found.smallest) / 2, (found.largest - found.smallest) / 2
    nodes = inputs.new_tensor(chebyshev_nodes(loops)).reshape(-1, *[1] * middle.ndim)
    return 1 / (middle + half * nodes)


def largest_eigenvalue(inputs: Tensor) -> Tensor:
    """L = λ_max(XᵀX) of each prompt: (...)."""
    values: Tensor = torch.linalg.eigvalsh(inputs.mT @ inputs)
    return values[..., -1]


@cache
def chebyshev_nodes(loops: int) -> tuple[float, ...]:
    """The roots of the Chebyshev polynomial of degree ``loops``, in Leja's order.

    In their natural order the long steps come in a row, and hundreds of loops overflow before the short steps can
    cancel them; each next root is therefore the one farthest, in the product of distances, from those already used.
    """
    left = [math.cos((2 * index + 1) * math.pi / (2 * loops)) for index in range(loops)]
    # The logarithm of the product of distances to the roots used so far; the first root is the largest, a short step.
    spread = [0.0] * loops
    ordered: list[float] = []
    while left:
        chosen = max(range(len(left)), key=lambda index: (spread[index], left[index]))
        root = left.pop(chosen)
        spread.pop(chosen)
        ordered.append(root)
        spread = [total + math.log(abs(other - root)) for total, other in zip(spread, left, strict=True)]
    return tuple(ordered)


def _check_condition(condition: float | Tensor) -> None:
    # Written so that NaN is refused too.
    if not bool((torch.as_tensor(condition) >= 1).all()) or not bool(torch.as_tensor(condition).isfinite().all()):
        raise ValueError(f"a condition number is a finite number of at least 1, not {condition}")
