from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy

from assay.probes.gradient_consistency import GradientConsistency, chunk_cosines


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_network() -> nn.Sequential:
    network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    with torch.no_grad():
        for number, parameter in enumerate(network.parameters()):
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator(number)))
    return network


def batch(seed: int, size: int = 8) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(size, 6, generator=generator(100 + seed))
    return inputs, inputs[:, :3].argmax(dim=1)


def loss_of(network: nn.Module, seed: int) -> Tensor:
    inputs, labels = batch(seed)
    return cross_entropy(network(inputs), labels)


def test_cosines_equal_the_loop() -> None:
    means = torch.randn(4, 3, 7, generator=generator())
    found = chunk_cosines(means)
    exact = means.double()  # as the probe computes: in float32 the loop itself would miss the tolerance of float64
    grand = exact.mean(dim=0)
    for row in range(3):
        for i in range(4):
            expected = cosine_similarity(exact[i, row], grand[row], dim=0)
            torch.testing.assert_close(found.to_mean[row, i], expected)
            for j in range(4):
                expected = cosine_similarity(exact[i, row], exact[j, row], dim=0)
                torch.testing.assert_close(found.pairwise[row, i, j], expected)
    assert found.null_pairwise == pytest.approx(1 / math.sqrt(7))
    assert list(found.summary()) == [f"v{i},mean" for i in range(1, 5)] + [
        "v1,v2",
        "v1,v3",
        "v1,v4",
        "v2,v3",
        "v2,v4",
        "v3,v4",
    ]


def test_known_cosines() -> None:
    found = chunk_cosines(torch.eye(3)[:, None, :])  # orthogonal chunks of one row: the null of the comparison
    torch.testing.assert_close(found.to_mean, torch.full((1, 3), found.null_to_mean, dtype=torch.float64))
    torch.testing.assert_close(found.pairwise[0], torch.eye(3, dtype=torch.float64))
    equal = chunk_cosines(torch.ones(2, 4, 5))
    torch.testing.assert_close(equal.pairwise, torch.ones(4, 2, 2, dtype=torch.float64))


def test_a_row_without_gradient_is_counted_and_left_out() -> None:
    means = torch.ones(3, 2, 4)
    means[1, 0] = 0
    found = chunk_cosines(means)
    assert found.silent_rows == 1
    assert math.isnan(float(found.pairwise[0, 0, 1]))
    assert found.summary()["v1,v2"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="chunks >= 2"):
        chunk_cosines(torch.ones(1, 2, 3))


@pytest.mark.parametrize("with_optimizer", [True, False])
def test_records_raw_gradients_before_clipping(with_optimizer: bool) -> None:
    network, twin = small_network(), small_network()
    optimizer, twin_optimizer = torch.optim.Adam(network.parameters(), 0.01), torch.optim.Adam(twin.parameters(), 0.01)
    raw = []
    probe = GradientConsistency(["0.weight"], chunks=2, steps_per_chunk=2)
    with probe.attach(network, optimizer if with_optimizer else None) as record:
        for step in range(6):
            for model, its_optimizer in ((network, optimizer), (twin, twin_optimizer)):
                its_optimizer.zero_grad()
                loss_of(model, step).backward()
                if model is twin:
                    assert twin[0].weight.grad is not None
                    raw.append(twin[0].weight.grad.clone())
                nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
                its_optimizer.step()
            if not with_optimizer:
                record.step()
    assert record.complete
    expected = chunk_cosines(torch.stack([(raw[0] + raw[1]) / 2, (raw[2] + raw[3]) / 2]))
    torch.testing.assert_close(record.report()["0.weight"].pairwise, expected.pairwise)
    torch.testing.assert_close(record.report()["0.weight"].to_mean, expected.to_mean)
    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, theirs), "watching must not change training"


def test_accumulated_micro_batches_make_one_step() -> None:
    network = small_network()
    sums = []
    with GradientConsistency(["2"], chunks=2, steps_per_chunk=1).attach(network) as record:
        for step in range(2):
            network.zero_grad()
            loss_of(network, 99).backward()  # a discarded attempt: nothing of it may be left
            network.zero_grad()
            for part in range(3):
                loss_of(network, 10 * step + part).backward()
            assert network[2].weight.grad is not None
            sums.append(network[2].weight.grad.clone())
            record.step()
    expected = chunk_cosines(torch.stack(sums))
    torch.testing.assert_close(record.report()["2.weight"].pairwise, expected.pairwise)


class TiedModel(nn.Module):
    """Token embedding tied to the output layer, as in many language models."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.lm_head = nn.Linear(4, 7, bias=False)
        self.lm_head.weight = self.embed.weight
        with torch.no_grad():
            self.embed.weight.copy_(torch.randn(7, 4, generator=generator()))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lm_head(self.norm(self.embed(tokens)))


@pytest.mark.parametrize("name", ["lm_head.weight", "embed", "lm_head"])
def test_tied_weights_are_watched_once_under_either_name(name: str) -> None:
    model, tokens = TiedModel(), torch.tensor([0, 1, 2, 3])
    probe = GradientConsistency([name, "embed.weight", "norm.weight"], chunks=2, steps_per_chunk=1)
    with probe.attach(model) as record:
        for _ in range(2):
            model.zero_grad()
            cross_entropy(model(tokens), (tokens + 1) % 7).backward()
            record.step()
    names = [name if name.endswith("weight") else f"{name}.weight", "norm.weight"]
    report = record.report()
    assert list(report) == names
    assert report[names[0]].pairwise.shape == (7, 2, 2)
    assert report["norm.weight"].pairwise.shape == (1, 2, 2)  # one axis: a single row
    assert report[names[0]].summary()["v1,v2"] == pytest.approx(1.0)  # the weights never moved


def test_sparse_and_transposed_gradients() -> None:
    embedding = nn.Embedding(5, 3, sparse=True)
    probe = GradientConsistency([""], chunks=2, steps_per_chunk=1, output_axis=1)
    with probe.attach(embedding) as record:
        for _ in range(2):
            embedding.zero_grad()
            embedding(torch.tensor([0, 1])).square().sum().backward()
            record.step()
    found = record.report()["weight"]
    assert found.dim == 5
    assert found.pairwise.shape == (3, 2, 2)


def test_hooks_come_off_when_training_fails() -> None:
    network = small_network()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    probe = GradientConsistency(["0", "2"])

    def fail_after_one_step() -> None:
        loss_of(network, 0).backward()
        optimizer.step()
        raise KeyError

    with pytest.raises(KeyError), probe.attach(network, optimizer) as record:
        fail_after_one_step()
    assert record.steps == 1
    loss_of(network, 1).backward()
    optimizer.step()
    assert record.steps == 1
    assert all(not parameter._post_accumulate_grad_hooks for parameter in network.parameters())
    with pytest.raises(RuntimeError, match="only 1 of 30 steps"):
        record.report()


def test_one_name_is_one_name() -> None:
    network = small_network()
    for name in ("0.weight", iter(["0.weight"])):
        settings = GradientConsistency(name)
        for _ in range(2):
            with settings.attach(network) as record:
                assert list(record.watched) == ["0.weight"]


def test_a_compiled_model_goes_by_the_names_that_it_was_written_with() -> None:
    compiled = torch.compile(small_network(), backend="eager")
    for name in ("0.weight", "_orig_mod.0.weight"):
        with GradientConsistency(name).attach(compiled) as record:
            assert list(record.watched) == ["0.weight"]


def test_bad_requests_are_refused() -> None:
    network = small_network()
    for name, least in (("chunks", 2), ("steps_per_chunk", 1)):
        with pytest.raises(ValueError, match=f"{name} must be at least {least}"):
            GradientConsistency(["0"], **{name: least - 1})
    with pytest.raises(ValueError, match=r"close names: 0\.weight"), GradientConsistency(["0.weigth"]).attach(network):
        pass
    for nothing in ([], None, [network[0]]):
        with pytest.raises(ValueError, match="at least one"):
            GradientConsistency(nothing)
    with pytest.raises(ValueError, match=r"'0\.weight' has 2 axes"):
        GradientConsistency(["0"], output_axis=2).begin(network)
    network[0].weight.requires_grad_(False)
    with pytest.raises(ValueError, match="no trainable parameter"), GradientConsistency(["0"]).attach(network):
        pass
    with (
        pytest.raises(RuntimeError, match="step after backward"),
        GradientConsistency(["2"]).attach(network) as record,
    ):
        record.step()
