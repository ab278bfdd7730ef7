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


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: head_and_tail([1]), "two classes"),
        (lambda: head_and_tail([1, 2], 0.6), "share"),
        (lambda: score_head_tail(torch.zeros(2), torch.zeros(2, dtype=torch.long), [1, 2]), "at least one test"),
        (
            lambda: head_tail_probe(torch.ones(3, 2), torch.zeros(2), torch.ones(1, 2), torch.zeros(1), [1, 2]),
            "lengths",
        ),
    ],
)
def test_bad_input_is_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
