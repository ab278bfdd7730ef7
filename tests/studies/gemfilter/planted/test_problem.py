import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.gemfilter.planted.problem import BOS, MARK, PlantedNeedle


@given(
    hops=st.sampled_from([1, 2]),
    pairs=st.integers(1, 6),
    length=st.integers(160, 400),
    depth=st.floats(0, 1),
    seed=st.integers(0, 50),
)
def test_the_asked_facts_stand_where_the_prompt_says(hops, pairs, length, depth, seed):
    task = PlantedNeedle(length, hops, pairs=pairs)
    made = task.sample(seed, (depth,), 2)
    for ids, needle, places, answer in zip(made.ids, made.needle_at, made.answer_at, made.answer, strict=True):
        assert ids[0] == BOS
        assert ids[-2] == MARK
        assert torch.equal(ids[places], answer)
        key = ids[-1]
        assert (ids[:-1] == key).sum() == 1
        follow = ids[int((ids[:-1] == key).nonzero()) + 1]
        if hops == 2:
            last = int((ids == follow).nonzero().max()), int((ids == follow).nonzero().min())
            assert places[0] - 1 in last
        else:
            assert follow == answer[0]
        assert set(places.tolist()) <= set(needle)
        assert len(needle) == (3 if hops == 1 else 5)
        assert abs(int(places[0]) / length - depth) < 0.1


def test_a_seed_decides_the_prompts_and_missing_facts_are_missing():
    task = PlantedNeedle(200, 2)
    assert torch.equal(task.sample(3, (0.5,), 3).ids, task.sample(3, (0.5,), 3).ids)
    assert not torch.equal(task.sample(3, (0.5,), 3).ids, task.sample(4, (0.5,), 3).ids)
    gone = PlantedNeedle(200, 2, absent=True).sample(3, (0.5,), 1)
    assert (gone.ids[0, :-1] == gone.ids[0, -1]).sum() == 0
    assert gone.needle_at == [[]]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="one hop or two"):
        PlantedNeedle(200, 3)
    with pytest.raises(ValueError, match="more keys or values"):
        PlantedNeedle(400, 2, pairs=9)
    with pytest.raises(ValueError, match="no room"):
        PlantedNeedle(40, 2, pairs=4)


@pytest.mark.parametrize("apart", [1, 30])
def test_the_facts_of_two_hops_lie_as_far_apart_as_asked(apart):
    problem = PlantedNeedle(600, hops=2, apart=apart)
    for needle in problem.sample(3, (0.0, 0.5, 1.0), 2).needle_at:
        value, bridge = needle[0], needle[3]
        assert abs(bridge - value) == 6 * apart


@pytest.mark.parametrize(("hops", "apart"), [(1, 3), (2, 0), (2, 99)])
def test_facts_that_cannot_be_so_far_apart_are_refused(hops, apart):
    with pytest.raises(ValueError, match="places apart"):
        PlantedNeedle(600, hops=hops, apart=apart)
