from __future__ import annotations

import pytest
import torch

from assay.data.images import ImageSet
from assay.studies.nuclear_norm.images.problem import (
    AGREEMENT,
    FRAME,
    NAMES,
    FramedImages,
    cue_free,
    frame_places,
    source_images,
)


def grey(n: int, classes: int = 10, side: int = 8) -> ImageSet:
    g = torch.Generator().manual_seed(0)
    return ImageSet(torch.rand(n, 1, side, side, generator=g), torch.arange(n) % classes, "grey", classes)


@pytest.mark.parametrize("cue", ["patch", "texture"])
def test_cues_agree_as_often_as_they_should_and_images_stay(cue):
    source = grey(5000)
    domains, rest = FramedImages(cue).domains(source, 0), cue_free(source, 0)
    assert list(domains) == list(NAMES)
    codes = FramedImages("texture").framed(source.images[:10], torch.arange(10), 10, 1.0, torch.Generator())[0]
    places = frame_places(12, 12)
    for name, agreement in zip(NAMES, AGREEMENT[cue], strict=True):
        domain = domains[name]
        frames = domain.images.flatten(1)[:, places]
        if cue == "patch":
            assert torch.equal(frames.argmax(1), domain.cues)
            assert bool((frames.sum(1) == 1).all())
            shares = (domain.cues == domain.labels).double()
            assert float(shares.mean()) == pytest.approx(agreement, abs=5 * 0.5 / len(shares) ** 0.5)
        else:
            own = codes.flatten(1)[:, places][domain.labels]
            agree = (frames[:, :60] == own[:, :60]).double()
            assert float(agree.mean()) == pytest.approx(agreement, abs=5 * 0.5 / agree.numel() ** 0.5)
            assert bool((frames[:, 60:] == 0).all())
    inside = rest.images[:, :, FRAME:-FRAME, FRAME:-FRAME]
    assert inside.shape[2:] == (8, 8)
    assert float(rest.images.flatten(1)[:, places].abs().sum()) == 0
    assert sum(len(domain.labels) for domain in domains.values()) + len(rest.labels) == len(source)


def test_an_empty_frame_and_contrasts():
    source = grey(100)
    domains = FramedImages("none").domains(source, 3)
    means = [float(domain.images[:, :, 2:-2, 2:-2].mean()) for domain in domains.values()]
    assert means[0] > means[1] > means[2]
    again = FramedImages("none").domains(source, 3)
    other = FramedImages("none").domains(source, 4)
    assert torch.equal(domains["first"].labels, again["first"].labels)
    assert not torch.equal(domains["first"].images, other["first"].images)


def test_refusals():
    with pytest.raises(ValueError, match="a cue is one of"):
        FramedImages("colour")
    with pytest.raises(ValueError, match="at least 1 pixel"):
        FramedImages("texture", 0)
    small = grey(20, side=1)
    with pytest.raises(ValueError, match="no place for 60 weak"):
        FramedImages("texture").domains(small, 0)
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        FramedImages("patch").framed(small.images, small.labels, 10, 1.5, torch.Generator())


def test_images_come_at_a_side_and_up_to_a_limit():
    found = source_images("digits", 4, 300)
    assert found.images.shape == (300, 1, 4, 4)
    assert source_images("digits", None, 10_000).images.shape == (1797, 1, 8, 8)
