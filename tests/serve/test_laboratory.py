"""The list of studies: told at once, and looked at again meanwhile."""

from __future__ import annotations

import time

import pytest

from assay.lab import UserError
from assay.serve import laboratory
from assay.serve.laboratory import Laboratory


def eventually(what, seconds=10.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_list_is_told_at_once_and_looked_at_again(tmp_path, monkeypatch):
    looks = []

    def look(studies):
        looks.append(studies)
        if len(looks) == 3:
            raise UserError("a study cannot be loaded")
        return [len(looks)]

    monkeypatch.setattr(laboratory.lab, "outlines", look)
    made = Laboratory(tmp_path)
    assert made.outlines() == made.outlines() == [1]
    monkeypatch.setattr(laboratory, "FRESH", -1.0)
    assert made.outlines() == [1], "what was seen before, and a look meanwhile"
    eventually(lambda: made._outlines is not None and made._outlines[1] == [2])
    made.outlines()
    eventually(lambda: made._outlines is None)
    assert len(looks) == 3
    monkeypatch.setattr(laboratory.lab, "outlines", lambda studies: (_ for _ in ()).throw(UserError("still not")))
    with pytest.raises(UserError, match="still not"):
        made.outlines()
