from assay.studies.gemfilter.cost.theory import MODELS
from assay.studies.gemfilter.exact import theory


def test_positions_and_sets():
    shape = MODELS["LLaMA 3.1 8B"][0]
    assert theory.position_range("gemfilter", 1000, 64, 5) == 67
    assert theory.position_range("snapkv", 1000, 64, 5) == 1003
    assert theory.index_sets("gemfilter", shape) == 1
    assert theory.index_sets("snapkv", shape) == 32 * 8
