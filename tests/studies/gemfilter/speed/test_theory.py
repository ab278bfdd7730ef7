import pytest

from assay.studies.gemfilter.speed import theory


def test_the_share_of_operations_tends_to_the_share_of_layers():
    made = theory.shape(128)
    shares = [theory.prefill_share(made, n) for n in (256, 1536, 2**20)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(theory.FILTER_LAYER / theory.LAYERS, rel=1e-3)
    assert shares[0] == pytest.approx((theory.FILTER_LAYER + 0.2) / theory.LAYERS, rel=0.1)


def test_keys_and_values_of_a_layer_by_hand():
    made = theory.shape(256)
    assert (made.heads, made.kv_heads) == (8, 2)
    assert theory.layer_cache_bytes(made, 100, 4) == 2 * 2 * 32 * 100 * 4
