from __future__ import annotations

from typing import get_args

import torch

from assay.studies.gradient_features.learners import RELU, sampled_gradients, stepped, symmetric_start
from assay.studies.gradient_features.problem import GaussianMixture
from assay.studies.gradient_features.theory import cosines
from assay.studies.gradient_features.tickets.learners import (
    Choice,
    _settled,
    chosen_network,
    discovered,
    half,
    keep,
    most_signs,
    nearest,
    nearest_of_both_signs,
    nearest_of_sign,
    race,
    random_choice,
    random_of_sign,
    rescaled,
    sensitivity,
    spread_over_switches,
)
from assay.training import Seeds

SEEDS = Seeds((0, 1))
PROBLEM = GaussianMixture.xor(16, 0.5)
START = symmetric_start(SEEDS, 24, 16, 2.0)
SAMPLE = PROBLEM.sample(SEEDS, "train", 400)
NET = stepped(START, sampled_gradients(START, SAMPLE), knot=2.0)


def test_a_ticket_holds_the_nearest_neurons_of_every_signed_feature():
    chosen = nearest(NET, PROBLEM.features, 2)
    assert chosen.shape == (2, 8)
    found = cosines(NET.weights, PROBLEM.features)
    assert float(found[0, :, 0].max()) == float(found[0, chosen[0, 0], 0])
    assert float(found[1, :, 1].min()) == float(found[1, chosen[1, 6], 1])


def test_clusters_of_weights_are_found_without_their_names():
    axes = torch.eye(3, 8)
    noise = 0.05 * SEEDS.normal("noise", 30, 8)
    weights = torch.cat([axes[:2].repeat(15, 1), -axes[:2].repeat(15, 1)]).expand(2, -1, -1) + noise.repeat(1, 2, 1)
    net = type(NET)(weights, torch.zeros(2, 60), torch.zeros(2, 60))
    found = cosines(discovered(net, 2, cosine=0.9), axes).abs()
    assert bool((found.amax(1)[:, :2] > 0.95).all())
    assert nearest(net, discovered(net, 2, cosine=0.9), 3).shape == (2, 12)


def test_kept_neurons_are_the_same_neurons():
    chosen = random_choice(SEEDS, 96, 5)
    part = keep(NET, chosen)
    assert torch.equal(part.weights[1, 2], NET.weights[1, chosen[1, 2]])
    everything = keep(NET, torch.arange(96).expand(2, -1))
    assert torch.equal(everything(SAMPLE.inputs, RELU), NET(SAMPLE.inputs, RELU))


def test_rescaling_gives_the_norms_and_keeps_the_gates():
    chosen = random_choice(SEEDS, 96, 10)
    start, ticket = keep(START, chosen), keep(NET, chosen)
    found = rescaled(start, ticket)
    assert torch.allclose(found.weights.norm(dim=-1), ticket.weights.norm(dim=-1), rtol=1e-4)
    gates = start.preactivation(SAMPLE.inputs)
    margin = gates.abs() > 1e-4
    assert torch.equal((found.preactivation(SAMPLE.inputs) > 0)[margin], (gates > 0)[margin])


def test_sensitivity_is_the_gradient_in_the_outputs():
    output = NET.output.clone().requires_grad_(True)
    hidden = torch.relu(NET.preactivation(SAMPLE.inputs))
    outputs = (hidden @ output.unsqueeze(-1)).squeeze(-1)
    (1 - SAMPLE.labels * outputs).clamp(min=0).mean(1).sum().backward()
    assert torch.allclose(sensitivity(NET, SAMPLE), output.grad.abs(), atol=1e-5)


def test_every_choice_has_the_size_of_the_ticket_and_the_neurons_it_says():
    sizes = {}
    for who in get_args(Choice):
        sizes[who] = chosen_network(SEEDS, who, START, NET, SAMPLE, PROBLEM.features, 8).output.shape[1]
    assert sizes.pop("full") == 96
    assert set(sizes.values()) == {8}
    ticket, at_start = (
        chosen_network(SEEDS, who, START, NET, SAMPLE, PROBLEM.features, 8) for who in ("ticket", "init")
    )
    chosen = nearest(half(NET), PROBLEM.features, 2)
    assert torch.equal(ticket.weights[1], NET.weights[1, chosen[1]])
    assert torch.equal(at_start.weights[1], START.weights[1, chosen[1]])
    assert not bool(at_start.output.any())


def test_a_ticket_of_both_signs_has_the_nearest_of_either():
    weights = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.4, 0.6], [-1.0, 0.1]]).unsqueeze(0)
    biases = torch.tensor([[-1.0, -1.0, -1.0, 2.0, 2.0, 2.0]])
    net = type(NET)(weights, biases, torch.zeros(1, 6))
    feature = torch.tensor([[1.0, 0.0]])
    assert nearest(net, feature, 2)[0].tolist() == [0, 1, 5, 4], "of the feature, then of its opposite"
    assert nearest_of_both_signs(net, feature, 2)[0].tolist() == [3, 0, 5, 2]
    assert nearest_of_both_signs(net, feature, 1)[0].tolist() == [3, 5], "an odd one has a threshold above 0"
    assert nearest_of_sign(net, feature, 1, -1.0)[0].tolist() == [0, 2]
    both = type(NET)(weights.expand(2, -1, -1), torch.cat([biases, -biases]), torch.zeros(2, 6))
    assert most_signs(both.biases, torch.tensor([[0, 1, 3], [0, 1, 3]])).tolist() == [[-1.0], [1.0]]
    assert most_signs(both.biases, torch.tensor([[0, 3], [0, 3]])).tolist() == [[1.0], [1.0]], "even ones"
    signs = nearest_of_sign(both, feature, 1, most_signs(both.biases, torch.tensor([[0, 1, 3], [0, 1, 3]])))
    assert signs.tolist() == [[0, 2], [0, 2]]


def test_the_start_of_a_ticket_of_both_signs_has_its_neurons():
    after, before = (
        chosen_network(SEEDS, who, START, NET, SAMPLE, PROBLEM.features, 8)
        for who in ("ticket, both signs", "init, both signs")
    )
    rows = nearest_of_both_signs(half(NET), PROBLEM.features, 2)
    assert torch.equal(after.weights, keep(half(NET), rows).weights)
    assert torch.equal(before.weights, keep(half(START), rows).weights)
    assert (after.biases > 0).double().mean() == 0.5


def test_a_dip_that_does_not_last_is_no_arrival():
    losses = torch.tensor([[0.9, 0.2, 0.9, 0.2, 0.2], [0.9, 0.9, 0.2, 0.2, 0.9], [0.2, 0.2, 0.2, 0.2, 0.2]]).T
    assert _settled(losses, 0.5).tolist() == [3, 4, 0]
    several = _settled(torch.stack([losses, losses.flip(0)]), 0.5)
    assert several.tolist() == [[3, 4, 0], [4, 4, 0]]


def test_a_spread_ticket_takes_every_second_switch():
    weights = torch.eye(1, 3).repeat(6, 1).unsqueeze(0)
    net = type(NET)(weights, torch.tensor([[5.0, 1.0, 3.0, 2.0, 6.0, 4.0]]), torch.zeros(1, 6))
    candidates = torch.tensor([[0, 1, 2, 3, 4, 5]])
    assert net.biases[0, spread_over_switches(net, candidates, 3)[0]].tolist() == [1.0, 3.0, 5.0]


def test_each_seed_takes_its_own_best_rate_and_a_hopeless_one_counts_with_the_last_step():
    validation, test = (PROBLEM.sample(SEEDS, name, 200) for name in ("validation", "test"))
    batch = lambda step: PROBLEM.sample(SEEDS, f"batch {step}", 100)  # noqa: E731
    steps = (0, 1, 2, 4, 8)
    found = race(NET, batch, validation, test, rates=(1e-9, 0.1), steps=steps, level=0.65)
    assert found.rates.tolist() == [0.1, 0.1]
    assert bool(found.reached.all())
    assert found.losses.shape == (5, 2)
    alone = race(NET, batch, validation, test, rates=(0.1,), steps=steps, level=0.65)
    assert torch.equal(alone.first, found.first)
    hopeless = race(NET, batch, validation, test, rates=(1e-9,), steps=steps, level=0.65)
    assert hopeless.first.tolist() == [8, 8]
    assert not bool(hopeless.reached.any())


def test_random_neurons_of_one_sign_have_the_sign_of_most_of_the_ticket():
    biases = torch.tensor([[1.0, -1.0] * 10, [-1.0, 1.0] * 10])
    like = torch.tensor([[0, 2, 4, 1], [0, 2, 4, 1]])  # three of four have the sign of neuron 0
    chosen = random_of_sign(SEEDS, biases, like)
    assert chosen.shape == (2, 4)
    assert biases.gather(1, chosen).tolist() == [[1.0] * 4, [-1.0] * 4]
    assert [len(set(row)) for row in chosen.tolist()] == [4, 4]
    order = SEEDS.permutation("random ticket", 20)
    expected = [i for i in order[0].tolist() if biases[0, i] > 0][:4]
    assert chosen[0].tolist() == expected, "the first of that sign in the order of the random ticket"


def test_no_two_neurons_of_a_ticket_were_one_at_the_start():
    every = chosen_network(SEEDS, "ticket", START, NET, SAMPLE, PROBLEM.features, 8)
    start = chosen_network(SEEDS, "init", START, NET, SAMPLE, PROBLEM.features, 8)
    assert every.weights.shape == start.weights.shape == (2, 8, 16)
    for seed in range(2):
        assert len(torch.unique(start.weights[seed], dim=0)) == 8
    twins = torch.cat([half(START).weights, half(START).weights], 1)
    assert torch.equal(START.weights, twins), "the other half has each weight once more"
