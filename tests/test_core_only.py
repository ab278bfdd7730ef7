"""The methods and probes in an environment that has torch, numpy, safetensors and what torch itself needs, and nothing
else: a folder of links to these packages is the interpreter's only path."""

import os
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import assay

CORE = ("torch", "numpy", "safetensors")
ROOMS = ("methods", "probes", "training", "networks", "evaluation", "data")


def needed(names):
    """These distributions and those that they require without an extra."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name.lower() in found:
            continue
        try:
            found[name.lower()] = distribution(name)
        except PackageNotFoundError:  # required on another platform
            continue
        lines = found[name.lower()].requires or []
        waiting += [re.match(r"[\w.-]+", line)[0] for line in lines if "extra ==" not in line]
    return found.values()


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The folder of links."""
    folder = tmp_path_factory.mktemp("core")
    for each in needed(CORE):
        tops = {Path(file).parts[0] for file in each.files or [] if ".." not in Path(file).parts}
        for top in tops - {"__pycache__"}:
            (folder / top).symlink_to(Path(each.locate_file(top)).resolve())
    (folder / "assay").symlink_to(Path(assay.__file__).parent)
    return folder


@pytest.fixture
def bare(core):
    """Run a script there: without site-packages, without the user's folder, without the environment's paths."""

    def run(script, expect=0):
        words = [sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.append({str(core)!r})\n{script}"]
        environment = {"OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == expect, done.stderr[-3000:]
        return done

    return run


def modules():
    """Every module of the rooms, and the science of every study: what neither claims nor draws nor defines arms."""
    package = Path(assay.__file__).parent
    names = [f"assay.{room}" for room in ROOMS]
    for room in ROOMS:
        names += [each.name for each in pkgutil.walk_packages([str(package / room)], f"assay.{room}.")]
    rooms = ("problem.py", "theory.py", "*learners.py")
    names += [
        ".".join(("assay", *path.relative_to(package).with_suffix("").parts))
        for room in rooms
        for path in sorted((package / "studies").rglob(room))
    ]
    return names


def test_everything_but_the_lab_imports(bare):
    names = modules()
    assert {"assay.methods.gemfilter.adapter.cache", "assay.studies.gemfilter.cost.theory"} <= set(names)
    bare(f"import importlib\nfor name in {names}: importlib.import_module(name)")


def test_nothing_else_is_there(bare):
    others = "scipy sklearn polars altair pydantic typer rich joblib transformers pytest"
    script = f"from importlib.util import find_spec\nprint([n for n in {others.split()} if find_spec(n)])"
    assert bare(script).stdout.strip() == "[]"


CALLS = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.methods import (
    ContrastiveUpdate, EraseAndStep, Fomaml, ForwardMagnitudePruner, GemFilter, GroupPenalty, LoopedLinearTransformer,
    Task, build_max_margin, compare_tickets, contrastive_regularized_loss, gradient_ticket, granularity_report,
    linearized, margin_certificate, one_step, random_ids,
)
from assay.probes import (
    AlignmentTracker, GradientConsistency, cka_map, direction_map, fourier_probe, gradient_features, grokking_delay,
    head_tail_probe, p_hat, representation_probe, snapshot, specialisation,
)

torch.manual_seed(0)
inputs = torch.randn(64, 6)
labels = (inputs[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
assert linearized(model)(inputs).shape == (64, 2)
assert len(EraseAndStep(layers=["0"]).apply(model, cross_entropy, [(inputs, labels)])) == 1
assert float(GroupPenalty([("0.weight", 0), ("2.weight", 1)], order=2)(model)) > 0
with ForwardMagnitudePruner(model, alpha=0.5).applied():
    model(inputs)
steps = list(Fomaml(inner_lr=0.1).train(
    model, lambda g: Task(inputs[:8], labels[:8]), cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1),
    steps=2, seed=0))
assert len(steps) == 2
theta = LoopedLinearTransformer(6, 5).solve(inputs, inputs[:, 0])
assert theta.shape == (6,)
assert bool(margin_certificate(*build_max_margin(5, 2)).is_max_margin(1e-9))
print(granularity_report(random_ids(labels, 4, generator=torch.Generator().manual_seed(0)), inputs).advice)
assert GemFilter(layer=2, keep=64).keep == 64
assert contrastive_regularized_loss(model, "2", inputs, labels, augment=torch.sin).total > 0
data = (inputs[:32], labels[:32]), (inputs[32:], labels[32:])
report = ContrastiveUpdate(steps=2).probe(model, inputs, *data, augment=torch.sin, budgets=(8,), seeds=2)
assert "gain" in repr(report)
assert cka_map(model, inputs).values.shape == (3, 3)

assert direction_map(model[0].weight.detach()).points.shape == (16, 2)
assert fourier_probe(torch.randn(12, 3), tokens=12).share.shape == (3,)
assert grokking_delay([(0, 0.1, 0.1), (10, 1.0, 0.2), (20, 1.0, 1.0)]).gap == 10
counts = [40, 24]
assert head_tail_probe(inputs[:32], labels[:32], inputs[32:], labels[32:], counts, share=0.5).accuracy > 0.5
assert len(representation_probe({0: snapshot(model, "1")}, (inputs, labels), (inputs, labels), steps=5)) > 0
specialisation(model[0].weight.detach(), torch.eye(6))
assert GradientConsistency(["0"], chunks=2, steps_per_chunk=1)

found = gradient_features(model, "0", inputs, labels, stability=0.0)
assert "layer 0" in repr(found)
assert p_hat(found.gradients, torch.eye(6)[0]).rows == 16
ticket = gradient_ticket(model, "0", size=4, directions=torch.eye(6)[:1])
data = (inputs, labels)
assert len(compare_tickets(model, "0", ticket.mask, data, data, data, steps=2, learning_rates=[0.1], seeds=1).arms) == 5
record = AlignmentTracker("0", torch.eye(6)[:2], inputs).begin(model)
record.step()
assert record.report().steps == (0, 1)
layer = one_step(inputs, labels * 2.0 - 1, width=8, generator=torch.Generator().manual_seed(0))
assert layer(inputs).shape == (64, 8)
"""


def test_methods_and_probes_run(bare):
    bare(CALLS)


REFUSALS = """
import torch
from assay.data import load_images
from assay.methods import OneStepClassifier, clusters_of_all, loss_floor
from assay.networks import load_model
from assay.probes import cka_map, cluster_statistics, p_hat

for call in (
    lambda: cka_map({"a": torch.randn(9, 2)}).figure(),
    lambda: clusters_of_all(torch.randn(9, 2), torch.arange(9) % 2, 3, seed=0),
    lambda: loss_floor([0.3], negatives=7),
    lambda: cluster_statistics(torch.randn(9, 2), 2, seed=0),
    lambda: load_images("digits"),
    lambda: p_hat(torch.eye(2), torch.eye(2)[0]).interval(),
    lambda: OneStepClassifier(8).fit(torch.randn(9, 2), torch.arange(9) % 2),
    lambda: load_model("some/model"),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_what_needs_an_extra_says_so(bare):
    *lab, llm = bare(REFUSALS).stdout.splitlines()
    assert len(lab) == 7
    assert all(line.endswith("needs the extra 'lab' (pip install 'assay-lab[lab]')") for line in lab)
    assert llm.endswith("needs the extra 'llm' (pip install 'assay-lab[llm]')")


def test_the_command_line_names_the_extra(bare):
    done = bare("from assay.cli import main\nmain()", expect=2)
    assert done.stdout == ""
    assert done.stderr.startswith("assay: ")
    assert "needs the extra 'lab' (pip install 'assay-lab[lab]')" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
