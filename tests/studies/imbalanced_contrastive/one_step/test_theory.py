import torch

from assay.studies.imbalanced_contrastive.one_step.theory import first_order_response


def test_the_response_formula_is_the_derivative_of_the_softmax():
    u = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    change = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    tau, h = 1.7, 1e-6
    positive = lambda t: ((u + t * change) / tau).softmax(-1).diagonal()  # noqa: E731
    numeric = (positive(h) - positive(-h)) / (2 * h)
    torch.testing.assert_close(first_order_response((u / tau).softmax(-1), change, tau), numeric, rtol=1e-6, atol=1e-9)
