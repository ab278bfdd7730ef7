import numpy as np
import pytest
import torch

from assay.data import domains
from assay.data.catalog import DataUnavailable, UnknownData, available
from assay.data.domains import load_domains


def pets(shelf, name="pets"):
    """Two domains with the classes cat and dog, and one class that only photographs have."""
    for domain in ("photo", "drawn"):
        shelf.files(f"{name}/{domain}/cat", shelf.arrays((4, 4, 3), 3))
        shelf.files(f"{name}/{domain}/dog", shelf.arrays((4, 4, 3), 2))
    shelf.files(f"{name}/photo/bird", shelf.arrays((6, 5), 1))


def test_folders_of_images_are_domains(shelf):
    pets(shelf)
    (shelf.folder / "pets" / "notes.txt").write_text("no domain")
    (shelf.folder / "pets" / ".cache").mkdir()
    found = load_domains("pets", size=4)
    assert list(found) == ["drawn", "photo"]
    assert found.class_names == ("bird", "cat", "dog")
    drawn, photo = found["drawn"], found["photo"]
    assert drawn.labels.tolist() == [1, 1, 1, 2, 2], "a label means the same in every domain"
    assert photo.labels.tolist() == [0, 1, 1, 1, 2, 2]
    assert (photo.name, photo.classes, drawn.classes) == ("pets:photo", 3, 3)
    cats = np.stack(shelf.arrays((4, 4, 3), 3)).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    assert np.array_equal(drawn.images[:3].numpy(), cats), "what has the size already is left as it is"


@pytest.mark.parametrize("size", [2, 7])
def test_all_images_have_the_stated_size(shelf, size):
    pets(shelf)
    for images in load_domains("pets", size=size).values():
        assert images.images.shape == (len(images), 3, size, size)
        assert images.images.dtype == torch.float32
        assert images.images.min() >= 0
        assert images.images.max() <= 1


def test_other_sizes_are_averaged_over_areas_and_grey_is_repeated(shelf):
    array = np.arange(16, dtype=np.uint8).reshape(4, 4)
    shelf.files("grey/one/class", [array])
    (image,) = load_domains("grey", size=2)["one"].images
    expected = torch.tensor([[2.5, 4.5], [10.5, 12.5]]) / 255
    torch.testing.assert_close(image, expected.expand(3, 2, 2))


def test_parquet_files_are_domains(shelf):
    for domain, labels in (("day", [0, 1, 0, 1]), ("night", [0, 0, 0, 3])):
        shelf.images(f"places/{domain}", shelf.arrays((5, 5, 3), 4), labels, splits=("train",))
    found = load_domains("places", size=5, per_class=1)
    assert found["day"].labels.tolist() == [0, 1]
    assert found["night"].labels.tolist() == [0, 3]
    assert [each.classes for each in found.values()] == [4, 4]
    expected = torch.from_numpy(np.stack(shelf.arrays((5, 5, 3), 4))[[0, 3]]).permute(0, 3, 1, 2) / 255
    assert torch.equal(found["night"].images, expected)


def test_a_domain_is_decoded_when_it_is_asked_for_and_once(shelf, monkeypatch):
    pets(shelf)
    seen = []
    decoded = domains.decoded
    monkeypatch.setattr(domains, "decoded", lambda source, name: seen.append(name) or decoded(source, name))
    found = load_domains("pets")
    assert (len(found), "photo" in found, "drawn" in repr(found)) == (2, True, True)
    assert seen == []
    assert found["drawn"] is found["drawn"]
    assert seen == ["pets:drawn"] * 5


def test_the_first_of_each_class(shelf):
    pets(shelf)
    whole, part = load_domains("pets", size=4)["drawn"], load_domains("pets", size=4, per_class=2)["drawn"]
    assert part.labels.tolist() == [1, 1, 2, 2]
    assert torch.equal(part.images, whole.images[[0, 1, 3, 4]])


@pytest.mark.parametrize("folder", ["PACS", "pacs"])
def test_a_set_of_the_catalog_lies_in_a_folder_of_its_name(shelf, folder):
    pets(shelf, folder)
    assert available("pacs") is None
    assert len(load_domains("pacs")) == 2


def test_unknown_absent_and_of_another_kind_are_told_apart(shelf):
    with pytest.raises(UnknownData, match=r"unknown set of domains 'pax' \(allowed: pacs, vlcs,"):
        load_domains("pax")
    with pytest.raises(UnknownData, match="'mnist' is no set of domains but an image set"):
        load_domains("mnist")
    with pytest.raises(DataUnavailable, match="the set of domains 'pacs' is not on this machine") as caught:
        load_domains("pacs")
    assert not isinstance(caught.value, UnknownData)


def test_folders_that_are_no_domains_say_what_they_lack(shelf):
    (shelf.folder / "pacs").mkdir()
    assert "has no sub-folder for each domain" in available("pacs")
    (shelf.folder / "pacs" / "photo" / "cat").mkdir(parents=True)
    assert "photo holds neither Parquet files nor one sub-folder of images per class" in available("pacs")
    shelf.files("pacs/photo/cat", shelf.arrays((2, 2), 1))
    assert available("pacs") is None
    shelf.images("pacs/sketch", shelf.arrays((2, 2), 2), [0, 1], splits=("train",))
    assert "some domains" in available("pacs")
    with pytest.raises(DataUnavailable, match="some domains"):
        load_domains("pacs")


def test_a_file_that_is_no_image_is_named(shelf):
    pets(shelf)
    (shelf.folder / "pets" / "photo" / "cat" / "0.png").write_bytes(b"no image")
    with pytest.raises(DataUnavailable, match=r"0.png of 'pets:photo' cannot be decoded"):
        load_domains("pets")["photo"]


@pytest.mark.parametrize("arguments", [{"size": 0}, {"per_class": 0}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        load_domains("pacs", **arguments)


def test_images_can_be_decoded_one_by_one(shelf, monkeypatch):
    pets(shelf)
    found = load_domains("pets", size=4, per_class=2)
    kept = found["photo"]
    seen = []
    decoded = domains.decoded
    monkeypatch.setattr(domains, "decoded", lambda source, name: seen.append(name) or decoded(source, name))
    streamed = found.streams()["photo"]
    assert (len(streamed), streamed.labels.tolist(), streamed.classes) == (len(kept), kept.labels.tolist(), 3)
    assert seen == [], "labels are known without decoding"
    image, label = streamed[3]
    assert torch.equal(image, kept.images[3])
    assert label == int(kept.labels[3])
    assert seen == ["pets:photo"]
    dark = found.stream("photo", transform=lambda image: 0 * image)
    assert float(dark[0][0].max()) == 0
    assert "decoded one by one" in repr(streamed)
    loader = torch.utils.data.DataLoader(streamed, batch_size=2)
    assert torch.equal(torch.cat([images for images, _ in loader]), kept.images)
