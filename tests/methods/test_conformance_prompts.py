"""What methods for long prompts share with all others: prompts in every form give the same tokens, autocast belongs to
the model's passes and not to our arithmetic, the model, its settings and all generators are left as they were also
after an error, weights that are not finite are refused, and what comes back is a report."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers", reason="language models need the extra llm")

import transformers
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from assay import methods
from assay._reports import Report
from assay.evaluation import Needle, NeedlePrompt
from assay.methods.gemfilter import layer_scan
from assay.methods.gemfilter.adapter import Projected
from assay.methods.gemfilter.prompts import Prompt
from assay.networks import toy_language_model

SIZES = dict(
    vocab_size=97,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=2,
    max_position_embeddings=512,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
    initializer_range=0.15,
)
IDS = torch.randint(3, 97, (2, 60), generator=torch.Generator().manual_seed(5))
MASK = torch.ones_like(IDS)
MASK[1, :17] = 0
FORMS: dict[str, Callable[[], Any]] = {
    "mapping": lambda: {"input_ids": IDS, "attention_mask": MASK},
    "BatchEncoding": lambda: transformers.BatchEncoding({"input_ids": IDS, "attention_mask": MASK}),
    "lists": lambda: {"input_ids": IDS.tolist(), "attention_mask": MASK.tolist()},
    "arrays": lambda: {"input_ids": IDS.numpy(), "attention_mask": MASK.numpy().astype("uint8")},
    "int32": lambda: {"input_ids": IDS.int(), "attention_mask": MASK.bool()},
}
NEW = {"max_new_tokens": 4, "do_sample": False}
GEM = methods.GemFilter(2, keep=20)


def answered(method: Any) -> Callable[[nn.Module, Any], list[Any]]:
    return lambda model, given: method.generate(model, given, **NEW)[:, -4:].tolist()


def selected(method: Any) -> Callable[[nn.Module, Any], list[Any]]:
    return lambda model, given: [sorted(row) for row in method.select(model, given).indices.tolist()]


def shared(model: nn.Module, given: Any) -> list[Any]:
    every = [methods.SnapKV(20, 8), methods.OneRun(GEM)]
    return [
        one.generate(model, max_new_tokens=4)[:, -4:].tolist() for one in methods.share_prefill(model, given, every)
    ]


def indexed(model: nn.Module, given: Any) -> list[Any]:
    """The first prompt as a document, the end of the second one as the question."""
    ids = torch.as_tensor(given["input_ids"])
    index = methods.FilterIndex(model, methods.GemFilter(2, keep=20, chunk=24))
    index.add("text", ids[0].tolist())
    return [index.select(ids[1, -8:].tolist()).kept["text"]]


CASES: dict[str, Callable[[nn.Module, Any], list[Any]]] = {
    "selection": selected(GEM),
    "selection by attention": selected(methods.GemFilter(2, keep=20, rule="softmax")),
    "selection by a window": selected(methods.GemFilter(2, keep=20, rule="window")),
    "selection in chunks": selected(methods.GemFilter(2, keep=20, chunk=20, tail=12)),
    "filter": answered(GEM),
    "full": answered(methods.FullAttention()),
    "snapkv": answered(methods.SnapKV(20, 8)),
    "h2o": answered(methods.H2O(20, 8)),
    "one-run": answered(methods.OneRun(GEM)),
    "shared prefill": shared,
    "index": indexed,
}
#: What runs no generation.
READ = ["index", *(name for name in CASES if name.startswith("selection"))]


@pytest.fixture(params=["Llama", "Granite"], ids=["by name", "by interface"])
def model(request: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{request.param}Config")(**SIZES)
    return getattr(transformers, f"{request.param}ForCausalLM")(config).eval()


@pytest.mark.parametrize("name", CASES)
def test_prompts_in_every_form_give_the_same_tokens(name, model):
    expected = CASES[name](model, FORMS["mapping"]())
    assert {form: CASES[name](model, given()) for form, given in FORMS.items()} == dict.fromkeys(FORMS, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_call_inside_autocast_leaves_nothing_of_it_behind(name, model):
    """The model's own passes round; the tokens before and after are the same, and weights still learn."""
    given = FORMS["mapping"]()
    expected = CASES[name](model, given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = CASES[name](model, given)
        if name in READ:  # generation is transformers' own, and so is what it leaves in autocast's cache
            model(IDS).logits.float().square().mean().backward()
            assert all(weight.grad is not None for weight in model.parameters())
    assert CASES[name](model, given) == expected
    if name in READ:
        for before, after in zip(expected, inside, strict=True):
            assert len(set(before) & set(after)) >= 0.8 * len(set(before))


@pytest.mark.parametrize("rule", ["logits", "softmax", "window"])
def test_scores_are_not_rounded_by_autocast(rule):
    draw = torch.Generator().manual_seed(0)
    projected = Projected(*(torch.randn(2, heads, 60, 8, generator=draw) for heads in (8, 2)), 0.3)
    prompt, chosen = Prompt(IDS, MASK.bool()), methods.GemFilter(2, keep=20, rule=rule)
    expected = chosen.scores_of(projected, prompt)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(chosen.scores_of(projected, prompt), expected)


def state(model: Any) -> list[Any]:
    parts = [
        (m.training, len(m._forward_hooks), len(m._forward_pre_hooks), "forward" in vars(m)) for m in model.modules()
    ]
    groups = [getattr(m, "num_key_value_groups", None) for m in model.modules()]
    registries = [sorted(every.valid_keys()) for every in (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS)]
    settings = [model.config.to_dict(), model.config._attn_implementation, model.generation_config.to_dict()]
    numbers = [random.getstate(), str(np.random.get_state())]
    tensors = [*(value.clone() for value in model.state_dict().values()), torch.get_rng_state()]
    places = [(id(weight), weight.grad is None, weight.requires_grad) for weight in model.parameters()]
    return [*tensors, parts, groups, registries, settings, numbers, places]


@pytest.mark.parametrize("where", [None, "model.layers.0.mlp", "model.layers.1.self_attn.o_proj", "lm_head"])
@pytest.mark.parametrize("name", CASES)
def test_models_and_generators_are_left_alone_also_after_an_error(name, where, model):
    given = FORMS["BatchEncoding"]()
    model.train()
    next(iter(model.model.layers)).eval()  # a part that somebody froze on purpose
    burst = None if where is None else model.get_submodule(where).register_forward_hook(_raise)
    before = state(model)
    with suppress(RuntimeError):
        CASES[name](model, given)
    after = state(model)
    if burst is not None:
        burst.remove()
    assert all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in zip(before, after, strict=True))
    assert torch.is_autocast_cache_enabled()
    assert torch.is_grad_enabled()
    assert torch.equal(given["input_ids"], IDS)


def _raise(*_: Any) -> None:
    raise RuntimeError("this pass fails")


@pytest.mark.parametrize("name", [name for name in CASES if name != "full"])
def test_weights_that_are_not_finite_are_refused(name, model):
    for weight in model.parameters():
        weight.data.view(-1)[0] = math.nan
    with pytest.raises(ValueError, match="the scores of tokens must be finite"):
        CASES[name](model, FORMS["mapping"]())


def scan(model: nn.Module) -> Any:
    prompt = NeedlePrompt(IDS[0].tolist(), Needle("", "", ""), [5, 6, 7], [7], 0.1, False)
    return layer_scan(model, [prompt], keep=20)


def choice(model: nn.Module) -> Any:
    tokenizer = toy_language_model(["a text"]).tokenizer
    kinds = [NeedlePrompt(IDS[0].tolist(), Needle("", "", ""), [i, i + 1], [i], 0.1, False) for i in range(5, 40, 4)]
    return methods.choose_filter_layer(model, tokenizer, keep=20, prompts=kinds, remember=False, warn=False)


def found(model: nn.Module) -> Any:
    index = methods.FilterIndex(model, methods.GemFilter(2, keep=20, chunk=24))
    index.add("one", IDS[0].tolist())
    index.add("two", IDS[1].tolist())
    return index.select(IDS[0, -8:].tolist())


def measured(model: nn.Module) -> Any:
    make = lambda: methods.FilterIndex(model, methods.GemFilter(2, keep=20, chunk=24))  # noqa: E731
    return methods.profile_index(make, 60, question=8, questions=1)


REPORTS: dict[str, Callable[[nn.Module], Any]] = {
    "selection": lambda model: GEM.select(model, FORMS["mapping"]()),
    "whole selection": lambda model: methods.GemFilter(2, keep=60).select(model, IDS),
    "scan": scan,
    "choice": choice,
    "found": found,
    "index": measured,
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_taken_apart_kept_and_drawn(name, model, tmp_path):
    report = REPORTS[name](model)
    assert isinstance(report, Report)
    assert report.headline() in repr(report)
    assert "tensor(" not in repr(report)
    assert all(isinstance(row, dict) for row in report.table())
    kept = json.loads(report.save(tmp_path / "report.json").read_text())
    assert kept["report"] == type(report).__name__
    pytest.importorskip("altair")
    assert report.figure().to_dict()["$schema"]
