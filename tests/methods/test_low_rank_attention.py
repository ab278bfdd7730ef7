"""Truncated query weights: the best of their rank, the optimum of the solvable model, and models left as they were."""

import pytest
import torch

from assay.methods import LowRankAttention, attention_moments, truncated_queries

D = torch.double


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=D)


def moment(dim, seed=9):
    half = random(dim, dim, seed=seed)
    return half @ half.mT / dim


def change(query, other, key, middle, rotations=None):
    """The mean square difference of scores kᵀ R W x over independent inputs, R the identity or one of the rotations."""
    moved = query - other
    root = torch.linalg.cholesky(middle)
    turns = [torch.eye(len(query), dtype=D)] if rotations is None else rotations
    return float(torch.stack([(root.mT @ key.mT @ turn @ moved @ root).square().sum() for turn in turns]).mean())


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_no_other_weights_of_the_rank_change_scores_less(rank):
    query, key, middle = random(4, 6), random(4, 6, seed=1), moment(6)
    found, kept = truncated_queries(query, key, middle, rank)
    assert int(torch.linalg.matrix_rank(found)) == rank
    best = change(query, found, key, middle)
    total = change(query, torch.zeros_like(query), key, middle)
    assert kept == pytest.approx(1 - best / total)
    root = torch.linalg.cholesky(middle)
    strengths = torch.linalg.svdvals(root.mT @ key.mT @ query @ root)
    assert best == pytest.approx(float(strengths[rank:].square().sum()))
    for seed in range(20):
        near = found + 0.05 * (random(4, rank, seed=seed) @ random(rank, 6, seed=seed + 50))
        left, strength, right = torch.linalg.svd(near, full_matrices=False)
        assert change(query, (left * strength * (torch.arange(4) < rank)) @ right, key, middle) >= best - 1e-9


def test_with_rotations_it_is_best_on_average_over_them():
    query, key, middle = random(4, 6), random(4, 6, seed=1), moment(6)
    angles = [(torch.pi * i / 6, torch.pi * j / 6) for i in range(12) for j in range(12)]
    rotations = []
    for a, b in torch.tensor(angles, dtype=D):
        cos, sin = (torch.diag(torch.stack([f(a), f(b)])) for f in (torch.cos, torch.sin))
        rotations.append(torch.cat([torch.cat([cos, -sin], 1), torch.cat([sin, cos], 1)]))
    found, kept = truncated_queries(query, key, middle, 2, rotary=True)
    best = change(query, found, key, middle, rotations)
    assert kept == pytest.approx(1 - best / change(query, torch.zeros_like(query), key, middle, rotations))
    plain, _ = truncated_queries(query, key, middle, 2)
    assert best < change(query, plain, key, middle, rotations)
    assert change(query, plain, key, middle) < change(query, found, key, middle)


@pytest.mark.parametrize("pretraining", [None, 12.0])
def test_the_optimum_of_linear_attention_is_cut_to_that_of_the_rank(pretraining):
    values = torch.tensor([2.0, 1.5, 0.7, 0.4, 0.1], dtype=D)
    turn = torch.linalg.qr(random(5, 5))[0]
    gains = 12 / (13 * values + values.sum())
    whole, middle = (turn * gains) @ turn.mT, (turn * values) @ turn.mT
    for rank in (1, 2, 4):
        found, _ = truncated_queries(whole, torch.eye(5, dtype=D), middle, rank, pretraining)
        expected = (turn * gains * (torch.arange(5) < rank)) @ turn.mT
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


@pytest.fixture
def ids():
    return torch.randint(3, 97, (4, 40), generator=torch.Generator().manual_seed(0))


def test_a_model_is_cut_for_the_time_of_the_context(llama, ids):
    moments = attention_moments(llama, [ids])
    assert sorted(moments) == list(range(5))
    before = {name: each.clone() for name, each in llama.state_dict().items()}
    with torch.no_grad():
        usual = llama(ids).logits
        changes = []
        for rank in (8, 6, 2):
            with LowRankAttention(rank).attach(llama, moments) as cut:
                changes.append(float((llama(ids).logits - usual).abs().max()))
                heads = llama.model.layers[0].self_attn.q_proj.weight.view(8, 8, -1)
                assert int(torch.linalg.matrix_rank(heads.double(), rtol=1e-5).max()) == rank
        with pytest.raises(RuntimeError), LowRankAttention(2, layers=[1]).attach(llama, moments):
            raise RuntimeError
    assert changes[0] == 0  # heads of eight entries: nothing to cut, bit for bit
    assert 0 < changes[1] < changes[2]
    assert all(torch.equal(each, before[name]) for name, each in llama.state_dict().items())
    assert float(cut.kept.min()) < 0.9
    assert cut.kept.shape == (5, 8)


def test_inside_autocast_the_cut_is_seen_and_undone(llama, ids):
    moments = attention_moments(llama, [ids])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        usual = llama(ids).logits.detach()
        with LowRankAttention(1).attach(llama, moments):
            inside = llama(ids).logits.detach()
        assert torch.equal(llama(ids).logits, usual)
    assert not torch.equal(inside, usual)


def test_moments_leave_out_padding(llama, ids):
    padded = torch.cat([torch.zeros(4, 3, dtype=torch.long), ids], 1)
    mask = (padded > 0).long()
    positions = (mask.cumsum(1) - 1).clamp_min(0)
    found = attention_moments(
        llama, [{"input_ids": padded, "attention_mask": mask, "position_ids": positions}], layers=[0]
    )
    torch.testing.assert_close(found[0], attention_moments(llama, [ids], layers=[0])[0], rtol=1e-4, atol=1e-6)
    assert not llama.model.layers[0].self_attn.q_proj._forward_pre_hooks


def test_report(llama, ids, tmp_path):
    with LowRankAttention(3, layers=[0, 4]).attach(llama, attention_moments(llama, [ids])) as cut:
        pass
    assert repr(cut).startswith("queries of rank 3 keep at least ")
    assert [row["layer"] for row in cut.table()] == [0, 4]
    cut.save(tmp_path / "cut.json")
    pytest.importorskip("altair")
    assert cut.figure().to_dict()["layer"]


def test_refusals(llama, ids, make_model):
    moments = attention_moments(llama, [ids], layers=[0])
    with (
        pytest.raises(ValueError, match="no moments of layer 1"),
        LowRankAttention(2, layers=[1]).attach(llama, moments),
    ):
        pass
    with pytest.raises(ValueError, match="a layer must lie in"):
        attention_moments(llama, [ids], layers=[9])
    with pytest.raises(ValueError, match="give it more text"):
        attention_moments(llama, [ids[:1, :20]])
    with pytest.raises(ValueError, match="normalises queries"):
        attention_moments(make_model("Qwen3"), [ids])
    with pytest.raises(ValueError, match="no plain q_proj"):
        attention_moments(make_model("Phi3"), [ids])
    with pytest.raises(ValueError, match="not a decoder-only"):
        attention_moments(torch.nn.Linear(2, 2), [ids])
    with pytest.raises(ValueError, match="rank must be at least 1"):
        LowRankAttention(0)
    with pytest.raises(ValueError, match=r"are needed, not \(4, 6\)"):
        truncated_queries(random(4, 6), random(4, 6), moment(5), 2)
