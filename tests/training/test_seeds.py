"""Named streams: a seed's draws are its own, whatever the company, the dtype or the other streams."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.training.seeds import Seeds, stream

DRAWS = {
    "normal": lambda seeds: seeds.normal("w", 3, 4),
    "uniform": lambda seeds: seeds.uniform("u", 5),
    "permutation": lambda seeds: seeds.permutation("p", 20),
    "batches": lambda seeds: torch.stack(list(seeds.batches("b", 10, 3, 7)), dim=1),
    "draw": lambda seeds: seeds.draw("d", lambda g: torch.randint(0, 9, (6,), generator=g)),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("company", [(5,), (5, 0), (0, 1, 2, 5, 9), (9, 5)])
def test_a_seeds_draws_are_the_same_alone_and_in_company(kind, company):
    alone, together = DRAWS[kind](Seeds((5,))), DRAWS[kind](Seeds(company))
    assert torch.equal(together[company.index(5)], alone[0])
    assert together.shape == (len(company), *alone.shape[1:])


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_draws_are_the_same_numbers_in_either_precision(kind):
    single, double = DRAWS[kind](Seeds((0, 1))), DRAWS[kind](Seeds((0, 1), dtype=torch.float64))
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert torch.equal(single.double(), double)


def test_a_draw_in_double_precision_is_made_on_request():
    double = Seeds((0,), dtype=torch.float64).normal("w", 50, dtype=torch.float64)
    assert not torch.equal(double.float().double(), double)


def test_integers_keep_their_type():
    seeds = Seeds((0,), dtype=torch.float64)
    assert seeds.permutation("p", 5).dtype == torch.int64
    assert seeds.draw("d", lambda g: torch.rand(3, generator=g) < 0.5).dtype == torch.bool


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text(max_size=8), st.text(max_size=8))
def test_streams_are_equal_exactly_when_seed_and_name_are(a, b, one, other):
    first, second = torch.rand(4, generator=stream(a, one)), torch.rand(4, generator=stream(b, other))
    assert torch.equal(first, second) == ((a, one) == (b, other))


def test_a_seed_and_a_name_do_not_run_into_each_other():
    assert not torch.equal(torch.rand(4, generator=stream(1, "1/x")), torch.rand(4, generator=stream(11, "/x")))


def test_streams_of_different_names_are_unrelated():
    seeds = Seeds(tuple(range(4)))
    a, b = seeds.normal("data", 5000), seeds.normal("weights", 5000)
    # A correlation of n pairs of independent normals has standard deviation 1/sqrt(n): five of them are 0.035.
    assert (a * b).mean().abs() < 5 / 20_000**0.5
    assert (a[0] * a[1]).mean().abs() < 5 / 5000**0.5


def test_adding_a_stream_does_not_shift_the_others():
    seeds = Seeds((3,))
    before = seeds.normal("weights", 4)
    seeds.normal("something new", 100)
    assert torch.equal(seeds.normal("weights", 4), before)


def test_draws_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    for draw in DRAWS.values():
        draw(Seeds((0, 1)))
    assert torch.equal(torch.get_rng_state(), state)


@given(st.integers(1, 40), st.data())
def test_batches_cover_an_epoch_without_repetition(n, data):
    batch = data.draw(st.integers(1, n))
    per_epoch = n // batch
    seeds = Seeds((0, 7))
    drawn = list(seeds.batches("b", n, batch, 2 * per_epoch))
    assert len(drawn) == 2 * per_epoch
    for epoch in (drawn[:per_epoch], drawn[per_epoch:]):
        for indices in torch.cat(epoch, dim=1):
            assert len(set(indices.tolist())) == per_epoch * batch
            assert set(indices.tolist()) <= set(range(n))


def test_every_seed_has_its_own_order_and_every_epoch_another():
    first, second = Seeds((0, 1)).batches("b", 50, 50, 2)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], second[0])


def test_bad_ensembles_and_batches_are_refused():
    with pytest.raises(ValueError, match="at least one seed"):
        Seeds(())
    with pytest.raises(ValueError, match=r"batch of 6 .*from 5"):
        next(Seeds((0,)).batches("b", 5, 6, 1))


def test_seeds_are_a_sequence():
    seeds = Seeds((4, 2))
    assert (len(seeds), list(seeds), seeds[1], 2 in seeds) == (2, [4, 2], 2, True)


def test_batches_go_on_where_a_checkpoint_was():
    seeds = Seeds((0, 4))
    whole = list(seeds.batches("order", 10, 3, 11))
    rest = list(seeds.batches("order", 10, 3, 11, start=7))
    assert len(rest) == 4
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(rest, whole[7:], strict=True))
