from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from assay.probes.score_spectrum import score_spectrum
from assay.studies.fourier_circuits.grokking.learners import (
    Dropout,
    Transformer,
    TransformerRecipe,
    attention_shares,
    correct,
    share_correct,
)
from assay.studies.fourier_circuits.problem import ModularAddition
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = ModularAddition(7, 3)
ONE = Transformer(dim=8, heads=3, head_dim=4, mlp=12)
TWO = replace(ONE, layers=2)
TOKENS = PROBLEM.sequence(PROBLEM.inputs(PROBLEM.split(SEEDS, 20)[0]))


def written_out(model: Transformer, weights: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """One seed and one sequence at a time, position by position and head by head."""

    def norm(x: torch.Tensor, name: str, seed: int) -> torch.Tensor:
        if not model.layernorm:
            return x
        centred = x - x.mean()
        return centred / (centred.square().mean() + 1e-5).sqrt() * weights[f"{name}.gain"][seed]

    answers = torch.zeros(*tokens.shape[:2], weights["readout"].shape[2], dtype=torch.float64)
    width = model.head_dim
    for seed in range(tokens.shape[0]):
        for n in range(tokens.shape[1]):
            xs = []
            for t, token in enumerate(tokens[seed, n].tolist()):
                x = weights["tokens"][seed, token] * math.sqrt(model.dim)
                xs.append(x + weights["positions"][seed, t] if model.positions else x)
            for layer in range(model.layers):
                reads = [norm(x, f"{layer}.norm", seed) for x in xs]
                q, k, v = ([r @ weights[f"{layer}.{name}"][seed] for r in reads] for name in ("query", "key", "value"))
                new = []
                for t in range(len(xs)):
                    mixed = []
                    for head in range(model.heads):
                        part = slice(head * width, (head + 1) * width)
                        scores = torch.stack([q[t][part] @ k[s][part] / math.sqrt(width) for s in range(t + 1)])
                        attention = scores.softmax(0)
                        mixed.append(sum(attention[s] * v[s][part] for s in range(t + 1)))
                    x = xs[t] + torch.cat(mixed) @ weights[f"{layer}.output"][seed]
                    if model.mlp:
                        hidden = norm(x, f"{layer}.mlp_norm", seed) @ weights[f"{layer}.up"][seed]
                        x = x + torch.nn.functional.gelu(hidden) @ weights[f"{layer}.down"][seed]
                    new.append(x)
                xs = new
            answers[seed, n] = norm(xs[-1], "final", seed) @ weights["readout"][seed]
    return answers


@pytest.mark.parametrize(
    "model",
    [ONE, TWO, replace(ONE, mlp=0, positions=False), replace(TWO, layernorm=False), replace(ONE, form="operators")],
    ids=["one", "two", "no mlp, no positions", "no norm", "operators"],
)
def test_the_forward_pass_is_the_one_written_out(model):
    weights = model.initial(PROBLEM, SEEDS)
    weights = {name: part + 0.1 * SEEDS.normal(f"more {name}", *part.shape[1:]) for name, part in weights.items()}
    tokens = PROBLEM.sequence(PROBLEM.inputs(PROBLEM.split(SEEDS, 4)[0]), model.form)
    torch.testing.assert_close(model.logits(weights, tokens), written_out(model, weights, tokens))


def test_tables_of_one_layer_are_the_general_pass():
    weights = ONE.initial(PROBLEM, SEEDS)
    general = ONE._norm(weights, "final", ONE._every_layer(weights, TOKENS, None)) @ weights["readout"]
    torch.testing.assert_close(ONE.logits(weights, TOKENS), general)


def test_number_queries_of_one_layer_decide_nothing():
    """Only = asks for the answer: a change of W^Q that leaves its query as it is changes no logit."""
    weights = ONE.initial(PROBLEM, SEEDS)
    asks = weights["tokens"][:, PROBLEM.p] * math.sqrt(8) + weights["positions"][:, -1]
    asks = ONE._norm(weights, "0.norm", asks.unsqueeze(1)).squeeze(1)
    away = SEEDS.normal("other", 8, 12)
    away = away - asks.unsqueeze(2) * (asks.unsqueeze(1) @ away) / asks.square().sum(1)[:, None, None]
    changed = weights | {"0.query": weights["0.query"] + away}
    torch.testing.assert_close(ONE.logits(changed, TOKENS), ONE.logits(weights, TOKENS))
    assert float((ONE.head_tables(changed, 7) - ONE.head_tables(weights, 7)).abs().max()) > 0.1


def test_head_tables_are_keys_times_queries():
    weights = ONE.initial(PROBLEM, SEEDS)
    reads = ONE.token_inputs(weights, 7)
    tables = ONE.head_tables(weights, 7)
    assert tables.shape == (3, 3, 7, 7)
    key = reads[1] @ weights["0.key"][1][:, 4:8]
    query = reads[1] @ weights["0.query"][1][:, 4:8]
    torch.testing.assert_close(tables[1, 1], key @ query.T)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("model", [ONE, TWO], ids=["one", "two"])
def test_a_seed_trains_the_same_in_any_company(model, dropout):
    model = replace(model, dropout=dropout)
    recipe = TransformerRecipe(steps=6, batch=16, every=3)

    def train(seeds: Seeds) -> dict[str, torch.Tensor]:
        start = model.initial(PROBLEM, seeds)
        return list(recipe.train(model, PROBLEM, start, PROBLEM.split(seeds, 100)[0], seeds))[-1][1]

    together, alone = train(SEEDS), train(Seeds((1,), dtype=torch.float64))
    for name, part in alone.items():
        torch.testing.assert_close(together[name][1:2], part, rtol=1e-8, atol=1e-10)


def test_dropout_keeps_the_mean_and_drops_its_share():
    drop = Dropout(0.25, SEEDS)
    x = drop(torch.ones(3, 200, 100, dtype=torch.float64))
    torch.testing.assert_close((x == 0).double().mean((1, 2)), torch.full((3,), 0.25).double(), rtol=0, atol=0.01)
    torch.testing.assert_close(x.mean((1, 2)), torch.ones(3).double(), rtol=0, atol=0.015)


def test_a_small_transformer_learns_and_decay_shrinks_it():
    problem, seeds = ModularAddition(5, 2), Seeds((0, 1))
    model = Transformer(dim=16, heads=2, head_dim=8, mlp=32)
    train = torch.arange(25).repeat(2, 1)
    start = model.initial(problem, seeds)
    looks = dict(
        TransformerRecipe(steps=160, rate=3e-3, batch=25, every=80, decay=0.0).train(
            model, problem, start, train, seeds
        )
    )
    assert sorted(looks) == [0, 80, 160]
    assert float(correct(model, problem, looks[160], train).double().mean()) > 0.95
    decayed = list(
        TransformerRecipe(steps=160, rate=3e-3, batch=25, decay=1.0).train(model, problem, start, train, seeds)
    )[-1][1]
    assert float(decayed["0.up"].norm()) < float(looks[160]["0.up"].norm())


def test_attention_shares_against_single_spectra():
    start = ONE.initial(PROBLEM, SEEDS)
    trained = {name: part + SEEDS.normal(f"moved {name}", *part.shape[1:]) for name, part in start.items()}
    found = attention_shares(ONE, PROBLEM, start, trained, SEEDS)
    table = ONE.head_tables(trained, 7)[2]
    shares = sorted(float(score_spectrum(table[h]).share(2)) for h in range(3))
    assert float(found["top2_trained"][2]) == pytest.approx(shares[1])
    same = attention_shares(ONE, PROBLEM, start, start, SEEDS)
    for name in ("trained", "embedding"):
        torch.testing.assert_close(same[f"top1_{name}"], same["top1_untrained"])
    assert float((found["top2_shuffled"] - found["top2_trained"]).abs().max()) > 1e-3


def test_mirror_images():
    problem = ModularAddition(5, 2)
    train = problem.flat(torch.tensor([[[1, 2], [3, 3], [4, 0]]]))
    validation = problem.flat(torch.tensor([[[2, 1], [0, 4], [1, 3], [2, 2]]]))
    known = problem.mirrored(train, validation)
    assert known.tolist() == [[True, True, False, False]]
    right = torch.tensor([[True, False, False, True]])
    assert share_correct(right, known).tolist() == [0.5]
    assert share_correct(right, ~known).tolist() == [0.5]
    with pytest.raises(ValueError, match="pair"):
        PROBLEM.mirrored(train, validation)


def test_refusals():
    for change in ({"heads": 0}, {"dropout": 1.0}, {"mlp": -1}):
        with pytest.raises(ValueError, match="at least"):
            replace(ONE, **change)
