"""Attention to spans: hand-made weights, a plain reading of the model's own attentions, and what is refused."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

pytest.importorskip("transformers", reason="language models need the extra llm")

from assay.networks import toy_language_model
from assay.probes import SpanPrompt, attention_spans, distracted_prompts
from assay.probes.attention_span import SpanReport, measured
from assay.probes.distractors import IRRELEVANT

FILMS = [f"a {word} film number {i} of many" for i in range(10) for word in ("dull", "fine")]
DATA = (FILMS, [0, 1] * 10)
WORDS = ("negative", "positive")


@pytest.fixture(scope="module")
def toy():
    return toy_language_model([*FILMS, *IRRELEVANT, "sentence:\nThe answer is negative. positive"])


@pytest.fixture(scope="module")
def prompts():
    return distracted_prompts(DATA, WORDS, count=8)


def test_hand_made_weights():
    rows = torch.tensor([[[0.5, 0.2, 0.2, 0.1], [0.1, 0.3, 0.3, 0.3]]])  # one layer, two heads, four tokens
    mass, norm, tokens = measured(rows, [[1, 2], [3]])
    torch.testing.assert_close(mass, torch.tensor([[0.5, 0.2]]))
    expected = [math.sqrt(0.2**2 + 0.2**2 + 0.3**2 + 0.3**2), math.sqrt(0.1**2 + 0.3**2)]
    torch.testing.assert_close(norm, torch.tensor([expected]))
    assert tokens.tolist() == [2, 1]


def test_spans_are_what_they_are_called(prompts):
    assert len(prompts) == 32
    for prompt in prompts:
        relevant, irrelevant = (prompt.text[slice(*prompt.spans[name])] for name in ("relevant", "irrelevant"))
        assert relevant in FILMS
        assert irrelevant in IRRELEVANT
        right = "positive" if "fine" in relevant else "negative"
        assert prompt.text.endswith(f"\nThe answer is {right}") == (prompt.condition == "correct")
        assert prompt.text.endswith(("positive", "negative"))
    orders = {(each.spans["relevant"] < each.spans["irrelevant"], each.condition) for each in prompts}
    assert len(orders) == 4
    assert distracted_prompts(DATA, WORDS, count=8) == prompts != distracted_prompts(DATA, WORDS, count=8, seed=1)


def test_equals_the_models_own_attentions(toy, prompts):
    report = attention_spans(toy.model, toy.tokenizer, prompts[:3], progress=False)
    eager = toy_language_model([*FILMS, *IRRELEVANT, "sentence:\nThe answer is negative. positive"]).model
    eager.set_attn_implementation("eager")
    for at, prompt in enumerate(prompts[:3]):
        ids = toy.tokenizer(prompt.text, return_offsets_mapping=True)
        with torch.no_grad():
            weights = eager(torch.tensor([ids["input_ids"]]), output_attentions=True).attentions
        first, last = prompt.spans["relevant"]
        inside = [i for i, (a, b) in enumerate(ids["offset_mapping"]) if b > first and a < last]
        for layer, each in enumerate(weights):
            part = each[0, :, -1, inside]
            assert float(report.mass[at, layer, 0]) == pytest.approx(float(part.sum(1).mean()), abs=1e-5)
            assert float(report.norm[at, layer, 0]) == pytest.approx(float(part.norm()), abs=1e-5)


def test_masses_of_all_tokens_sum_to_one(toy):
    text = "sentence: a fine film\nThe answer is positive"
    cut = text.index("fine")
    both = SpanPrompt(text, {"left": (0, cut), "right": (cut, len(text))})
    report = attention_spans(toy.model, toy.tokenizer, [both], progress=False)
    torch.testing.assert_close(report.mass.sum(-1), torch.ones(1, 2))
    without = attention_spans(toy.model, toy.tokenizer, [both], without_first=True, progress=False)
    torch.testing.assert_close(without.mass.sum(-1), torch.ones(1, 2))
    assert int(without.tokens.sum()) == int(report.tokens.sum()) - 1
    assert float(without.mass[0, 0, 1]) > float(report.mass[0, 0, 1])


def known(ratio, conditions=("correct", "wrong"), items=12):
    """A report in which the irrelevant span has ``ratio`` times the mass, up to a factor per item."""
    names = [(condition, item) for condition in conditions for item in range(items)]
    mass = torch.tensor([[[0.1, 0.1 * ratio * (1 + item / 100)]] for _, item in names])
    tokens = torch.tensor([[4, 8]] * len(names))
    spans = ("relevant", "irrelevant")
    return SpanReport("m", spans, tuple(c for c, _ in names), tuple(i for _, i in names), mass, mass.sqrt(), tokens)


def test_ratios_and_comparisons_of_known_answer():
    small, large = known(0.5), known(0.8)
    assert small.ratio("irrelevant", "relevant", measure="mass").estimate == pytest.approx(0.5 * 1.055, rel=1e-4)
    assert small.ratio("irrelevant", "relevant").estimate == pytest.approx(0.25 * 1.055, rel=1e-4)
    assert small.ratio("irrelevant", "relevant", condition="wrong").count == 12
    moved, p = large.against(small, "irrelevant", "relevant", condition="correct")
    assert moved.estimate == pytest.approx(1.6)
    assert p == pytest.approx(2 / 2**12)
    with pytest.raises(ValueError, match="the same prompts"):
        large.against(known(0.5, items=11), "irrelevant", "relevant")


def test_prompts_of_one_item_count_once(toy, prompts):
    report = attention_spans(toy.model, toy.tokenizer, prompts, progress=False)
    assert report.ratio("irrelevant", "relevant", condition="correct").count == 8
    assert len(report.log_ratios("irrelevant", "relevant")) == 8


def test_the_model_is_as_before_also_after_an_error(toy, prompts):
    toy.model.train()
    with pytest.raises(ValueError, match="no range of characters"):
        attention_spans(toy.model, toy.tokenizer, [SpanPrompt("a film", {"x": (3, 99)})], progress=False)
    attention_spans(toy.model, toy.tokenizer, prompts[:2], progress=False)
    assert toy.model.training
    assert toy.model.config._attn_implementation == "sdpa"
    toy.model.eval()


def test_autocast_gives_the_same_conclusion(toy, prompts):
    plain = attention_spans(toy.model, toy.tokenizer, prompts, progress=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = attention_spans(toy.model, toy.tokenizer, prompts, progress=False)
    torch.testing.assert_close(mixed.mass, plain.mass, atol=0.05, rtol=0)


def test_report(toy, prompts, tmp_path):
    report = attention_spans(toy.model, toy.tokenizer, prompts, name="toy", progress=False)
    assert repr(report).startswith("toy: attention of the last token in the last of 2 layers, 32 prompts\n")
    assert [(row["condition"], row["span"]) for row in report.table()] == [
        (condition, span) for condition in ("correct", "wrong") for span in ("relevant", "irrelevant")
    ]
    report.save(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text().startswith("{")
    pytest.importorskip("altair")
    assert "layer" in report.figure().to_dict()


class Silent(nn.Module):
    """A model that returns no attention."""

    def forward(self, input_ids, output_attentions, use_cache):
        return SimpleNamespace(attentions=None)


def test_refusals(toy, prompts):
    with pytest.raises(ValueError, match="Silent returns no attention weights"):
        attention_spans(Silent(), toy.tokenizer, prompts)
    with pytest.raises(ValueError, match="fast tokenizer"):
        attention_spans(toy.model, SimpleNamespace(is_fast=False), prompts)
    with pytest.raises(ValueError, match="no prompts"):
        attention_spans(toy.model, toy.tokenizer, [])
    with pytest.raises(ValueError, match="same names"):
        attention_spans(toy.model, toy.tokenizer, [prompts[0], SpanPrompt("a film", {"x": (0, 1)})])
    with pytest.raises(ValueError, match="no token is left in the span 'x'"):
        attention_spans(toy.model, toy.tokenizer, [SpanPrompt("a film", {"x": (0, 1)})], without_first=True)
    small = toy_language_model(FILMS, max_position_embeddings=4)
    with pytest.raises(ValueError, match="longer than the model's context of 4"):
        attention_spans(small.model, small.tokenizer, prompts)
    with pytest.raises(ValueError, match="a span must be one of relevant, irrelevant"):
        known(1.0).ratio("other", "relevant")
    with pytest.raises(ValueError, match="layer must lie"):
        known(1.0).values(layer=3)


def test_distractors_refuse():
    with pytest.raises(ValueError, match="21 texts are to be drawn, and there are only 20"):
        distracted_prompts(DATA, WORDS, count=21)
    with pytest.raises(ValueError, match="3 words for them"):
        distracted_prompts(DATA, ("a", "b", "c"))
    with pytest.raises(ValueError, match="no irrelevant sentence"):
        distracted_prompts(DATA, WORDS, count=2, irrelevant=())
