"""The protocol on small made-up domains and on a tiny folder of images."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy

from assay.data import load_domains
from assay.evaluation import Algorithm, LeaveOneDomainOut
from assay.evaluation.domain_checks import logits_of
from assay.evaluation.domain_data import Samples, endless
from assay.evaluation.domain_report import bootstrap
from assay.methods import SWAD, Mixup, NuclearNorm
from assay.networks import Backbone

QUICK = LeaveOneDomainOut(steps=30, batch=8, check_every=10)
ERM = Algorithm("ERM", learning_rate=0.02)


def points(seed, shift=0.0, n=60):
    """Two classes along the first coordinate; the second is the domain's own."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2
    inputs = torch.randn(n, 4, generator=generator)
    inputs[:, 0] += 4.0 * labels - 2
    inputs[:, 1] += shift
    return inputs, labels


def places():
    return {name: points(seed, shift) for seed, (name, shift) in enumerate({"north": 0, "south": 1, "west": 2}.items())}


def network(classes):
    return nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, classes))


def run(*algorithms, domains=None, protocol=QUICK, **options):
    return protocol.run(
        domains or places(), network, algorithms or [ERM], progress=False, **{"seeds": (0, 1), **options}
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three domains of bright and dark images, each with a tint of its own."""
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    random = np.random.default_rng(0)
    for domain, tint in (("photo", 0), ("sketch", 1), ("paint", 2)):
        for name, level in (("dark", 50), ("light", 180)):
            place = tmp_path / "rooms" / domain / name
            place.mkdir(parents=True)
            for i in range(12):
                pixels = random.integers(level, level + 40, (10, 12, 3), dtype=np.uint8)
                pixels[..., tint] += 20
                Image.fromarray(pixels).save(place / f"{i}.png")
    return load_domains("rooms", size=8)


def picture_network(classes):
    inner = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, classes))
    return Backbone(inner, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))


def test_the_protocol_on_a_folder_of_images(folder):
    rate = dict(learning_rate=0.003)
    nuclear = NuclearNorm(lam=0.01, warmup=5)
    algorithms = [
        Algorithm("ERM", **rate),
        Algorithm("ERM-NU", **rate, penalty=nuclear),
        Algorithm("Mixup-NU", **rate, mixup=Mixup(0.2), penalty=nuclear),
        Algorithm("SWAD", **rate, averaging=lambda model: SWAD(model, converge=1)),
        Algorithm(
            "SWAD-NU", **rate, penalty=nuclear, layer="network.3", averaging=lambda model: SWAD(model, converge=1)
        ),
    ]
    found = QUICK.run(folder, picture_network, algorithms, seeds=(0, 1), progress=False)
    assert found.targets == ("paint", "photo", "sketch")
    assert len(found.outcomes) == 5 * 3 * 2
    assert all(0.9 <= row["average"] <= 1 for row in found.table()), "light and dark are told apart anywhere"
    assert {each.trials for each in found.outcomes} == {1}


def test_images_that_are_decoded_one_by_one_give_the_same(folder):
    kept = QUICK.run(folder, picture_network, [ERM], seeds=(0,), progress=False)
    streamed = QUICK.run(folder.streams(), picture_network, [ERM], seeds=(0,), progress=False)
    assert kept.outcomes == streamed.outcomes


def test_a_seed_is_the_same_alone_in_any_company_and_leaves_no_trace():
    state = torch.get_rng_state()
    both, alone = run(ERM, Algorithm("other", learning_rate=0.1)), run(ERM, seeds=(1,))
    assert torch.equal(torch.get_rng_state(), state)
    first = [each for each in both.outcomes if each.algorithm == "ERM" and each.seed == 1]
    assert first == list(alone.outcomes)


@pytest.mark.parametrize("option", [{"penalty": NuclearNorm(lam=0.0)}, {"mixup": Mixup(0.0)}])
def test_parts_that_do_nothing_change_nothing(option):
    plain, same = run(ERM), run(Algorithm("ERM", learning_rate=0.02, **option))
    assert plain.outcomes == same.outcomes


def test_an_objective_of_ones_own_sees_the_domains_apart():
    seen = []

    def objective(model, batches):
        seen.append([len(labels) for _, labels in batches])
        return sum(cross_entropy(model(inputs), labels) for inputs, labels in batches) / len(batches)

    found = run(Algorithm("mine", learning_rate=0.02, objective=objective))
    assert set(map(tuple, seen)) == {(8, 8)}
    plain = run(ERM)
    assert [each.step for each in found.outcomes] == [each.step for each in plain.outcomes]
    assert found.values("mine") == pytest.approx(plain.values("ERM"), abs=0.02), "equal batches: the same mean"


def test_every_algorithm_has_the_same_budget_and_shared_settings_the_same_draws():
    search = {"learning_rate": (1e-3, 1e-1)}
    more = {**search, "penalty.lam": (1e-3, 1.0)}
    erm = Algorithm("ERM", learning_rate=0.02, search=search)
    nuclear = Algorithm("NU", learning_rate=0.02, penalty=NuclearNorm(warmup=0), search=more)
    assert erm.drawn(3, 0) == {}
    for trial in (1, 2, 3):
        draws = nuclear.drawn(3, trial)
        assert draws["learning_rate"] == erm.drawn(3, trial)["learning_rate"]
        assert 1e-3 <= draws["penalty.lam"] <= 1
        assert nuclear.with_settings(draws).penalty.lam == draws["penalty.lam"]
    assert erm.drawn(3, 1) != erm.drawn(4, 1)
    protocol = LeaveOneDomainOut(steps=10, batch=8, check_every=5, trials=3)
    found = run(erm, nuclear, protocol=protocol, seeds=(0,), targets=["north"])
    assert {each.trials for each in found.outcomes} == {3}


def test_the_target_chooses_nothing():
    domains = places()
    inputs, labels = domains["west"]
    turned = {**domains, "west": (inputs, 1 - labels)}
    plain, other = (run(ERM, domains=each, targets=["west"]) for each in (domains, turned))
    for one, two in zip(plain.outcomes, other.outcomes, strict=True):
        assert (one.step, one.validation) == (two.step, two.validation)
        assert one.accuracy == pytest.approx(1 - two.accuracy)


def test_selection_by_leaving_out_training_domains():
    wild = Algorithm("ERM", learning_rate=0.02, search={"learning_rate": (1e-7, 1e-7)})
    protocol = LeaveOneDomainOut(steps=30, batch=8, check_every=10, trials=2, selection="leave-one-out")
    found = run(wild, protocol=protocol, seeds=(0,), targets=["north"])
    assert found.outcomes[0].settings == {}, "a rate of almost nothing is not chosen"
    assert found.selection == "leave-one-out"


def test_trainings_that_diverge_are_never_chosen():
    wild = Algorithm("ERM", learning_rate=0.02, search={"learning_rate": (1e30, 1e30)})
    protocol = LeaveOneDomainOut(steps=10, batch=8, check_every=5, trials=2)
    found = run(wild, protocol=protocol, seeds=(0,), targets=["north"])
    assert (found.outcomes[0].failed, found.outcomes[0].settings) == (1, {})
    for averaging in (None, SWAD):
        with pytest.raises(RuntimeError, match=r"every training of ERM without 'north' diverged"):
            run(Algorithm("ERM", learning_rate=1e30, averaging=averaging), seeds=(0,), targets=["north"])


def test_batch_statistics_of_averaged_weights_are_taken_anew():
    def with_norm(classes):
        return nn.Sequential(nn.Linear(4, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, classes))

    algorithm = Algorithm("SWAD", learning_rate=0.02, averaging=lambda model: SWAD(model, converge=1))
    found = QUICK.run(places(), with_norm, [algorithm], seeds=(0,), progress=False)
    assert found.values("SWAD").min() > 0.8


def test_half_precision_and_a_callers_autocast_come_to_the_same_conclusion():
    plain = run(ERM, seeds=(0,)).values("ERM")
    half = run(ERM, seeds=(0,), protocol=LeaveOneDomainOut(steps=30, batch=8, check_every=10, precision="bfloat16"))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        inside = run(ERM, seeds=(0,))
    assert inside.values("ERM") == pytest.approx(plain)
    assert half.values("ERM") == pytest.approx(plain, abs=0.03)


def test_mappings_and_records_are_taken_as_hugging_face_models_do():
    class Named(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.inner = network(classes)

        def forward(self, values):
            return type("Record", (), {"logits": self.inner(values)})()

    named = {name: ({"values": inputs.numpy()}, labels.int()) for name, (inputs, labels) in places().items()}
    found = QUICK.run(named, Named, [ERM], seeds=(0, 1), progress=False)
    assert found.values("ERM") == pytest.approx(run(ERM).values("ERM"))
    assert logits_of(Named(2), {"values": torch.zeros(1, 4)}).shape == (1, 2)


def test_an_augmentation_changes_training_alone():
    seen = []

    def noisy(inputs, generator):
        seen.append(len(inputs))
        return inputs + 0.1 * torch.randn(inputs.shape, generator=generator)

    protocol = LeaveOneDomainOut(steps=4, batch=8, check_every=2, augment=noisy)
    run(ERM, protocol=protocol, seeds=(0,), targets=["north"])
    assert seen == [8] * 2 * 4


def test_the_report(tmp_path, capsys):
    found = QUICK.run(places(), network, [ERM, Algorithm("slow", learning_rate=1e-6)], seeds=(0, 1, 2))
    assert "north, seed 0, ERM" in capsys.readouterr().err
    rows = {(row["algorithm"], row["target"]): row for row in found.gains("ERM")}
    apart = found.values("slow") - found.values("ERM")
    row = rows["slow", "average"]
    assert row["gain"] == pytest.approx(apart.mean())
    assert (row["low"], row["high"]) == bootstrap(apart, 0.9)
    assert row["high"] < 0
    assert rows["slow", "north"]["above_curve"] <= 0
    assert "average" in repr(found)
    kept = json.loads(found.save(tmp_path / "domains.json").read_text())
    assert len(kept["outcomes"]) == 18
    assert kept["outcomes"][0]["checks"][0]["step"] == 10
    assert "spec" in found.figure().to_dict()
    assert run(ERM, seeds=(0,)).figure().to_dict()["mark"]["type"] == "bar"
    with pytest.raises(ValueError, match="no outcome of 'IRM'"):
        found.values("IRM")


def test_the_bootstrap_interval():
    values = [0.0, 1.0]
    assert bootstrap(values, 0.9) == (0.0, 1.0)
    assert all(math.isnan(each) for each in bootstrap([1.0], 0.9))
    many = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap(many, 0.9)
    assert high - low == pytest.approx(2 * 1.645 / 20, rel=0.1)


def test_batches_go_through_all_samples_before_any_comes_again():
    batches = list(endless(torch.arange(10), 4, 5, torch.Generator().manual_seed(0)))
    assert sorted(torch.cat(batches)[:10].tolist()) == list(range(10))
    assert [len(each) for each in batches] == [4] * 5
    first, second = Samples("north", points(0)).split(0.2, 0)
    assert sorted(torch.cat([first, second]).tolist()) == list(range(60))
    assert len(second) == 12


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domains": {"north": points(0)}}, "at least 2 domains, not 1"),
        ({"targets": ["east"]}, "no domain 'east' to leave out"),
        ({"targets": []}, "at least one target"),
        ({"seeds": (0, 0)}, "every seed once"),
        ({"domains": {"a": points(0), "b": (torch.ones(3, 4), torch.ones(2))}}, "one label for every input"),
        ({"domains": {"a": points(0), "b": (torch.ones(2, 4), -torch.ones(2))}}, "classes from 0 on"),
        ({"domains": {"a": points(0), "b": "pictures"}}, "must be inputs with labels, not str"),
        ({"domains": {"a": points(0), "b": (torch.ones(1, 4), torch.ones(1))}, "targets": ["a"]}, "none can be held"),
    ],
)
def test_bad_input_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        run(ERM, **change)


@pytest.mark.parametrize(
    "options",
    [{"steps": 0}, {"batch": 1.5}, {"holdout": 1}, {"trials": 0}, {"selection": "oracle"}, {"precision": "half"}],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(ValueError, match="must"):
        LeaveOneDomainOut(**options)


def test_bad_algorithms_are_refused():
    with pytest.raises(ValueError, match="a name of its own"):
        run(ERM, ERM)
    with pytest.raises(ValueError, match=r"has no setting 'penalty\.lam'"):
        Algorithm("ERM", search={"penalty.lam": (0.1, 1)})
    with pytest.raises(ValueError, match="must be positive and rise"):
        Algorithm("ERM", search={"learning_rate": (0.0, 1)})
    with pytest.raises(ValueError, match="exclude each other"):
        Algorithm("ERM", objective=lambda model, batches: 0, mixup=Mixup())
    protocol = LeaveOneDomainOut(selection="leave-one-out")
    two = {name: each for name, each in places().items() if name != "west"}
    with pytest.raises(ValueError, match="at least 3 domains"):
        run(ERM, protocol=protocol, domains=two)
