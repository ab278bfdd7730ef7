"""Every report reads well, is a table, is kept as JSON and draws itself."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay import methods, probes
from assay._reports import Report

torch.manual_seed(0)
INPUTS = torch.randn(60, 5)
LABELS = (INPUTS[:, 0] > 0).long()
GENERATOR = torch.Generator().manual_seed(0)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


def trained(settings: Any, **options: Any) -> Any:
    """The report of something that watches a training."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with settings.attach(model, optimizer) as record:
        for _ in range(6):
            optimizer.zero_grad()
            cross_entropy(model(INPUTS), LABELS).backward()
            optimizer.step()
    return record.report(**options)


def audit() -> Report:
    tasks = [methods.Task(INPUTS[i : i + 12], LABELS[i : i + 12]) for i in range(0, 48, 12)]
    settings = methods.SplitAudit(methods.Fomaml(0.1, 1, tasks_per_step=2, stratify=False), steps=2, test_tasks=3)
    return settings.run(net, lambda m: torch.optim.SGD(m.parameters(), 0.1), tasks, tasks, cross_entropy, seed=0)


def transformer() -> nn.Module:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.embedding = nn.Embedding(9, 8)
            layer = nn.TransformerEncoderLayer(8, 2, 8, norm_first=True, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    return Small()


HIERARCHY = methods.LabelHierarchy("quarters", 2 * LABELS + (INPUTS[:, 1] > 0), LABELS, aligned=True)
TASKS = [methods.Task(INPUTS, LABELS)] * 4
REPLACED = methods.ReplacementData(INPUTS, LABELS, INPUTS, LABELS, INPUTS, INPUTS)
REPLACE = methods.InputReplacement(teacher_steps=2, student_steps=2, batch=40, evaluate_every=1)
REPORTS: dict[str, Callable[[], Any]] = {
    "gain": lambda: methods.feature_learning_gain(
        net(), (INPUTS, LABELS), (INPUTS, LABELS), (INPUTS, LABELS), head="2", steps=3, batch_size=20, seeds=3
    ),
    "erasure": lambda: methods.EraseAndStep(["0"]).apply(net(), cross_entropy, (INPUTS, LABELS)),
    "meta training": lambda: methods.fomaml(
        model := net(), TASKS, cross_entropy, torch.optim.SGD(model.parameters(), 0.1), steps=3, seed=0
    ),
    "audit": audit,
    "domain theory": lambda: methods.domain_theory(10, 50, 0.3),
    "split effect": lambda: methods.predict_split_effect(4.0, 20, 10, 8, 3, 0.1),
    "mask": lambda: methods.ForwardMagnitudePruner(net(), alpha=0.3).report(),
    "conditions": lambda: methods.prompt_condition(INPUTS.reshape(3, 20, 5)),
    "size curve": lambda: REPLACE.size_curve(lambda size: net(), [1, 2, 3], REPLACED, seeds=[0, 1, 2]),
    "replacement": lambda: REPLACE.run(lambda size: net(), REPLACED, teacher_size=1, student_size=1, seeds=[0, 1, 2]),
    "certificate": lambda: methods.margin_certificate(*methods.build_max_margin(5, 2)),
    "plan": lambda: methods.contrastive_plan(
        torch.tensor([0.9, 0.8, 0.7, 0.6]), methods.Descent(0.1, 0.01, 0.5, 8), dim=20, width=64
    ),
    "granularity": lambda: methods.granularity_report(HIERARCHY, INPUTS),
    "transfer": lambda: methods.FineToCoarse(methods.Stage(1, 30), rates=(1.0,)).run(
        net(), INPUTS, HIERARCHY, validation=(INPUTS, LABELS), test=(INPUTS, LABELS), seed=0
    ),
    "consistency": lambda: trained(probes.GradientConsistency(["0", "2"], chunks=2, steps_per_chunk=2)),
    "cosines of chunks": lambda: probes.chunk_cosines(torch.randn(3, 4, 5, generator=GENERATOR)),
    "direction path": lambda: trained(probes.DirectionTracker("0", torch.eye(5)[:2], every=2)),
    "direction map": lambda: probes.direction_map(INPUTS[:9], torch.eye(5)),
    "clusters": lambda: probes.cluster_statistics(INPUTS, 2, seed=0),
    "spectrum": lambda: probes.fourier_probe(torch.randn(7, 4, generator=GENERATOR)),
    "logit spectrum": lambda: probes.logit_fourier(torch.randn(5, 5, 5, generator=GENERATOR), 5, 2),
    "score spectrum": lambda: probes.attention_fourier(transformer(), 0, 0, range(9)),
    "scan": lambda: probes.scan_attention(transformer(), range(9), orders=19),
    "descent fit": lambda: probes.gd_probe(
        torch.randn(4, 3, 5, generator=GENERATOR), INPUTS.reshape(3, 20, 5), torch.randn(3, 20, generator=GENERATOR)
    ),
    "delay": lambda: probes.grokking_delay([(0, 0.5, 0.5), (10, 1.0, 0.6), (50, 1.0, 1.0)]),
    "head and tail": lambda: probes.head_tail_probe(INPUTS, LABELS, INPUTS, LABELS, [3, 1]),
    "representation": lambda: probes.representation_probe({0: net(), 10: net()}, (INPUTS, LABELS), (INPUTS, LABELS)),
    "specialisation": lambda: probes.specialisation(INPUTS[:6], torch.eye(5), groups=["head"] * 3 + ["tail"] * 2),
}


@pytest.mark.filterwarnings("ignore:c₁ log d")
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_taken_apart_kept_and_drawn(name, tmp_path):
    report = REPORTS[name]()
    assert isinstance(report, Report)
    assert "object at 0x" not in repr(report)
    assert report.headline() in repr(report) or len(repr(report).splitlines()) > 1
    rows = report.table()
    assert rows
    assert all(isinstance(row, dict) for row in rows)
    kept = json.loads(report.save(tmp_path / "report.json").read_text())
    assert kept["report"] == type(report).__name__
    pytest.importorskip("altair")
    assert report.figure().to_dict()["$schema"]


def test_what_is_called_a_report_is_one():
    found = []
    for room in (methods, probes):
        for each in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for name, thing in vars(importlib.import_module(each.name)).items():
                if inspect.isclass(thing) and is_dataclass(thing) and name.endswith("Report"):
                    found.append(name)
                    assert issubclass(thing, Report), f"{each.name}.{name}"
    assert len(found) > 10
