"""The language model of a moment."""

import pytest
import torch

pytest.importorskip("transformers", reason="language models need the extra llm")

from assay.networks import toy_language_model


def test_it_is_made_from_the_seed_and_leaves_the_generator_alone():
    state = torch.get_rng_state()
    one, same, other = (toy_language_model(["a b"], seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    weights = [each.model.lm_head.weight for each in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_its_tokenizer_knows_the_words_with_their_blanks():
    toy = toy_language_model(["a fine film.\nnext"], hidden_size=16)
    ids = toy.tokenizer("a fine film.\nnext other")["input_ids"]
    assert toy.tokenizer.decode(ids[:5]) == "a fine film.\n"
    assert ids[-1] == toy.tokenizer.unk_token_id
    assert toy.model(torch.tensor([ids])).logits.shape == (1, len(ids), len(toy.tokenizer))
    assert not toy.model.training
