"""Other amounts of pretraining data: what the arms train on, and criteria that can fail."""

from __future__ import annotations

import polars as pl
import pytest
import torch

from assay import lab
from assay.data.images import load_images
from assay.lab import Measurements, discovery
from assay.probes.heads import ridge_head
from assay.studies.universality_tradeoff.amounts.arms import part_of
from assay.studies.universality_tradeoff.amounts.problem import related
from assay.studies.universality_tradeoff.images.learners import Pretraining

study = discovery.studies()["universality-tradeoff"]


def judged(claim, found):
    frame = pl.DataFrame(found, infer_schema_length=None).with_columns(
        pl.lit(None).alias("setting"), pl.lit(None).alias("step")
    )
    return study.claims[claim].judge(Measurements(frame, study.resolve("laptop", {})))


def accuracies(values, labels=None, **where):
    """On the target, along growing mixtures or for the last of them; three seeds that differ a little."""
    params = study.resolve("laptop", {})
    names = params.mixtures()[-len(values) :]
    where = {"task": params.image_sources[0], "labels": labels or params.image_labels[0], "metric": "accuracy", **where}
    return [
        {"encoder": name, "seed": seed, "value": value + shift, **where}
        for name, value in zip(names, values, strict=True)
        for seed, shift in enumerate((0.0, 0.01, -0.01 + 1e-3 * len(name)))
    ]


FALLING = (0.7, 0.65, 0.6, 0.55)


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [((0.7, 0.5, 0.4, 0.6), "holds"), (FALLING, "fails"), ((0.4, 0.5, 0.6, 0.7), "fails"), ((0.4,) * 4, "undecided")],
)
def test_a_u_lies_below_both_of_its_ends(curve, verdict):
    found = accuracies(FALLING, arm="images") + accuracies(curve, arm="scarce", share=0.2)
    assert judged("C6r", found).verdict == verdict


@pytest.mark.parametrize(("curve", "verdict"), [(FALLING, "holds"), ((0.7, 0.5, 0.58, 0.4), "fails")])
def test_a_fall_is_judged_at_every_step(curve, verdict):
    assert judged("C6s", accuracies(curve, arm="images")).verdict == verdict


@pytest.mark.parametrize(("curve", "verdict"), [((0.6, 0.6, 0.6, 0.62), "holds"), ((0.8, 0.6, 0.6, 0.5), "fails")])
def test_scarce_images_lose_less(curve, verdict):
    found = accuracies(FALLING, arm="images") + accuracies(curve, arm="scarce", share=0.1)
    assert judged("C6p", found).verdict == verdict


@pytest.mark.parametrize(("curve", "verdict"), [(FALLING, "holds"), (FALLING[::-1], "fails")])
def test_a_related_set_has_the_same_picture_or_not(curve, verdict):
    assert judged("C6t", accuracies(curve, arm="related")).verdict == verdict


@pytest.mark.parametrize(("claim", "labels"), [("C6u", 20), ("C6v", 1000)])
@pytest.mark.parametrize(("value", "verdict"), [(0.4, "holds"), (0.7, "fails")])
def test_a_tenth_is_judged_against_all(claim, labels, value, verdict):
    found = accuracies((0.55,), labels, arm="images") + accuracies((value,), labels, arm="tenth")
    assert judged(claim, found).verdict == verdict


def test_a_related_set_has_the_same_classes_drawn_otherwise():
    digits = load_images("digits", "train", limit=600)
    other = related(digits.images)
    assert other.shape == digits.images.shape
    assert 0 <= float(other.min()) < float(other.max()) <= 1
    assert float((other - digits.images).abs().mean()) > 0.1
    rows = other.flatten(1)
    head = ridge_head(rows[:400], digits.labels[:400])  # its own classes can be told apart, on images not seen
    assert float((head.predict(rows[400:]) == digits.labels[400:]).double().mean()) > 0.8


def test_a_part_is_no_smaller_than_a_batch():
    assert len(part_of(torch.zeros(100), 0.2, 16)) == 20
    assert len(part_of(torch.zeros(100), 0.1, 16)) == 16


@pytest.mark.parametrize(
    ("arm", "point", "sizes"),
    [
        ("scarce", {"encoder": "digits+stripes", "share": "0.2"}, {"digits": 40, "stripes": 200}),
        ("related", {"encoder": "digits+stripes"}, {"digits": 200, "stripes": 200}),
        ("tenth", {}, {"digits": 20, "stripes": 20, "codes": 20}),
        ("classes", {"classes": "5"}, {"digits": 200, "codes": 20}),
    ],
)
def test_what_the_arms_train_on(monkeypatch, arm, point, sizes):
    seen = []
    usual = Pretraining.train

    def watched(self, sets, seed, device):
        seen.append({name: len(images) for name, images in sets.items()})
        if arm == "related":
            digits = load_images("digits", "train", limit=200).images
            assert torch.equal(sets["digits"], related(digits))
        return usual(self, sets, seed, device)

    found = discovery.find(study.name)  # not the imported module: the lab may have loaded the files anew since
    monkeypatch.setattr(
        found.arms[arm].function.__globals__["Params"].recipe.__globals__["Pretraining"], "train", watched
    )
    m = lab.try_arm(found, arm, preset="smoke", seeds=1, **point)
    assert seen == [sizes]
    assert m.rows("accuracy")["task"].unique().to_list() == ["digits"]
