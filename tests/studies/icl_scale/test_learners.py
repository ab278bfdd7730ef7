from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from assay.studies.icl_scale.learners import LinearAttention, Pretraining, answers
from assay.studies.icl_scale.problem import InContextRegression
from assay.studies.icl_scale.theory import lowest_loss, optimal_gains
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = InContextRegression((2.0, 1.0, 0.4))


def _network() -> LinearAttention:
    return LinearAttention(SEEDS.normal("k", 2, 3, 4), SEEDS.normal("q", 2, 3, 3), SEEDS.normal("v", 2, 4))


def test_answers_are_the_last_entry_of_the_attention_layer():
    network, prompts = _network(), PROBLEM.sample(SEEDS, "p", 4, 6)
    found = network(prompts.gram(), prompts.queries)
    seed, rank, prompt = 1, 0, 3
    rows = torch.cat([prompts.inputs[seed, prompt], prompts.labels[seed, prompt, :, None]], 1)
    last = torch.cat([prompts.queries[seed, prompt], torch.zeros(1, dtype=torch.float64)])
    E = torch.cat([rows, last[None]]).T  # (d+1, N+1)
    PV, KQ = torch.zeros(4, 4, dtype=torch.float64), torch.zeros(4, 4, dtype=torch.float64)
    PV[-1] = network.value[seed, rank]
    KQ[:, :-1] = network.key[seed, rank].T @ network.query[seed, rank]
    layer = E + PV @ E @ (E.T @ KQ @ E) / 6
    torch.testing.assert_close(found[seed, rank, prompt], layer[-1, -1])


def test_networks_without_stray_weights_are_given_by_one_matrix():
    network, prompts = _network(), PROBLEM.sample(SEEDS, "p", 4, 6)
    network.key[..., -1] = 0
    network.value[..., :-1] = 0
    assert float(network.stray().max()) == 0
    torch.testing.assert_close(network(prompts.gram(), prompts.queries), answers(prompts, network.effective()))


def test_descent_on_the_population_loss_finds_the_optimum_of_every_rank():
    found = Pretraining(12, 2500, rate=0.03).descend(PROBLEM, SEEDS, (1, 2, 3))
    features = PROBLEM.features(SEEDS)
    for at, r in enumerate((1, 2, 3)):
        best = (features * optimal_gains(PROBLEM.spectrum(SEEDS), 12, r)) @ features.mT
        torch.testing.assert_close(found[:, at], best, atol=1e-4, rtol=0)


@pytest.mark.parametrize("c", [-3.0, 0.01, 40.0])
def test_a_scale_moves_freely_between_the_key_query_matrix_and_the_value(c):
    network, prompts = _network(), PROBLEM.sample(SEEDS, "p", 4, 6)
    scaled = LinearAttention(c * network.key, network.query, network.value / c)
    found, before = (each(prompts.gram(), prompts.queries) for each in (scaled, network))
    torch.testing.assert_close(found, before, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(scaled.effective(), network.effective(), atol=1e-12, rtol=1e-12)


@dataclass(frozen=True)
class Turned(InContextRegression):
    """The same tokens after a rotation R that is each seed's own: their covariance is RΛRᵀ."""

    def rotation(self, seeds: Seeds) -> torch.Tensor:
        turned, _ = torch.linalg.qr(seeds.normal("another rotation", self.dim, self.dim))
        return turned

    def features(self, seeds: Seeds) -> torch.Tensor:
        return self.rotation(seeds) @ super().features(seeds)


def test_answers_are_the_same_where_tokens_and_network_are_turned():
    other = Turned(PROBLEM.eigenvalues)
    R, A = other.rotation(SEEDS).unsqueeze(1), SEEDS.normal("A", 2, 3, 3)
    prompts, turned = (each.sample(SEEDS, "p", 4, 6) for each in (PROBLEM, other))
    torch.testing.assert_close(turned.inputs, prompts.inputs @ R.mT)
    # The labels of a sampled task turn only with the task: it is the same network on the same labels that is compared.
    turned = replace(turned, labels=prompts.labels, targets=prompts.targets)
    torch.testing.assert_close(answers(turned, R @ A @ R.mT), answers(prompts, A), atol=1e-12, rtol=1e-12)
    assert not torch.allclose(answers(turned, A), answers(prompts, A))


def test_training_keeps_the_rank_and_lowers_the_loss():
    recipe = Pretraining(12, 150, batch=64, rate=0.02, last_rate=1e-3)
    network = recipe.train(PROBLEM, SEEDS, (1, 3))
    assert bool((network.key[:, 0, 1:] == 0).all())
    assert bool((network.query[:, 0, 1:] == 0).all())
    assert torch.linalg.matrix_rank(network.effective()[:, 0]).tolist() == [1, 1, 1]
    prompts = PROBLEM.sample(SEEDS, "fresh", 4000, 12)
    losses = 0.5 * (network(prompts.gram(), prompts.queries) - prompts.targets.unsqueeze(1)).square().mean(-1)
    nothing = float(lowest_loss(PROBLEM.spectrum(SEEDS), 12, 0))
    assert bool((losses < 0.9 * nothing).all())


def test_a_seed_trains_the_same_in_any_company():
    recipe = Pretraining(5, 20, batch=8)
    together, alone = (
        recipe.train(PROBLEM, SEEDS, (1, 2)),
        recipe.train(PROBLEM, Seeds((1,), dtype=torch.float64), (1, 2)),
    )
    torch.testing.assert_close(together.key[1:2], alone.key)


def test_refusals():
    with pytest.raises(ValueError, match="saddle"):
        Pretraining(5, 10, scale=0.0)
    with pytest.raises(ValueError, match="at least 1"):
        Pretraining(0, 10)
    for rank in (0, 4):
        with pytest.raises(ValueError, match="not possible"):
            Pretraining(5, 10).initial(SEEDS, 3, (rank,))
