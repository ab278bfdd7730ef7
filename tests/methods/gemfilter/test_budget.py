"""A budget is a number of tokens or a share of the prompt, the same for every method."""

import pytest

from assay.methods.gemfilter import H2O, GemFilter, OneRun, SnapKV
from assay.methods.gemfilter.budget import budget_of
from assay.methods.gemfilter.comparing import Comparison

MAKE = {
    "gemfilter": lambda keep: GemFilter(layer=2, keep=keep),
    "one-run": lambda keep: OneRun(GemFilter(layer=2, keep=keep)),
    "snapkv": lambda keep: SnapKV(keep, window=8),
    "h2o": lambda keep: H2O(keep, window=8),
    "comparison": lambda keep: Comparison(keep=keep),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_share_of_the_prompt_is_a_budget(name):
    assert [MAKE[name](0.25).budget(length) for length in (60, 61, 62, 100)] == [15, 15, 16, 25]
    assert MAKE[name](40).budget(60) == 40


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize(
    ("keep", "sentence"),
    [
        (1.5, "keep must be an integer, or a share of the prompt between 0 and 1, not 1.5"),
        (1.0, "a share of the prompt between 0 and 1, not 1.0"),
        (0.0, "between 0 and 1, not 0.0"),
        (float("nan"), "keep must be"),
        (-3, "keep must be at least 1, not -3"),
    ],
)
def test_what_is_no_budget_gets_one_sentence(name, keep, sentence):
    with pytest.raises(ValueError, match=sentence):
        MAKE[name](keep)


@pytest.mark.parametrize("name", ["gemfilter", "one-run", "snapkv", "h2o"])
def test_a_share_keeps_what_the_number_keeps(llama, ids, name):
    shared, counted = (MAKE[name](keep).generate(llama, ids, max_new_tokens=4, do_sample=False) for keep in (0.25, 15))
    assert shared.tolist() == counted.tolist()


def test_shares_have_their_limits(llama, ids):
    with pytest.raises(ValueError, match=r"keep = 0.1 of 60 tokens is 6, which must exceed the window of 8"):
        SnapKV(0.1, window=8).generate(llama, ids, max_new_tokens=2)
    with pytest.raises(ValueError, match="decode_eviction holds the cache at one size"):
        H2O(0.5, window=8, decode_eviction=True)
    padded, mask = ids.repeat(2, 1), ids.repeat(2, 1).ne(-1).long()
    mask[1, :20] = 0
    for name in ("one-run", "snapkv", "h2o"):
        with pytest.raises(ValueError, match="prompts of several lengths have several shares"):
            MAKE[name](0.5).generate(llama, padded, attention_mask=mask, max_new_tokens=2)
    assert budget_of(0.001, 60) == 1


def test_forced_tokens_that_a_share_does_not_hold_are_refused(llama, ids):
    gem = GemFilter(layer=2, keep=0.05, keep_first=1, keep_last=3)
    with pytest.raises(ValueError, match=r"keep = 0.05 of 60 tokens is 3, and keep_first and keep_last ask for 4"):
        gem.select(llama, ids)
    assert gem.select(llama, ids.repeat(1, 2)).kept()[-3:] == [117, 118, 119]
    assert gem.select(llama, ids[:, :1]).kept() == [0]
