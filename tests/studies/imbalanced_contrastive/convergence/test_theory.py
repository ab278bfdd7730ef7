import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.imbalanced_contrastive.convergence.theory import Frozen, optimal_learner, pseudo_loss


@given(weight=st.floats(0, 1), seed=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_the_pseudo_loss_lies_below_its_chords(weight, seed):
    g = torch.Generator().manual_seed(seed)
    w, a, b, x, y = (
        torch.randn(*s, generator=g, dtype=torch.float64) for s in ((4, 6), (4, 6), (4, 6), (8, 1, 6), (8, 4))
    )
    frozen = Frozen.at(w, torch.full((4,), 0.3, dtype=torch.float64), x, 3)
    value = lambda theta: float(pseudo_loss(theta, frozen, y, 2.0))  # noqa: E731
    assert value(weight * a + (1 - weight) * b) <= weight * value(a) + (1 - weight) * value(b) + 1e-10


def test_the_optimal_learner_is_pure_on_lucky_neurons():
    alpha = torch.tensor([[3.0, 0.1, 0.1], [-2.0, 0.1, 0.1], [1.0, 1.0, 1.0]])
    lucky = torch.tensor([[True, False, False], [True, False, False], [False, False, False]])
    target = optimal_learner(alpha, lucky, 4.0, 1.5)
    torch.testing.assert_close(target, torch.tensor([[1.5, 0, 0], [-1.5, 0, 0], [0, 0, 0]]))
