from __future__ import annotations

import pytest
import torch
from torch import nn

from assay.methods.group_norm import GroupPenalty, group_norm, l2_group_penalty

GROUPS = [("0.weight", 0), ("0.bias", 0), ("2.weight", 1)]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).double()


def test_against_a_loop_over_units():
    net = model()
    norms = []
    for unit in range(8):
        own = [net[0].weight[unit], net[0].bias[unit : unit + 1], net[2].weight[:, unit]]
        norms.append(torch.cat(own).norm())
    penalty = GroupPenalty(GROUPS, order=4)
    torch.testing.assert_close(penalty.norms(net), torch.stack(norms))
    total = sum(norm**4 for norm in norms)
    torch.testing.assert_close(penalty(net), total**0.25)
    torch.testing.assert_close(GroupPenalty(GROUPS, order=4, power=4)(net), total)
    torch.testing.assert_close(l2_group_penalty(net, GROUPS, 4), penalty(net))


def test_order_two_to_the_second_power_is_plain_weight_decay():
    net = model()
    plain = net[0].weight.square().sum() + net[0].bias.square().sum() + net[2].weight.square().sum()
    torch.testing.assert_close(GroupPenalty(GROUPS, order=2, power=2)(net), plain)


def test_the_gradient_is_autograds_and_zero_units_give_no_nan():
    net = model()
    GroupPenalty(GROUPS, order=3)(net).backward()
    norms = GroupPenalty(GROUPS, order=3).norms(net)
    expected = net[0].weight * norms.unsqueeze(1) / norms.pow(3).sum().pow(2 / 3)
    torch.testing.assert_close(net[0].weight.grad, expected)
    for part in net.parameters():
        part.data.zero_()
        part.grad = None
    GroupPenalty(GROUPS, order=3)(net).backward()
    assert float(net[0].weight.grad.abs().max()) == 0
    assert net[2].bias.grad is None, "what no group names is not touched"


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_squared_in_single(kind):
    net = model().to(kind)
    with torch.no_grad():
        net[0].weight[0], net[0].bias[0], net[2].weight[:, 0] = 0, 0, 0
        net[0].weight[1, 0] = 300.0  # whose square is no number of float16
    penalty = GroupPenalty(GROUPS, order=1)
    penalty(net).backward()
    assert float(net[0].weight.grad[0].abs().max()) == 0
    assert all(bool(net.get_parameter(name).grad.isfinite().all()) for name, _ in GROUPS)
    wide = model()
    wide.load_state_dict({name: value.double() for name, value in net.state_dict().items()})
    torch.testing.assert_close(penalty(net).double(), penalty(wide), rtol=1e-6, atol=0)
    assert penalty.norms(net).dtype == torch.float32
    assert torch.isfinite(group_norm(torch.zeros(3, dtype=kind), 1.0))


def test_a_penalty_switches_units_off():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    penalty = GroupPenalty(GROUPS, order=1)
    before = penalty.norms(net).detach()
    for _ in range(50):
        optimizer.zero_grad()
        penalty(net).backward()
        optimizer.step()
    after = penalty.norms(net).detach()
    assert bool((after < before).all())
    assert int((after < 0.1).sum()) > 0


def test_leading_axes_are_networks():
    squares = torch.rand(3, 5, dtype=torch.float64)
    torch.testing.assert_close(group_norm(squares, 5), torch.stack([group_norm(each, 5) for each in squares]))


def test_refusals():
    with pytest.raises(ValueError, match="at least one"):
        GroupPenalty([], 2)
    with pytest.raises(ValueError, match=r"order must be at least 1, not 0\.5"):
        GroupPenalty(GROUPS, 0.5)
    with pytest.raises(AttributeError, match="weight"):
        GroupPenalty([("1.weight", 0)], 2)(model())
    with pytest.raises(ValueError, match="3 units"):
        GroupPenalty([("0.weight", 0), ("2.weight", 0)], 2)(model())
