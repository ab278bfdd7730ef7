import torch

from assay.networks import SmallCnn


def test_features_are_vectors_and_the_weights_are_the_generators():
    one, again, other = (SmallCnn(1, 4, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert one(torch.rand(3, 1, 8, 8)).shape == (3, 16)
    assert torch.equal(one.layers[0].weight, again.layers[0].weight)
    assert not torch.equal(one.layers[0].weight, other.layers[0].weight)
