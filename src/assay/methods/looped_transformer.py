"""A linear transformer whose one layer is looped: it runs gradient descent on the examples in its prompt.

A prompt is a matrix [[X, y], [qᵀ, α]]: n examples with their targets, and a query row. With the weights of the
construction (the default) T loops turn the query row into −αθ⁽ᵀ⁾, the T-th iterate of gradient descent on
½‖y − Xθ‖². That makes the module a differentiable, weight-tied least-squares solver: ``solve(X, y)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._arrays import of_tensors
from ._checks import all_finite, one_of, whole
from ._precision import full_precision
from .gradient_descent_rates import (
    PromptCondition,
    error_bound,
    largest_eigenvalue,
    prompt_condition,
    required_loops,
    step_sizes,
)

__all__ = [
    "LoopedLinearTransformer",
    "PromptCondition",
    "error_bound",
    "estimates",
    "linear_attention",
    "make_prompt",
    "prompt_condition",
    "required_loops",
    "step_sizes",
]

MASKS = ("query_reads_examples", "query_reads_all", "causal")


@of_tensors
def make_prompt(inputs: Tensor, targets: Tensor, alpha: float = 1.0, start: Tensor | None = None) -> Tensor:
    """The prompt (..., n+1, dim+1) of examples (..., n, dim), targets (..., n) and a query.

    ``start`` (..., dim) is the parameter from which descent starts (zero when None).
    """
    if alpha == 0:
        raise ValueError("α = 0 asks for nothing: the parameter cannot be read off the query row")
    query = inputs.new_zeros(*inputs.shape[:-2], inputs.shape[-1] + 1)
    query[..., -1] = alpha
    if start is not None:
        query[..., :-1] = -alpha * start
    return torch.cat([torch.cat([inputs, targets.unsqueeze(-1)], -1), query.unsqueeze(-2)], -2)


def estimates(query_rows: Tensor, alpha: float | Tensor) -> Tensor:
    """The parameters −q/α that query rows (..., dim+1) or (..., dim) of a loop stand for; the last entry is α's."""
    alpha = torch.as_tensor(alpha, dtype=query_rows.dtype, device=query_rows.device)
    if bool((alpha == 0).any()):
        raise ValueError("α = 0: the parameter cannot be read off the query row")
    return -query_rows[..., :-1] / alpha.unsqueeze(-1)


def linear_attention(prompt: Tensor, query_key: Tensor, value_output: Tensor, mask: Tensor) -> Tensor:
    """(M ∘ (Z Q Zᵀ)) Z P for prompts (..., n+1, dim+1): attention without softmax, all rows at O(n² dim)."""
    return (mask * (prompt @ query_key @ prompt.mT)) @ prompt @ value_output


class LoopedLinearTransformer(nn.Module):
    """``loops`` times Z ← Z − η·Attn(Z), then the negated query row.

    ``steps`` is a rule evaluated on every prompt (``"1/L"``, ``"2/(L+mu)"``, ``"chebyshev"``), a number, one number
    per loop, or a tensor (loops,) or (loops, ...batch). ``query_key`` and ``value_output`` (..., dim+1, dim+1) default
    to the construction, I and diag(1, …, 1, 0). An ``nn.Parameter`` given for any of the three is trained.
    ``fast`` computes the query row alone, O(n·dim) a loop; other masks than ``query_reads_examples`` change the other
    rows as well and need ``fast=False``.
    """

    query_key: Tensor
    value_output: Tensor
    steps: Tensor

    def __init__(
        self,
        dim: int,
        loops: int,
        steps: str | float | Sequence[float] | Tensor = "1/L",
        query_key: Tensor | None = None,
        value_output: Tensor | None = None,
        *,
        mask: str = "query_reads_examples",
        fast: bool = True,
    ) -> None:
        super().__init__()
        whole("dim", dim, 1)
        whole("loops", loops, 0)
        one_of("mask", mask, MASKS)
        if fast and mask != MASKS[0]:
            raise ValueError(f"the mask '{mask}' changes more than the query row: it needs fast=False")
        self.dim, self.loops, self.mask, self.fast = dim, loops, mask, fast
        self._own_weights = query_key is not None or value_output is not None
        keep = torch.eye(dim + 1)
        keep[-1, -1] = 0
        self._hold("query_key", torch.eye(dim + 1) if query_key is None else query_key)
        self._hold("value_output", keep if value_output is None else value_output)
        if isinstance(steps, str):
            self.rule: str | None = steps
            # An unknown rule is refused here, on the smallest prompt there is, and not in a forward pass.
            step_sizes(steps, torch.eye(2)[:, :1], max(loops, 1))
        else:
            self.rule = None
            # Numbers are kept in double precision; in single, 0.1 would differ in a double-precision prompt.
            given = steps if isinstance(steps, Tensor) else torch.as_tensor(steps, dtype=torch.float64)
            self._hold("steps", _checked(given, loops))

    def _hold(self, name: str, value: Tensor) -> None:
        if isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    @property
    def constructed(self) -> bool:
        """Whether the weights are those of the construction, so that multiplying by them can be spared. Read off their
        values: a state dict or an assignment may have changed them since."""
        key, value = self.query_key, self.value_output
        if self._own_weights or key.requires_grad or value.requires_grad:
            return False
        keep = torch.eye(self.dim + 1, dtype=value.dtype, device=value.device)
        keep[-1, -1] = 0
        return torch.equal(key, torch.eye(self.dim + 1, dtype=key.dtype, device=key.device)) and torch.equal(
            value, keep
        )

    def forward(self, prompt: Tensor) -> Tensor:
        """The output (..., dim) for prompts (..., n+1, dim+1); αθ⁽ᵀ⁾ under the construction."""
        return -self.query_rows(prompt)[-1][..., : self.dim]

    @of_tensors
    def solve(self, inputs: Tensor, targets: Tensor, *, alpha: float = 1.0, start: Tensor | None = None) -> Tensor:
        """θ⁽ᵀ⁾ (..., dim) for examples (..., n, dim) and targets (..., n): an approximate least-squares solution."""
        output: Tensor = self(make_prompt(inputs, targets, alpha, start))
        return output / alpha

    @full_precision()
    def query_rows(self, prompt: Tensor) -> Tensor:
        """The query row before the first and after every loop: (loops+1, ..., dim+1)."""
        if not self.fast:
            return self.prompts(prompt)[..., -1, :]
        sizes = self.sizes(prompt)
        examples, row = prompt[..., :-1, :], prompt[..., -1, :]
        rows, constructed = [row], self.constructed
        for size in sizes:
            row = row - size.unsqueeze(-1) * self._query_attention(examples, row, constructed)
            rows.append(row)
        return torch.stack(rows)

    @full_precision()
    def prompts(self, prompt: Tensor) -> Tensor:
        """The whole prompt before the first and after every loop, by dense attention: (loops+1, ..., n+1, dim+1)."""
        states = [prompt]
        for size in self.sizes(prompt):
            states.append(states[-1] - size[..., None, None] * self.attention(states[-1]))
        return torch.stack(states)

    @full_precision()
    def attention(self, prompt: Tensor) -> Tensor:
        """One dense pass of the layer, without the residual connection: (..., n+1, dim+1)."""
        return linear_attention(prompt, self.query_key.to(prompt), self.value_output.to(prompt), self._mask(prompt))

    @full_precision()
    def sizes(self, prompt: Tensor) -> Tensor:
        """The step sizes used on these prompts: (loops,) or (loops, ...)."""
        if prompt.ndim < 2 or prompt.shape[-1] != self.dim + 1 or prompt.shape[-2] < 2:
            raise ValueError(f"prompts must be (..., n+1, {self.dim + 1}), not {tuple(prompt.shape)}")
        all_finite("prompts", prompt)
        inputs = prompt[..., :-1, :-1]
        if self.rule is not None:
            return step_sizes(self.rule, inputs, self.loops)
        given = self.steps.to(prompt)
        sizes = given.expand(self.loops) if given.ndim == 0 else given
        if self.loops and not isinstance(self.steps, nn.Parameter) and self.constructed:
            _warn_of_divergence(sizes.detach(), inputs.detach())
        return sizes

    def _query_attention(self, examples: Tensor, row: Tensor, constructed: bool) -> Tensor:
        """The only non-zero row of the attention's output: (..., dim+1)."""
        key = row if constructed else (row.unsqueeze(-2) @ self.query_key.to(row)).squeeze(-2)
        scores = examples @ key.unsqueeze(-1)
        read = (scores.mT @ examples).squeeze(-2)
        if constructed:
            return torch.cat([read[..., :-1], torch.zeros_like(read[..., -1:])], -1)
        return (read.unsqueeze(-2) @ self.value_output.to(row)).squeeze(-2)

    def _mask(self, prompt: Tensor) -> Tensor:
        rows = prompt.shape[-2]
        if self.mask == "causal":
            return prompt.new_ones(rows, rows).tril()
        mask = prompt.new_zeros(rows, rows)
        mask[-1, : rows if self.mask == "query_reads_all" else rows - 1] = 1
        return mask

    def extra_repr(self) -> str:
        steps = self.rule or ("learned" if isinstance(self.steps, nn.Parameter) else "given")
        return f"dim={self.dim}, loops={self.loops}, steps={steps}, mask={self.mask}, fast={self.fast}"


def _checked(steps: Tensor, loops: int) -> Tensor:
    all_finite("step sizes", steps.detach())
    if not bool((steps.detach() > 0).all()) or (steps.ndim > 0 and len(steps) != loops):
        raise ValueError(f"step sizes must be positive, one for all or one for each of {loops} loops")
    return steps


def _warn_of_divergence(sizes: Tensor, inputs: Tensor) -> None:
    largest = largest_eigenvalue(inputs)
    aligned = sizes.reshape(len(sizes), *[1] * (largest.ndim + 1 - sizes.ndim), *sizes.shape[1:])
    # For one constant step this is η ≥ 2/L; varying steps may overshoot one by one and still shrink the error together.
    if bool(((1 - aligned * largest).abs().log().sum(0) >= 0).any()):
        warnings.warn("these step sizes do not shrink the error on some prompt: η ≥ 2/L diverges", stacklevel=4)
