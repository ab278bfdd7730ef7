"""Any network, once per seed, trained as one: parameters and data carry a leading seed axis.

Seeds stay apart as long as everything that is computed from parameters is computed per seed. Losses, batches and
optimisers that work elementwise (SGD, Adam) are; clipping by one norm over all parameters, stopping when the mean is
good enough, or a statistic over the whole batch are not. For those there are versions here that go by the seed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from .seeds import Seeds, stream


class Stacked(nn.Module):
    """Networks of one architecture, one per seed, as one module.

    ``make()`` builds one network with torch's own initialisation; each seed's comes from its stream ``name``, whatever
    other seeds are beside it, and torch's global generator is left as it was. Normalisation layers must not keep
    running statistics (``track_running_stats=False``): they would be shared.
    """

    _skeleton: nn.Module

    def __init__(self, make: Callable[[], nn.Module], seeds: Seeds, name: str = "initial weights") -> None:
        super().__init__()
        networks = [_made(make, seed, name).to(seeds.device, seeds.dtype) for seed in seeds]
        parameters, buffers = stack_module_state(networks)
        if buffers:
            raise ValueError(
                f"the network keeps buffers ({', '.join(buffers)}), which training would change for all seeds; "
                "with normalisation layers say track_running_stats=False"
            )
        self._names = list(parameters)
        self.values = nn.ParameterList(nn.Parameter(value.detach()) for value in parameters.values())
        # Past torch's own bookkeeping: its shapes are no parameters of this module.
        self.__dict__["_skeleton"] = copy.deepcopy(networks[0]).to("meta")

    def train(self, mode: bool = True) -> Stacked:
        self._skeleton.train(mode)
        super().train(mode)
        return self

    @property
    def weights(self) -> dict[str, Tensor]:
        """The parameters by their names in one network, each (seeds, ...)."""
        return dict(zip(self._names, self.values, strict=True))

    def forward(self, inputs: Tensor, *, shared: bool = False) -> Tensor:
        """Outputs (seeds, batch, ...) on inputs (seeds, batch, ...), or on one batch for all where it is ``shared``."""

        def one(weights: dict[str, Tensor], batch: Tensor) -> Tensor:
            result: Tensor = functional_call(self._skeleton, weights, (batch,))
            return result

        every = vmap(one, in_dims=(0, None if shared else 0), randomness="error")
        try:
            outputs: Tensor = every(self.weights, inputs)
        except RuntimeError as error:
            if "randomness" not in str(error):
                raise
            raise ValueError(
                "the network draws random numbers (dropout?) from torch's global generator, which all seeds share; "
                "draw masks from seeds.uniform(...) instead, or call eval()"
            ) from None
        return outputs


def clip_by_seed(parameters: Iterable[Tensor], largest: float) -> Tensor:
    """Scale each seed's gradient to a norm of at most ``largest``; returns the norms before, (seeds,). (Clipping all
    parameters together would let one seed's large gradient shrink the steps of the others.)"""
    if largest <= 0:
        raise ValueError(f"the largest norm must be positive, not {largest}")
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    sizes = [torch.linalg.vector_norm(gradient.reshape(len(gradient), -1), dim=1) for gradient in gradients]
    norms: Tensor = torch.linalg.vector_norm(torch.stack(sizes), dim=0)
    factors = (largest / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
    return norms


class KeepBest:
    """Each seed's best weights so far: early stopping that couples no seeds. Train all for the same number of steps,
    offer a score per seed now and then, and take the weights of each seed's best moment at the end."""

    def __init__(self, network: Stacked) -> None:
        self._network = network
        self.scores: Tensor | None = None
        self._weights = [value.detach().clone() for value in network.values]

    def offer(self, scores: Tensor) -> Tensor:
        """Keep the present weights of the seeds whose score, (seeds,), is above their best; returns which. A score that
        is not a number is never kept."""
        scores = scores.detach()
        best = torch.full_like(scores, -torch.inf) if self.scores is None else self.scores
        better = scores > best
        self.scores = torch.where(better, scores, best)
        for kept, value in zip(self._weights, self._network.values, strict=True):
            mask = better.view(-1, *[1] * (value.dim() - 1))
            kept.copy_(torch.where(mask, value.detach(), kept))
        return better

    def restore(self) -> None:
        """Give the network each seed's best weights."""
        with torch.no_grad():
            for value, kept in zip(self._network.values, self._weights, strict=True):
                value.copy_(kept)


def _made(make: Callable[[], nn.Module], seed: int, name: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(seed, name).initial_seed())
        return make()
