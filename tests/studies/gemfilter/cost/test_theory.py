import pytest

from assay.studies.gemfilter.cost import theory


def test_ceilings_are_those_of_the_source_and_below_its_caption():
    ceilings = [theory.ceiling(shape.layers, layer) for shape, layer in theory.MODELS.values()]
    assert ceilings == pytest.approx([2.46, 2.11, 1.68], abs=0.01)
    assert [value >= 2.4 for value in ceilings] == [True, False, False]


def test_costs_keep_their_order():
    for name in theory.MODELS:
        made = theory.costs(name, 122_880)
        assert made["filter only"].prefill_bytes < made["gemfilter"].prefill_bytes < made["snapkv"].prefill_bytes
        assert made["snapkv"].prefill_bytes < made["full"].prefill_bytes
        assert made["gemfilter"].cache_bytes == made["snapkv"].cache_bytes
