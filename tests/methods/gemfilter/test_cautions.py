"""What every method says of a prompt that is longer than its model was trained for."""

import warnings

import pytest
import torch

from assay.methods.gemfilter import H2O, FullAttention, GemFilter, OneRun, SnapKV, share_prefill

METHODS = [GemFilter(2, 16), SnapKV(16, window=8), H2O(16, window=8), FullAttention(), OneRun(GemFilter(2, 16))]
SENTENCE = (
    "60 tokens at once exceed the 32 that the model was trained for: GemFilter's chunk='auto' reads a prompt of any "
    "length in pieces"
)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_prompt_beyond_the_context_is_told_of_by_every_method(make_model, ids, method):
    model = make_model(max_position_embeddings=32)
    with pytest.warns(UserWarning, match="60 tokens at once") as heard:
        method.generate(model, ids, max_new_tokens=2, do_sample=False)
    assert [str(one.message) for one in heard] == [SENTENCE]
    assert method.name == "gemfilter" or heard[0].filename == __file__


def test_so_it_is_by_a_shared_prefill(make_model, ids):
    model = make_model(max_position_embeddings=32)
    with pytest.warns(UserWarning, match="60 tokens at once") as heard:
        prefilled = share_prefill(model, ids, [SnapKV(16, window=8), FullAttention()])
    assert [str(one.message) for one in heard] == [SENTENCE]
    assert heard[0].filename == __file__
    assert all(one.generate(model, max_new_tokens=2).shape == (1, 62) for one in prefilled)


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)
def test_padding_does_not_count(make_model, ids, method):
    model = make_model(max_position_embeddings=50)
    padded = torch.cat([torch.zeros_like(ids[:, :20]), ids[:, :40]], dim=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method.generate(model, padded, attention_mask=(padded > 0).long(), max_new_tokens=2, do_sample=False)
