"""Linear CKA: its forms agree with each other and with definitions, and are invariant to what they should be."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.probes import CkaSums, cka_map, linear_cka


def features(seed, rows=30, dim=5, other=8):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, dim, generator=generator, dtype=torch.double)
    mix = torch.randn(dim, other, generator=generator, dtype=torch.double)
    return x, x @ mix + torch.randn(rows, other, generator=generator, dtype=torch.double)


def by_definition(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    norm = torch.linalg.matrix_norm
    return float(norm(y.T @ x) ** 2 / (norm(x.T @ x) * norm(y.T @ y)))


def hsic_unbiased(k, l):
    """Song et al.'s estimator, as it is printed."""
    n = len(k)
    k, l = (m - torch.diag(m.diagonal()) for m in (k, l))
    one = torch.ones(n, dtype=k.dtype)
    total = (k @ l).trace() + (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (one @ k @ l @ one)) / (n * (n - 3))


def by_definition_unbiased(x, y):
    k, l = x @ x.T, y @ y.T
    return float(hsic_unbiased(k, l) / (hsic_unbiased(k, k) * hsic_unbiased(l, l)).sqrt())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(6, 40), dim=st.integers(1, 30), other=st.integers(1, 30))
def test_the_forms_are_equal_and_follow_the_definition(seed, rows, dim, other):
    x, y = features(seed, rows, dim, other)
    for unbiased, expected in ((False, by_definition(x, y)), (True, by_definition_unbiased(x, y))):
        for form in ("features", "gram", "auto"):
            assert linear_cka(x + 3, y, unbiased=unbiased, form=form) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("size", [1, 7, 30])
def test_mini_batches_add_up_to_the_whole(unbiased, size):
    x, y = features(1)
    sums = CkaSums()
    for part in zip(x.split(size), y.split(size), strict=True):
        sums.update(*part)
    assert sums.rows == 30
    assert sums.value(unbiased=unbiased) == pytest.approx(linear_cka(x, y, unbiased=unbiased), abs=1e-9)


@pytest.mark.parametrize("unbiased", [False, True])
def test_what_it_is_invariant_to(unbiased):
    x, y = features(2)
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.double))[0]
    found = linear_cka(x, y, unbiased=unbiased)
    assert linear_cka(y, x, unbiased=unbiased) == pytest.approx(found)
    assert linear_cka(3 * x - 7, y @ turn * 0.01, unbiased=unbiased) == pytest.approx(found)
    assert linear_cka(x, x, unbiased=unbiased) == pytest.approx(1)
    # Not to general invertible maps.
    stretch = torch.diag(torch.tensor([30.0, 1, 1, 1, 1], dtype=torch.double))
    assert abs(linear_cka(x @ stretch, y, unbiased=unbiased) - found) > 0.05


def test_unrelated_wide_features_look_alike_only_to_the_plain_form():
    x, y = (torch.randn(40, 400, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert linear_cka(x, y) > 0.8
    assert abs(linear_cka(x, y, unbiased=True)) < 0.05


@pytest.mark.parametrize(("one", "other", "value"), [(1, 2, 0.944), (1, 3, 0.878), (2, 3, 0.987), (2, 4, 0.968)])
def test_the_values_of_the_linear_model(one, other, value):
    """Mixtures of T tasks give shared features weight 1 and private ones 1/T, with s = 2 and r = 5."""
    z = torch.linalg.qr(torch.randn(4000, 6, generator=torch.Generator().manual_seed(0), dtype=torch.double))[0]
    z = torch.linalg.qr(z - z.mean(0))[0][:, :5]  # five centred columns, exactly uncorrelated
    weights = lambda t: torch.tensor([1.0, 1, *[t**-0.5] * 3], dtype=torch.double)  # noqa: E731
    assert linear_cka(z * weights(one), z * weights(other)) == pytest.approx(value, abs=1e-3)
    formula = (2 + 3 / (one * other)) / ((2 + 3 / one**2) * (2 + 3 / other**2)) ** 0.5
    assert linear_cka(z * weights(one), z * weights(other)) == pytest.approx(formula)


@pytest.mark.parametrize("form", ["features", "gram"])
def test_refusals(form):
    x, y = features(0)
    for wrong, message in (
        ((x, y[:5]), "30 and 5 rows"),
        ((x[:1], y[:1]), "2 rows or more"),
        ((x, torch.full((30, 2), 0.3)), "0/0"),
        ((x / 0, y), "must be finite"),
        ((x.to(torch.cdouble), y), "must be real"),
        ((x, y.unsqueeze(-1)), r"must be \(n, dim\)"),
    ):
        with pytest.raises(ValueError, match=message):
            linear_cka(*wrong, form=form)
    with pytest.raises(ValueError, match="4 rows or more"):
        linear_cka(x[:3], y[:3], unbiased=True, form=form)
    with pytest.raises(ValueError, match="form must be one of"):
        linear_cka(x, y, form="kernel")


def without_products(kind):
    """Features whose unbiased HSIC with themselves is exactly 0: products of different samples are sums of one number
    for each of the two."""
    if kind == "one apart":
        found = torch.zeros(50, 3)
        found[7] = torch.tensor([1.0, 2, 3])
        return found
    return 0.3 + torch.eye(4 if kind == "four unit vectors" else 50)


@pytest.mark.parametrize("kind", ["one apart", "four unit vectors", "unit vectors"])
def test_what_is_0_by_0_up_to_rounding_is_refused(kind):
    """By products of features this was NaN or −1, and noise by Gram matrices."""
    x = without_products(kind)
    y = torch.randn(len(x), 4, generator=torch.Generator().manual_seed(0))
    for form in ("auto", "features", "gram"):
        for pair in ((x, y), (y, x), (x, x), (1000 * x - 3, y)):
            with pytest.raises(ValueError, match="unbiased CKA is 0/0 up to rounding"):
                linear_cka(*pair, unbiased=True, form=form)
        assert 0 < linear_cka(x, y, form=form) < 1  # the plain form is defined
        assert linear_cka(y, y, unbiased=True, form=form) == pytest.approx(1)
    sums = CkaSums()
    for part in zip(x.split(7), y.split(7), strict=True):
        sums.update(*part)
    with pytest.raises(ValueError, match="0/0 up to rounding"):
        sums.value(unbiased=True)
    for size in (10, 50):
        with pytest.raises(ValueError, match="0/0 up to rounding"):
            cka_map({"x": x, "y": y}, batch_size=size)


@pytest.mark.parametrize("form", ["features", "gram"])
def test_little_beside_one_large_sample_is_no_rounding(form):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    x[3] *= 1e4
    expected = by_definition_unbiased(x, x + 1)
    assert linear_cka(x, x + 1, unbiased=True, form=form) == pytest.approx(expected, abs=1e-3)


def test_a_batch_without_rows_changes_nothing():
    x, y = features(1)
    sums = CkaSums()
    for rows in (slice(0), slice(20), slice(20, 20), slice(20, None)):
        sums.update(x[rows], y[rows])
    assert sums.value() == pytest.approx(linear_cka(x, y))


def test_batches_that_do_not_belong_together_are_refused():
    x, y = features(0)
    sums = CkaSums()
    sums.update(x, y)
    with pytest.raises(ValueError, match="as many features"):
        sums.update(x[:, :2], y)
    with pytest.raises(ValueError, match="rows"):
        sums.update(x, y[:4])
