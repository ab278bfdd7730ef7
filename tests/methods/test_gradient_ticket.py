from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from assay.methods.gradient_ticket import gradient_ticket, masked, without_units
from assay.methods.ticket_race import compare_tickets, default_loss
from assay.probes.gradient_features import gradient_features

DIM = 20


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def xor(n: int, seed: int) -> tuple[Tensor, Tensor]:
    draws = generator(seed + 50)
    component = torch.randint(4, (n,), generator=draws)
    centres = 5 * torch.cat([torch.eye(DIM)[:2], -torch.eye(DIM)[:2]])
    return centres[component] + torch.randn(n, DIM, generator=draws), component % 2


def network(units: int = 64, outputs: int = 2) -> nn.Sequential:
    """Half of the units along the two axes, of both signs and many switches; the others anywhere."""
    with torch.random.fork_rng(devices=[]):
        model = nn.Sequential(nn.Linear(DIM, units), nn.ReLU(), nn.Linear(units, outputs))
    with torch.no_grad():
        model[0].weight.copy_(torch.randn(units, DIM, generator=generator()) / DIM**0.5)
        axes = torch.eye(DIM)[torch.arange(units // 2) % 2]
        signs = torch.where(torch.arange(units // 2) % 4 < 2, 1.0, -1.0).unsqueeze(1)
        model[0].weight[: units // 2] = axes * signs + 0.02 * torch.randn(units // 2, DIM, generator=generator(1))
        model[0].bias.copy_(-3 * torch.rand(units, generator=generator(2)))
        model[2].weight.copy_(0.1 * torch.randn(outputs, units, generator=generator(3)))
        model[2].bias.zero_()
    return model


def test_the_ticket_stands_on_the_directions_evenly_and_spread():
    model = network()
    ticket = gradient_ticket(model, "0", size=16, directions=torch.eye(DIM)[:2])
    assert int(ticket.mask.sum()) == ticket.size == 16
    assert int(ticket.mask[:32].sum()) == 16, "only units of the cones are kept"
    assert [group.kept for group in ticket.groups] == [4, 4, 4, 4]
    assert [(group.direction, group.sign) for group in ticket.groups] == [(0, 1), (0, -1), (1, 1), (1, -1)]
    assert ticket.filled == 0
    for group in ticket.groups:
        assert group.cosine > 0.95
        assert group.switches[0] < group.switches[1]


def test_directions_come_from_the_probe_when_none_are_given():
    model, (inputs, labels) = network(), xor(1500, 0)
    ticket = gradient_ticket(model, "0", inputs, labels, size=8, output=1)
    assert ticket.features is not None
    assert float(ticket.features.directions[:, :2].norm(dim=1).min()) > 0.9
    assert ticket.size == int(ticket.mask.sum())
    shuffled = labels[torch.randperm(len(labels), generator=generator(9))]
    with pytest.raises(ValueError, match="a ticket needs directions, and none is named"):
        gradient_ticket(model, "0", inputs, shuffled, size=8, stability=0.99)


def test_what_the_cones_cannot_fill_is_filled_and_said():
    ticket = gradient_ticket(network(), "0", size=40, directions=torch.eye(DIM)[:2])
    assert int(ticket.mask.sum()) == 40
    assert ticket.filled == 8
    assert "8 of them lie in no cone" in repr(ticket)


def test_masked_and_pruned_copies_answer_alike_and_stay_so():
    model, (inputs, labels) = network(), xor(200, 1)
    before = copy.deepcopy(model.state_dict())
    ticket = gradient_ticket(model, "0", size=12, directions=torch.eye(DIM)[:2])
    whole, small = ticket.masked(model), ticket.pruned(model, "2")
    assert small[0].out_features == small[2].in_features == 12
    torch.testing.assert_close(whole(inputs), small(inputs))
    for network_ in (whole, small):
        optimizer = torch.optim.SGD(network_.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network_(inputs), labels).backward()
            optimizer.step()
    torch.testing.assert_close(whole(inputs), small(inputs), atol=1e-5, rtol=1e-4)
    assert bool((whole[0].weight[~ticket.mask] == 0).all())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_channels_before_a_flattened_head():
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 9, 2))
    mask = torch.tensor([True, False, True, True, False, False])
    inputs = torch.randn(5, 1, 8, 8, generator=generator())
    small = without_units(model, "0", "4", mask)
    assert (small[0].out_channels, small[4].in_features) == (3, 27)
    torch.testing.assert_close(small(inputs), masked(model, "0", mask)(inputs))
    with pytest.raises(ValueError, match="reads 54 values"):
        without_units(nn.Sequential(nn.Conv2d(1, 7, 3), *model[1:]), "0", "4", torch.ones(7, dtype=torch.bool))


def test_transposed_layers_of_transformers():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D
    model = nn.Sequential(conv1d(8, DIM), nn.ReLU(), conv1d(2, 8))
    mask = torch.arange(8) < 3
    inputs = torch.randn(4, DIM, generator=generator())
    small = without_units(model, "0", "2", mask)
    assert small[0].weight.shape == (DIM, 3)
    torch.testing.assert_close(small(inputs), masked(model, "0", mask)(inputs))


def test_the_report():
    pytest.importorskip("altair")
    ticket = gradient_ticket(network(), "0", size=16, directions=torch.eye(DIM)[:2])
    assert len(ticket.table()) == 4
    saved = json.loads(json.dumps(ticket.to_dict(), allow_nan=False))
    assert sum(saved["mask"]) == 16
    assert "16 of 64 units on 4 of 4 signed directions" in repr(ticket)
    assert ticket.figure().to_dict()["mark"]


def test_refusals():
    model = network()
    for sentence, changes in (
        ("size must lie in", {"size": 0}),
        ("size must lie in", {"size": 65}),
        ("gamma must lie in", {"gamma": 0.0}),
        ("directions are", {"directions": torch.eye(3)}),
        ("directions must be finite", {"directions": torch.full((1, DIM), torch.nan)}),
        ("zero norm", {"directions": torch.zeros(1, DIM)}),
    ):
        with pytest.raises(ValueError, match=sentence):
            gradient_ticket(model, "0", **{"size": 4, "directions": torch.eye(DIM)[:2], **changes})
    with pytest.raises(ValueError, match="keeps one"):
        masked(model, "0", torch.zeros(64, dtype=torch.bool))
    for bad in (torch.ones(3, dtype=torch.bool), torch.ones(64), torch.zeros(64, dtype=torch.bool)):
        for copy_ in (masked, lambda *given: without_units(given[0], "0", "2", given[2])):
            with pytest.raises(ValueError, match="keeps one, not"):
                copy_(model, "0", bad)
    with pytest.raises(ValueError, match="directions, or data to find them in"):
        gradient_ticket(model, "0", size=4)
    with pytest.raises(ValueError, match="nothing is probed, and drop would change nothing"):
        gradient_ticket(model, "0", size=4, directions=torch.eye(DIM)[:2], drop=0.2)


def test_directions_and_masks_may_be_arrays_or_lists():
    model = network()
    ticket = gradient_ticket(model, "0", size=16, directions=torch.eye(DIM)[:2])
    assert torch.equal(gradient_ticket(model, "0", size=16, directions=np.eye(DIM)[:2]).mask, ticket.mask)
    expected = ticket.masked(model).state_dict()
    for mask in (ticket.mask.numpy(), ticket.mask.tolist()):
        assert all(torch.equal(value, expected[name]) for name, value in masked(model, "0", mask).state_dict().items())


def test_a_second_layer_can_be_masked_after_the_first():
    model = nn.Sequential(nn.Linear(DIM, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
    inputs = torch.randn(5, DIM, generator=generator())
    first, second = torch.arange(8) < 3, torch.arange(6) > 3
    twice = masked(masked(model, "0", first), "2", second)
    small = without_units(without_units(model, "0", "2", first), "2", "4", second)
    torch.testing.assert_close(twice(inputs), small(inputs))
    with pytest.raises(ValueError, match="made from others"):
        masked(twice, "0", first)


def race(**changes):
    model = network()
    ticket = gradient_ticket(model, "0", size=16, directions=torch.eye(DIM)[:2])
    settings = dict(steps=30, batch_size=64, learning_rates=(0.03, 0.3), seeds=2)
    return model, compare_tickets(model, "0", ticket.mask, xor(500, 2), xor(300, 3), xor(300, 4), **settings | changes)


def test_the_ticket_wins_where_its_units_are_the_features_and_nothing_is_left_behind():
    pytest.importorskip("altair")
    before = copy.deepcopy(network().state_dict())
    model, found = race(initial=nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2)))
    assert [arm.name for arm in found.arms] == ["full", "ticket", "random", "magnitude", "snip", "initial"]
    assert [arm.units for arm in found.arms] == [64] + 5 * [16]
    assert float(found.arm("ticket").final.mean()) < float(found.arm("random").final.mean())
    assert float(found.arm("ticket").final.mean()) < float(found.arm("initial").final.mean())
    assert found.beats("ticket", "ticket") == 0
    assert len(found.table()) == 6
    json.dumps(found.to_dict(), allow_nan=False)
    assert "was reached by the ticket before" in repr(found)
    assert found.figure().to_dict()["layer"]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_race_leaves_the_global_generator_and_repeats():
    state = torch.random.get_rng_state()
    _, first = race(learning_rates=(0.1,))
    assert torch.equal(torch.random.get_rng_state(), state)
    _, second = race(learning_rates=(0.1,))
    assert torch.equal(first.arm("random").losses, second.arm("random").losses)
    with torch.autocast("cpu", torch.bfloat16):
        _, mixed = race(learning_rates=(0.1,))
    assert float(mixed.arm("ticket").final.mean()) == pytest.approx(float(first.arm("ticket").final.mean()), abs=0.05)


def test_the_race_leaves_generators_of_gpus_alone_where_the_model_has_none(monkeypatch):
    def touched(seed: int) -> None:
        raise AssertionError("a GPU's generator was seeded")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", touched)
    race(learning_rates=(0.1,), seeds=1)


def test_a_race_that_diverges_everywhere_is_refused():
    with pytest.raises(ValueError, match="diverged at every learning rate"):
        race(learning_rates=(1e30,))
    with pytest.raises(ValueError, match="each of learning_rates must be positive"):
        race(learning_rates=(0.0,))
    for sentence, changes in (
        ("each of learning_rates must be a number", {"learning_rates": (0.1, float("nan"))}),
        ("at least one number", {"learning_rates": ()}),
        ("level must be a number", {"level": float("nan")}),
        ("a mask of '0' has 4 entries", {"initial": nn.Sequential(nn.Linear(DIM, 4), nn.ReLU(), nn.Linear(4, 2))}),
    ):
        with pytest.raises(ValueError, match=sentence):
            race(**changes)
    mask = torch.ones(64, dtype=torch.bool)
    with pytest.raises(ValueError, match="train must be"):
        compare_tickets(network(), "0", mask, xor(10, 0)[0], xor(10, 0), xor(10, 0))
    nothing = tuple(part[:0] for part in xor(10, 0))
    for place in range(3):
        data = [nothing if i == place else xor(10, 0) for i in range(3)]
        with pytest.raises(ValueError, match="holds no sample"):
            compare_tickets(network(), "0", mask, *data)
    with pytest.raises(ValueError, match="a mask of '0' has 64 entries"):
        compare_tickets(network(), "0", mask[:5], *(xor(10, 0) for _ in range(3)))


def test_one_rate_and_rates_that_can_be_read_once():
    _, expected = race(learning_rates=(0.1,), seeds=1)
    for rates in (0.1, iter([0.1])):
        _, found = race(learning_rates=rates, seeds=1)
        assert torch.equal(found.arm("ticket").losses, expected.arm("ticket").losses)


def test_default_losses():
    outputs = torch.tensor([[2.0], [-1.0]])
    expected = nn.functional.binary_cross_entropy_with_logits(outputs.squeeze(1), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(default_loss(outputs, torch.tensor([1, 0])), expected)
    torch.testing.assert_close(default_loss(outputs, torch.tensor([1.0, -1.0])), expected)
    torch.testing.assert_close(default_loss(outputs, torch.tensor([2.5, 0.0])), torch.tensor((0.25 + 1) / 2))
    for column in (torch.tensor([[1], [0]]), torch.tensor([[1.0], [-1.0]])):
        torch.testing.assert_close(default_loss(outputs, column), expected)
    two = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(
        default_loss(two, torch.tensor([[1], [0]])), nn.functional.cross_entropy(two, torch.tensor([1, 0]))
    )
    torch.testing.assert_close(default_loss(two, torch.tensor([[1.0, -1.0], [1.0, 1.0]])), torch.tensor(3 / 4))
    with pytest.raises(ValueError, match="a single output needs labels"):
        default_loss(outputs, torch.tensor([2, 0]))
    with pytest.raises(ValueError, match="do not fit outputs"):
        default_loss(two, torch.tensor([1.0, 0.0]))


def test_the_probe_agrees_with_the_ticket_on_known_features():
    model, (inputs, labels) = network(), xor(1500, 0)
    found = gradient_features(model, "0", inputs, labels, output=0)
    assert len(found.directions) >= 1
