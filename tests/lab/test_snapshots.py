"""Neurons over training: recorded by an arm, stored, and read back from a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import lab
from assay.lab import Recorder
from assay.lab.events import Started
from assay.lab.snapshots import POINTS

STUDY = '''
import torch

from assay import lab


class Params(lab.Params):
    pass


study = lab.Study(
    "turning", title="t", question="q?", source="s", params=Params,
    presets={name: lab.Preset(seeds=3, cost="1 s") for name in ("smoke", "laptop", "paper")},
)


@study.arm("seen", over={"k": [1, 2]}, chunk=2)
def seen(params, seeds, record, *, k):
    """Neurons that stand at their seed."""
    places = torch.tensor([float(seed) for seed in seeds])
    points = places.view(-1, 1, 1, 1).expand(-1, 4, 5, 2)
    record(level=places)
    record.neurons([0, 1, 2, 8], points * k, landmarks={"goal": points[:, 0, 0]}, cosine=points[..., 0])


@study.arm("unseen")
def unseen(params, seeds, record):
    """One that keeps an array of another name."""
    record(level=1.0)
    record.array("weights", torch.zeros(len(seeds), 2))
'''


@pytest.fixture
def studies(tmp_path):
    (tmp_path / "studies/turning").mkdir(parents=True)
    (tmp_path / "studies/turning/study.py").write_text(STUDY)
    return tmp_path / "studies"


def test_a_run_gives_back_what_its_arms_recorded(studies, tmp_path):
    run = lab.run("turning", "smoke", runs=tmp_path / "runs", studies=studies, jobs=1)
    assert run.has_snapshots
    first, second = run.snapshots
    assert (first.arm, first.point, first.seeds, first.steps) == ("seen", {"k": 1}, [0, 1, 2], [0, 1, 2, 8])
    assert first.points.shape == (3, 4, 5, 2)
    np.testing.assert_array_equal(second.points[:, 0, 0, 0], [0, 2, 4])
    np.testing.assert_array_equal(second.landmarks["goal"], [[0, 0], [1, 1], [2, 2]])
    np.testing.assert_array_equal(first.probes["cosine"][2], np.full((4, 5), 2.0))
    assert repr(second) == "<Snapshots of seen k=2: 5 neurons at 4 steps, 3 seeds>"
    assert "weights" in run.results.array_names(arm="unseen")


def test_a_run_without_them_has_none(studies, tmp_path):
    run = lab.run("turning", "smoke", arms="unseen", runs=tmp_path / "runs", studies=studies, jobs=1)
    assert not run.has_snapshots
    assert run.snapshots == []


def test_shapes_that_do_not_go_together_are_refused():
    record = Recorder([0, 1])
    points = torch.zeros(2, 3, 4, 2)
    with pytest.raises(ValueError, match="points of neurons"):
        record.neurons([0, 1], points, landmarks={})
    with pytest.raises(ValueError, match="landmark 'goal'"):
        record.neurons([0, 1, 2], points, landmarks={"goal": torch.zeros(2, 3)})
    record = Recorder([0, 1])
    with pytest.raises(ValueError, match="probe 'cosine'"):
        record.neurons([0, 1, 2], points, landmarks={}, cosine=torch.zeros(2, 3))
    record = Recorder([0, 1])
    record.neurons([0, 1, 2], points, landmarks={})
    assert record.arrays[POINTS].dtype == np.float32
    with pytest.raises(ValueError, match="recorded twice"):
        record.neurons([0, 1, 2], points, landmarks={})


def test_a_run_says_its_id_when_it_starts_and_can_be_marked_when_its_process_died(studies, tmp_path):
    heard = []
    where = {"runs": tmp_path / "runs", "studies": studies}
    run = lab.run("turning", "smoke", arms="unseen", jobs=1, on_event=heard.append, **where)
    assert isinstance(heard[0], Started)
    assert heard[0].run == run.id
    assert lab.mark_interrupted(run.id, runs=tmp_path / "runs").manifest.status == "complete"
    run.manifest.status = "running"
    run.store.write_manifest(run.manifest)
    lab.mark_interrupted(run.id, runs=tmp_path / "runs")
    assert lab.find_run(run.id, **where).manifest.status == "interrupted"


def test_a_study_is_found_by_name(studies):
    assert lab.has_study("turning", studies=studies)
    assert not lab.has_study("../turning", studies=studies)
    assert lab.find_study("turning", studies=studies).title == "t"
