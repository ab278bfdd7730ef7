"""The regularised loss: λ = 0 is plain fine-tuning bit for bit, λ > 0 the sum that it says."""

import copy
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from assay.methods import MomentumQueue, adapter, contrastive_regularized_loss
from assay.methods.contrastive_regularization import embedding_pair
from assay.training import info_nce, logistic_contrast, nt_xent


class Net(nn.Module):
    """Features behind batch normalisation and dropout, which remember a pass and draw in it, and a head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))
        self.classifier = nn.Linear(16, 3)

    def forward(self, inputs):
        return self.classifier(self.body(inputs))


class Text(nn.Module):
    """Stands in for a Hugging Face encoder: keyword inputs, a record with hidden states, dropout."""

    class Record:
        def __init__(self, states):
            self.last_hidden_state = states

    def __init__(self, words=20, dim=8):
        super().__init__()
        self.embedding = nn.Embedding(words, dim)
        self.dropout = nn.Dropout(0.1)
        self.mix = nn.Linear(dim, dim)

    def forward(self, input_ids, attention_mask):
        return self.Record(self.dropout(torch.tanh(self.mix(self.embedding(input_ids)))))


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, 6, generator=generator), torch.randint(3, (12,), generator=generator)


@pytest.fixture
def sentences():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(20, (8, 5), generator=generator)
    mask = torch.ones_like(ids)
    mask[:4, 3:] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.arange(8) % 2}


def net():
    torch.manual_seed(3)
    return Net()


def noisy(inputs):
    return inputs + 0.1 * torch.randn_like(inputs)


def steps(model, loss, count=4):
    """Weights, running statistics and the next random number after a few optimiser steps."""
    torch.manual_seed(5)
    rule = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(count):
        rule.zero_grad()
        loss(model).backward()
        rule.step()
    return [value.clone() for value in model.state_dict().values()], torch.rand(1)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one[0], other[0], strict=True)) and torch.equal(one[1], other[1])


@pytest.mark.parametrize("kind", ["simclr", "moco", "simcse", "logistic"])
@pytest.mark.parametrize("by_name", [True, False])
def test_no_regularisation_is_plain_training_bit_for_bit(data, kind, by_name):
    inputs, labels = data
    plain = steps(net(), lambda model: cross_entropy(model(inputs), labels))

    def regularised(strength):
        def loss(model):
            parts = (model, "classifier") if by_name else (model.body, model.classifier)
            return contrastive_regularized_loss(
                *parts, inputs, labels, augment=noisy, lambda_=strength, loss=kind
            ).total

        return steps(net(), loss)

    assert same(regularised(0), plain)
    assert not same(regularised(0.5), plain)


def test_no_regularisation_calls_nothing_and_says_so(data):
    def never(_):
        raise AssertionError

    found = contrastive_regularized_loss(net(), "classifier", *data, augment=never, lambda_=0)
    assert found.contrastive is None
    assert found.total is found.prediction
    assert "contrastive" not in repr(found)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("simclr", lambda x, y: nt_xent(x, y, temperature=0.4)),
        ("simcse", lambda x, y: info_nce(x, y, temperature=0.4, symmetric=False)),
        ("moco", lambda x, y: info_nce(x, y.detach(), temperature=0.4, symmetric=False)),
        ("logistic", lambda x, y: logistic_contrast(x, y, temperature=0.4)),
    ],
)
def test_the_loss_and_its_gradient_are_the_sum(data, kind, value):
    inputs, labels = data
    model = net().eval()
    projector = nn.Linear(16, 4)
    view = torch.roll(inputs, 1, 1)
    found = contrastive_regularized_loss(
        model,
        "classifier",
        inputs,
        labels,
        augment=lambda _: view,
        lambda_=0.7,
        loss=kind,
        temperature=0.4,
        projector=projector,
    )
    weights = list(model.parameters()) + list(projector.parameters())
    grads = torch.autograd.grad(found.total, weights)
    first, second = projector(model.body(inputs)), projector(model.body(view))
    expected = cross_entropy(model(inputs), labels) + 0.7 * value(first, second)
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.prediction + 0.7 * found.contrastive, found.total)
    for ours, theirs in zip(grads, torch.autograd.grad(expected, weights), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_duplicated_pairs_leave_the_single_negative_loss_of_a_queue_unchanged(data):
    """The mean over triples: having each twice changes nothing."""
    inputs, labels = data
    model = net().eval()
    values = []
    for times in (1, 2):
        queue = MomentumQueue(model, 16, size=64)
        queue.add(model.body(torch.flip(inputs, [1])))
        found = contrastive_regularized_loss(
            model,
            "classifier",
            inputs.repeat(times, 1),
            labels.repeat(times),
            augment=torch.sin,
            loss="logistic",
            queue=queue,
        )
        values.append(found.total)
    torch.testing.assert_close(values[0], values[1])


def test_the_usual_strengths(data):
    inputs, labels = data
    found = contrastive_regularized_loss(net(), "classifier", inputs, labels, augment=noisy)
    torch.testing.assert_close(found.total, found.prediction + 0.1 * found.contrastive)
    found = contrastive_regularized_loss(net(), "classifier", inputs, labels, augment="dropout")
    torch.testing.assert_close(found.total, found.prediction + found.contrastive)


def test_two_dropout_passes_of_a_text_encoder(sentences):
    torch.manual_seed(0)
    model, head = Text(), nn.Linear(8, 2)
    found = contrastive_regularized_loss(model, head, sentences, augment="dropout")
    assert found.logits.shape == (8, 2)
    assert found.contrastive > 0
    found.total.backward()
    assert model.embedding.weight.grad.abs().sum() > 0
    # Padding is not averaged in: other padding, same features.
    model.eval()
    other = {**sentences, "input_ids": sentences["input_ids"].where(sentences["attention_mask"] > 0, 7)}
    ours, theirs = (
        contrastive_regularized_loss(model, head, batch, augment="dropout", lambda_=0).logits
        for batch in (sentences, other)
    )
    torch.testing.assert_close(ours, theirs)
    with pytest.raises(ValueError, match="dropout is off"):
        contrastive_regularized_loss(model, head, sentences, augment="dropout")


def test_arrays_pairs_and_any_integer_labels(data):
    inputs, labels = data
    model = net().eval()

    def call(*batch):
        return contrastive_regularized_loss(model, "classifier", *batch, augment=torch.sin, lambda_=0.5).total

    expected = call(inputs, labels)
    arrays = inputs.numpy().astype(np.float64), labels.numpy().astype(np.int32)
    for batch in (arrays, ((inputs, labels.to(torch.uint8)),), ((arrays[0], labels.tolist()),)):
        torch.testing.assert_close(call(*batch), expected)


def test_another_prediction_loss(data):
    inputs, _ = data
    found = contrastive_regularized_loss(
        net(), "classifier", inputs, inputs[:, :3], augment=noisy, lambda_=0, prediction=mse_loss
    )
    assert found.total > 0


def test_embeddings_of_frozen_backbones():
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(10, 4, 6, generator=generator)
    model, head = adapter(6, 5, hidden=8), nn.Linear(5, 2)
    labels = torch.arange(10) % 2
    call = lambda strength, seed: contrastive_regularized_loss(  # noqa: E731
        model,
        head,
        embeddings,
        labels,
        augment="embeddings",
        lambda_=strength,
        generator=torch.Generator().manual_seed(seed),
    )
    first, second = embedding_pair(embeddings, torch.Generator().manual_seed(1))
    found = call(1.0, 1)
    torch.testing.assert_close(found.contrastive, nt_xent(model(first), model(second)))
    torch.testing.assert_close(found.prediction, cross_entropy(head(model(first)), labels))
    # With and without the regulariser the prediction is on the same views.
    assert torch.equal(call(0.0, 1).total, found.prediction)
    one_view = embeddings[:, :1]
    assert contrastive_regularized_loss(model, head, one_view, labels, augment="embeddings", lambda_=0).total > 0


@pytest.mark.parametrize("lambda_", [0, 1.0])
def test_embeddings_take_on_the_precision_of_the_weights_that_read_them(lambda_):
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(8, 3, 6, generator=generator)
    labels = torch.randint(3, (8,), generator=generator)
    torch.manual_seed(0)
    for model in (adapter(6, hidden=5), nn.Identity()):
        head = nn.Linear(6, 3)
        single, double = (
            contrastive_regularized_loss(
                model,
                head,
                given,
                labels,
                augment="embeddings",
                lambda_=lambda_,
                generator=torch.Generator().manual_seed(1),
            ).total
            for given in (embeddings, embeddings.double())
        )
        assert torch.equal(single, double)


def test_classes_of_any_type_of_number_and_probabilities(data):
    inputs, labels = data
    model = net().eval()

    def plain(given):
        return contrastive_regularized_loss(model, "classifier", inputs, given, augment=torch.sin, lambda_=0).total

    expected = plain(labels)
    for given in (labels.float(), labels.double(), labels.to(torch.uint8), labels.tolist()):
        assert torch.equal(plain(given), expected)
    torch.testing.assert_close(plain(torch.nn.functional.one_hot(labels, 3).float()), expected)
    aside = labels.clone()
    aside[:6] = -100
    torch.testing.assert_close(plain(aside), cross_entropy(model(inputs)[6:], labels[6:]))


def test_an_adapter_of_no_width_is_refused():
    for wrong in (dict(dim=0), dict(dim=4, hidden=0), dict(dim=4, out=0)):
        with pytest.raises(ValueError, match="must be at least 1, not 0"):
            adapter(**wrong)


def test_a_pair_is_two_views_of_the_same_sample():
    embeddings = (torch.arange(50)[:, None] * 10 + torch.arange(3)).unsqueeze(-1).float()
    first, second = embedding_pair(embeddings, torch.Generator().manual_seed(0))
    assert torch.equal(first // 10, second // 10)
    assert not (first == second).any()
    assert {int(v) for v in first % 10} == {0, 1, 2} == {int(v) for v in second % 10}


def test_keys_come_from_a_model_that_follows(data):
    inputs, labels = data
    model = net().eval()
    queue = MomentumQueue(model, 16, size=20, momentum=0.75)
    before = copy.deepcopy(model)
    with torch.no_grad():
        model.body[0].weight.add_(1.0)
    call = lambda: contrastive_regularized_loss(  # noqa: E731
        model, "classifier", inputs, labels, augment=torch.sin, lambda_=1.0, loss="moco", queue=queue
    )
    first = call()
    followed = queue.followers[0].body[0].weight
    torch.testing.assert_close(followed, before.body[0].weight + 0.25)
    keys = queue.followers[0].body(torch.sin(inputs)).detach()
    torch.testing.assert_close(first.contrastive, info_nce(model.body(inputs), keys, symmetric=False))
    assert int(queue.filled) == 12
    second = call()
    assert int(queue.filled) == 20  # the oldest fell out
    keys_now = queue.followers[0].body(torch.sin(inputs)).detach()
    expected = info_nce(model.body(inputs), keys_now, negatives=keys)
    torch.testing.assert_close(second.contrastive, expected)
    second.total.backward()
    assert all(weight.grad is None for weight in queue.parameters())
    # Its state is a module's.
    fresh = MomentumQueue(before, 16, size=20)
    fresh.load_state_dict(queue.state_dict())
    assert torch.equal(fresh.memory, queue.memory)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_keys_follow_a_model_in_half_precision(dtype):
    """Weights in half precision cannot move by a hundredth of a small distance: they are followed in single."""
    torch.manual_seed(0)
    model, exact = nn.Linear(6, 4).to(dtype), nn.Linear(6, 4)
    exact.load_state_dict(model.state_dict())
    queues = [MomentumQueue(each, 4, momentum=0.99) for each in (model, exact)]
    with torch.no_grad():
        model.weight += 0.1
        exact.load_state_dict(model.state_dict())
    for _ in range(300):
        for queue, each in zip(queues, (model, exact), strict=True):
            queue.keys(each, None, torch.ones(2, 6).to(each.weight), "mean", nn.Linear(4, 2))
    ours, theirs = (queue.followers[0].weight for queue in queues)
    assert ours.dtype == dtype
    assert torch.equal(ours, theirs.to(dtype))
    fresh = MomentumQueue(model, 4)
    fresh.load_state_dict(queues[0].state_dict())
    assert torch.equal(fresh.exact[0], theirs)


def test_a_queue_for_another_model_is_refused_before_it_moves(data):
    queue = MomentumQueue(net().body[:1], 16)
    before = copy.deepcopy(queue.state_dict())
    for model in (net().body, nn.Sequential(nn.Linear(6, 8))):
        with pytest.raises(ValueError, match="made for another model"):
            contrastive_regularized_loss(model, nn.Identity(), *data, augment=noisy, loss="moco", queue=queue)
        assert all(torch.equal(value, queue.state_dict()[name]) for name, value in before.items())
    with pytest.raises(ValueError, match="nothing to follow"):
        MomentumQueue(nn.Tanh(), 16)


def test_hooks_and_modes_are_as_they_were_also_after_an_error(data):
    inputs, labels = data
    model = net()
    model.body.eval()
    modes = [module.training for module in model.modules()]
    for batch in (inputs, inputs[:, :4]):  # the second does not fit the model
        with suppress(RuntimeError):
            contrastive_regularized_loss(model, "classifier", batch, labels, augment=noisy)
    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_under_autocast_the_conclusion_is_the_same(data):
    """Twenty steps inside one autocast per step give the losses of full precision, up to bfloat16."""
    inputs, labels = data

    def train(enabled):
        model, losses = net().eval(), []
        rule = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(20):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                found = contrastive_regularized_loss(
                    model, "classifier", inputs, labels, augment=torch.sin, lambda_=0.5
                )
            rule.zero_grad()
            found.total.backward()
            rule.step()
            losses.append(found.total.item())
        return losses

    exact, half = train(False), train(True)
    assert exact[-1] < exact[0] - 0.2
    assert half[-1] == pytest.approx(exact[-1], abs=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(lambda_=-1.0), "lambda_ must be at least 0"),
        (dict(lambda_=float("nan")), "lambda_ must be a number"),
        (dict(loss="triplet"), "loss must be one of"),
        (dict(temperature=0.0), "temperature must be positive"),
        (dict(augment="crop"), "augment must be one of"),
        (dict(augment="embeddings"), r"embeddings must be a tensor \(n, views, dim\)"),
        (dict(inputs=torch.zeros(1, 6), labels=torch.zeros(1).long()), "batch of one"),
        (dict(inputs=torch.full((4, 6), float("nan")), labels=torch.zeros(4).long()), "features must be finite"),
        (dict(labels=None), "labels are missing"),
        (dict(labels=torch.zeros(3).long()), "12 inputs come with 3 labels"),
        (dict(labels=torch.full((12,), 3)), "labels must lie in 0 to 2 for 3 logits, and one is 3"),
        (dict(labels=torch.full((12,), -1), lambda_=0), "labels must lie in 0 to 2 for 3 logits, and one is -1"),
        (dict(labels=torch.full((12,), -100)), "nothing is left to predict"),
        (dict(labels=torch.full((12,), 0.5)), "labels must be whole numbers"),
        (dict(labels=torch.zeros(12, 2)), r"\(12,\) or \(12, 3\), not \(12, 2\)"),
        (dict(labels=["cat"] * 12), "labels must be numbers"),
        (dict(labels=torch.tensor(1)), "this is a single number"),
        (dict(inputs=torch.zeros(0, 6), labels=torch.zeros(0).long(), lambda_=0), "the batch holds no sample"),
        (dict(inputs=torch.zeros(0, 6), labels=torch.zeros(0).long()), "the batch holds no sample"),
        (dict(pool="max"), "pool must be one of mean, first, flatten"),
        (dict(head="heads"), "no module 'heads'"),
        (dict(inputs=torch.zeros(4, 1, 6), augment="embeddings"), "at least two views"),
        (dict(inputs=torch.zeros(4, 2, 6), augment="embeddings"), "a generator must be given"),
        (dict(inputs=torch.zeros(4, 0, 6), augment="embeddings", lambda_=0), "there are none"),
        (dict(queue=True), "a queue is for the losses moco and logistic"),
        (dict(queue=True, loss="moco", augment="dropout"), "dropout is off"),
        (dict(prediction=lambda *_: torch.zeros(12)), r"one number for the batch, as a tensor, not \(12,\)"),
        (dict(prediction=lambda *_: 0.5, lambda_=0), "one number for the batch, as a tensor, not float"),
    ],
)
def test_refusals(data, change, message):
    arguments = dict(head="classifier", inputs=data[0], labels=data[1], augment=noisy, lambda_=0.1) | change
    model = net().eval()
    if arguments.get("queue"):
        arguments["queue"] = MomentumQueue(model, 16)
    head, inputs, labels = (arguments.pop(name) for name in ("head", "inputs", "labels"))
    with pytest.raises(ValueError, match=message):
        contrastive_regularized_loss(model, head, inputs, labels, **arguments)


def test_a_hugging_face_classifier_needs_no_surgery():
    transformers = pytest.importorskip("transformers", reason="language models need the extra llm")
    torch.manual_seed(0)
    sizes = dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**sizes, num_labels=3)).train()
    batch = {"input_ids": torch.randint(40, (6, 5)), "attention_mask": torch.ones(6, 5).long()}
    labels = torch.arange(6) % 3
    torch.manual_seed(1)
    expected = cross_entropy(model(**batch).logits, labels)
    torch.manual_seed(1)
    plain = contrastive_regularized_loss(model, "classifier", {**batch, "labels": labels}, augment="dropout", lambda_=0)
    assert torch.equal(plain.total, expected)
    torch.manual_seed(1)
    found = contrastive_regularized_loss(model, "classifier", {**batch, "labels": labels}, augment="dropout")
    assert torch.equal(found.prediction, expected)
    found.total.backward()
    assert model.bert.embeddings.word_embeddings.weight.grad is not None
