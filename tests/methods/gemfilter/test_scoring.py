import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.methods.gemfilter.scoring import RULES, attention_rows, best_positions, logit_scores, pool, token_scores


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(seed=st.integers(0, 50), key_heads=st.sampled_from([1, 2, 4]), group=st.sampled_from([1, 2, 3]))
def test_summing_queries_within_groups_equals_repeating_the_keys(seed, key_heads, group):
    query, keys = draw(seed, key_heads * group, 8), draw(seed + 1, key_heads, 21, 8)
    repeated = keys.repeat_interleave(group, dim=0)
    expected = torch.einsum("hd,hnd->n", query.double(), repeated.double())
    # Roundings of either sign in a sum of heads × width products: √terms epsilons of the sum of their sizes, not of
    # the score, in which the products cancel.
    size = torch.einsum("hd,hnd->n", query.abs(), repeated.abs())
    rounding = torch.finfo(torch.float32).eps * query.numel() ** 0.5 * size
    assert bool(((logit_scores(query, keys) - expected).abs() <= rounding).all())


def test_heads_of_one_group_can_change_places():
    query, keys = draw(0, 6, 8), draw(1, 2, 21, 8)
    swapped = query[[2, 0, 1, 5, 4, 3]]
    assert torch.allclose(logit_scores(query, keys), logit_scores(swapped, keys), atol=1e-5)


def test_long_prompts_are_scored_in_blocks_without_a_seam(monkeypatch):
    query, keys = draw(0, 4, 8), draw(1, 2, 50, 8)
    whole, rows = logit_scores(query, keys), attention_rows(query[:, None], keys, 0.3)
    monkeypatch.setattr("assay.methods.gemfilter.scoring._BLOCK", 7)
    assert torch.allclose(logit_scores(query, keys), whole, atol=1e-6)
    assert torch.allclose(attention_rows(query[:, None], keys, 0.3), rows, atol=1e-6)


def test_attention_rows_are_causal_and_sum_to_one():
    rows = attention_rows(draw(0, 4, 5, 8), draw(1, 2, 20, 8), 0.35)
    assert rows.shape == (4, 5, 20)
    assert torch.allclose(rows.sum(dim=-1), torch.ones(4, 5), atol=1e-6)
    later = torch.arange(20) > torch.arange(15, 20)[:, None]
    assert rows[:, later].abs().max() == 0
    middle = attention_rows(draw(0, 4, 1, 8), draw(1, 2, 20, 8), 0.35, last=9)
    assert middle[..., 10:].abs().max() == 0
    assert torch.allclose(middle.sum(dim=-1), torch.ones(4, 1), atol=1e-6)


def test_rules_agree_where_they_must():
    queries, keys = draw(0, 4, 3, 8), draw(1, 2, 20, 8)
    softmax = token_scores("softmax", queries, keys, 0.3)
    assert torch.equal(softmax, token_scores("window", queries[:, -1:], keys, 0.3))
    assert token_scores("window", queries, keys, 0.3).sum() == pytest.approx(4)
    assert torch.equal(token_scores("logits", queries, keys, 0.3), logit_scores(queries[:, -1], keys))


def test_average_pooling_pads_with_zeros_unless_told_otherwise():
    scores = -torch.ones(8)
    assert pool(scores, "avg", 5)[[0, 1, 2, -1]].tolist() == pytest.approx([-0.6, -0.8, -1.0, -0.6])
    assert torch.allclose(pool(scores, "avg", 5, count_include_pad=False), scores)
    assert torch.allclose(pool(scores, "max", 5), scores)
    assert torch.equal(pool(scores, None, 5), scores)
    assert torch.equal(pool(draw(0, 8), "avg", 1), draw(0, 8))


def test_a_single_peak_brings_its_neighbourhood():
    scores = torch.zeros(40)
    scores[17] = 100.0
    assert best_positions(pool(scores, "avg", 5), 5).tolist() == [15, 16, 17, 18, 19]
    assert best_positions(pool(scores, None, 5), 1).tolist() == [17]


@given(seed=st.integers(0, 100), n=st.integers(1, 40), keep=st.integers(1, 45))
def test_positions_are_sorted_unique_and_nested(seed, n, keep):
    scores = draw(seed, n).mul(3).round()  # ties
    chosen = best_positions(scores, keep).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(keep, n)
    assert set(chosen) <= set(best_positions(scores, keep + 1).tolist())
    dropped = set(range(n)) - set(chosen)
    assert all(scores[i] <= scores[j] for i in dropped for j in chosen)


def test_of_equal_scores_the_earlier_position_wins():
    assert best_positions(torch.zeros(9), 3).tolist() == [0, 1, 2]


def test_forced_positions_are_in_and_count():
    scores = torch.arange(10.0)
    assert best_positions(scores, 4, keep_first=1, keep_last=1).tolist() == [0, 7, 8, 9]
    assert best_positions(-scores, 4, keep_last=2).tolist() == [0, 1, 8, 9]
    assert best_positions(scores, 10, keep_first=3, keep_last=20).tolist() == list(range(10))


@pytest.mark.parametrize("rule", RULES)
def test_scores_are_in_float32_under_autocast(rule):
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(4, 3, 8, generator=generator)
    keys = torch.randn(2, 30, 8, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = token_scores(rule, queries, keys, 0.3)
    assert torch.equal(scores, token_scores(rule, queries, keys, 0.3))
