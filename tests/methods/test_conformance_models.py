"""What methods and probes that read a transformer or a language model share: autocast does not change a conclusion,
weights, modes, hooks, settings and generators are left alone also after an error, and weights that are not finite are
refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers", reason="language models need the extra llm")

from assay import methods, probes
from assay._reports import plain
from assay.networks import toy_language_model

FILMS = [f"a {word} film number {i} of many" for i in range(8) for word in ("dull", "fine")]
DATA = (FILMS, [0, 1] * 8)
WORDS = ("negative", "positive")
PROMPTS = probes.distracted_prompts(DATA, WORDS, count=3, irrelevant=["The clock shows three."])
TEXTS = [*FILMS, "The clock shows three.", "sentence:\nThe answer is negative. positive"]


@pytest.fixture
def toy() -> Any:
    return toy_language_model(TEXTS)


def ids_of(toy: Any) -> list[Tensor]:
    return [toy.tokenizer(text, return_tensors="pt")["input_ids"] for text in FILMS]


def truncated(toy: Any) -> Any:
    moments = methods.attention_moments(toy.model, ids_of(toy))
    with methods.LowRankAttention(2).attach(toy.model, moments) as cut:
        return [cut.kept, toy.model(ids_of(toy)[0]).logits.detach()]


def flipped(toy: Any) -> Any:
    method = methods.FlippedLabels(WORDS, demonstrations=4, queries=4, seeds=2, fractions=(0.0, 1.0))
    report = method.run(toy.model, toy.tokenizer, DATA, progress=False)
    assert isinstance(report, methods.FlipReport)
    return report.scores


def spans(toy: Any) -> Any:
    assert isinstance(PROMPTS[0], probes.SpanPrompt)
    return probes.attention_spans(toy.model, toy.tokenizer, PROMPTS, progress=False).mass


def layers(toy: Any) -> Any:
    """A snapshot of one block's output."""
    name = next(name for name, _ in toy.model.named_modules() if name.endswith("layers.0"))
    return probes.snapshot(toy.model, name)({"input_ids": ids_of(toy)[0]})


def penalties(toy: Any) -> Any:
    name = next(name for name, weight in toy.model.named_parameters() if "q_proj" in name)
    groups = [(name, 0)]
    return [methods.GroupPenalty(groups, 2)(toy.model), methods.l2_group_penalty(toy.model, groups, 2)]


CASES: dict[str, Callable[[Any], Any]] = {
    "scores of labels": lambda toy: methods.label_scores(toy.model, toy.tokenizer, ["The film is"], WORDS_SPACED),
    "flipped labels": flipped,
    "spans": spans,
    "one head": lambda toy: probes.attention_fourier(toy.model, 0, 0, range(3, 10)).share(),
    "all heads": lambda toy: probes.scan_attention(toy.model, range(3, 10), orders=19).share,
    "truncated": truncated,
    "snapshot": layers,
    "penalties": penalties,
}
WORDS_SPACED = (" negative", " positive")
CARRIED = ("snapshot", "penalties", "truncated")  # they give back what the model computes, or go into its own loss


def numbers(found: Any) -> list[Any]:
    kept = plain(found)
    return [value for each in kept for value in numbers(each)] if isinstance(kept, list) else [kept]


def state(model: nn.Module) -> list[Any]:
    modes = [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    weights = [value.clone() for value in model.state_dict().values()]
    settings = getattr(model.config, "_attn_implementation", None)
    places = [id(weight) for weight in model.parameters()]
    return [*weights, torch.get_rng_state(), modes, settings, places, [p.grad for p in model.parameters()]]


@pytest.mark.parametrize("name", CASES)
def test_autocast_does_not_change_the_conclusion(name, toy):
    expected = numbers(CASES[name](toy))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = numbers(CASES[name](toy))
    assert found == pytest.approx(expected, rel=0.1, abs=0.1)
    assert numbers(CASES[name](toy)) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_models_and_generators_are_left_alone_also_after_an_error(name, fails, toy):
    model = toy.model.train()
    model(ids_of(toy)[0], output_attentions=True)  # at its first such pass transformers itself leaves hooks that stay
    next(model.children()).eval()  # a part that somebody froze on purpose
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    broken = last.register_forward_hook(_raise) if fails else SimpleNamespace(remove=lambda: None)
    before = state(model)
    with suppress(RuntimeError):
        CASES[name](toy)
    after = state(model)
    broken.remove()
    assert all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in zip(before, after, strict=True))
    assert torch.is_autocast_cache_enabled()


def _raise(*_: Any) -> None:
    raise RuntimeError("this pass fails")


@pytest.mark.parametrize("name", CASES)
def test_weights_that_are_not_finite_are_refused(name, toy):
    for weight in toy.model.parameters():
        weight.data.view(-1)[0] = math.nan
    if name in CARRIED:
        with suppress(ValueError):
            assert None in numbers(CASES[name](toy))
        return
    with pytest.raises(ValueError, match=r"finite|NaN"):
        CASES[name](toy)
