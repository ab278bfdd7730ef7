import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.probes.head_tail import head_and_tail, head_tail_probe, score_head_tail


def test_head_and_tail_are_ranked_by_pretraining_frequency():
    assert head_and_tail([5, 100, 50, 5, 1]) == ((1,), (4,))
    assert head_and_tail(list(range(10, 0, -1))) == ((0, 1), (8, 9))
    assert head_and_tail([1, 2]) == ((1,), (0,))


@given(classes=st.integers(2, 60))
def test_both_ends_have_the_rounded_share(classes):
    head, tail = head_and_tail([1] * classes)
    assert len(head) == len(tail) == max(1, round(0.2 * classes))
    assert not set(head) & set(tail)


def test_equal_accuracies_have_no_gap_and_a_lost_tail_a_full_one():
    labels = torch.arange(10).repeat(4)
    counts = list(range(10, 0, -1))
    assert score_head_tail(labels, labels, counts).gap == 0
    lost = score_head_tail(torch.where(labels >= 8, 0, labels), labels, counts)
    assert lost.gap == 1
    assert lost.accuracy == 0.8
    assert lost.per_class.tolist() == [1.0] * 8 + [0.0] * 2


def test_the_probe_separates_what_is_separable_and_has_no_seed():
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(4, 6, generator=generator)
    labels = torch.arange(200) % 4
    features = torch.cat([centres[labels] + 0.3 * torch.randn(200, 6, generator=generator), torch.ones(200, 1)], 1)
    found = head_tail_probe(features[:100], labels[:100], features[100:], labels[100:], [4, 3, 2, 1])
    assert found.accuracy == 1.0
    again = head_tail_probe(features[:100], labels[:100], features[100:], labels[100:], [4, 3, 2, 1])
    assert torch.equal(found.per_class, again.per_class)
    noise = torch.randn(200, 6, generator=generator)
    assert head_tail_probe(noise[:100], labels[:100], noise[100:], labels[100:], [4, 3, 2, 1]).accuracy < 0.5


def clusters(seed=0):
    """Training features, training labels, test features, test labels of four classes that overlap a little."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(200) % 4
    features = 2 * torch.randn(4, 6, generator=generator)[labels] + torch.randn(200, 6, generator=generator)
    return features[:100], labels[:100], features[100:], labels[100:]


def test_the_scale_of_one_feature_does_not_decide_about_another():
    # The fits agree to some 1e-3 of a logit, where L-BFGS in float32 stops, so that predictions are equal only if no
    # test sample is nearly a tie. Under this seed the two best logits are 1 apart or more; under 0 one pair is 0.01.
    features, labels, test_features, test_labels = clusters(seed=4)
    plain = head_tail_probe(features, labels, test_features, test_labels, [4, 3, 2, 1])
    scale = torch.tensor([1e8, 1.0, 1e-8, 1.0, 1e-20, 1e20])
    scaled = head_tail_probe(features * scale, labels, test_features * scale, test_labels, [4, 3, 2, 1])
    assert plain.accuracy > 0.8
    assert torch.equal(scaled.per_class, plain.per_class)
    constant = [
        torch.cat([x, torch.full((100, 2), 0.1) * torch.tensor([1, 1e9])], 1) for x in (features, test_features)
    ]
    constant[1][:, 6:] = 5.0  # what varies in the test features alone was never learned from
    left_out = head_tail_probe(constant[0], labels, constant[1], test_labels, [4, 3, 2, 1])
    assert torch.equal(left_out.per_class, plain.per_class)


def test_the_probe_runs_on_what_inference_mode_made_and_inside_it():
    expected = head_tail_probe(*clusters(), [4, 3, 2, 1])
    with torch.inference_mode():
        made = clusters()
        inside = head_tail_probe(*made, [4, 3, 2, 1])
    outside = head_tail_probe(*made, [4, 3, 2, 1])
    for found in (inside, outside):
        assert torch.equal(found.per_class, expected.per_class)


@pytest.mark.parametrize(("place", "what"), [(0, "training"), (2, "test")])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_features_that_are_not_finite_are_refused(place, what, value):
    parts = clusters()
    parts[place][3, 1] = value
    with pytest.raises(ValueError, match=f"the {what} features must be finite, and 1 of"):
        head_tail_probe(*parts, [4, 3, 2, 1])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: head_and_tail([1]), "two classes"),
        (lambda: head_and_tail([1, 2], 0.6), "share"),
        (lambda: score_head_tail(torch.zeros(2), torch.zeros(2, dtype=torch.long), [1, 2]), "at least one test"),
    ],
)
def test_bad_input_is_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_the_gap_has_an_interval_over_test_samples_and_says_when_it_decides_nothing():
    counts = list(range(10, 0, -1))
    few, many = torch.arange(10).repeat(4), torch.arange(10).repeat(400)
    same = score_head_tail(few, few, counts)
    assert same.interval().low < 0 < same.interval().high  # all right, and still only four samples of a class
    assert same.advice == "undecided"
    tilted = torch.where((many == 9) & (torch.arange(len(many)) % 20 < 10), 0, many)
    found = score_head_tail(tilted, many, counts)
    assert found.gap == pytest.approx(0.25)
    assert found.interval().low < 0.25 < found.interval().high
    assert found.advice == "the head is ahead"
    assert score_head_tail(tilted, many, counts[::-1]).advice == "the tail is ahead"
    assert {"low", "high"} <= set(found.table()[0])
