"""What every layer would keep of a prompt, in one pass."""

from __future__ import annotations

import pytest

from assay.methods.gemfilter import GemFilter
from assay.methods.gemfilter.every_layer import every_layer


@pytest.mark.parametrize("rule", ["logits", "window"])
def test_each_layer_keeps_what_its_own_filter_would(llama, ids, rule):
    found = every_layer(llama, ids[0].tolist(), GemFilter(layer=2, keep=12, rule=rule))
    assert len(found) == 5
    for layer, places in enumerate(found):
        alone = GemFilter(layer=layer, keep=12, rule=rule).select(llama, ids)
        assert places == alone.kept()


def test_a_prompt_that_fits_is_kept_whole(llama, ids):
    assert every_layer(llama, ids[0].tolist(), GemFilter(layer=2, keep=100)) == [list(range(60))] * 5


def test_chunks_are_read_as_the_filter_reads_them(llama, ids):
    gem = GemFilter(layer=1, keep=12, chunk=32, overlap=4, tail=8)
    assert every_layer(llama, ids[0].tolist(), gem)[1] == gem.select(llama, ids).kept()


def test_rows_other_than_the_last_are_for_one_layer(llama, ids):
    with pytest.raises(ValueError, match="last rows"):
        every_layer(llama, ids[0].tolist(), GemFilter(layer=1, keep=12, row="middle"))
