"""The hand-set model does what its docstring says, layer by layer."""

import pytest
import torch

pytest.importorskip("transformers", reason="the hand-set model is of a class of transformers")

from assay.evaluation import Needle, NeedlePrompt
from assay.methods.gemfilter import layer_scan
from assay.studies.gemfilter.planted.problem import PlantedNeedle
from assay.studies.gemfilter.planted.theory import FOUND, LAYERS, hand_set_model

DEPTHS = (0.1, 0.5, 0.8)


@pytest.fixture(scope="module", params=[1, 2], ids=["one-hop", "two-hop"])
def case(request):
    task = PlantedNeedle(256, request.param)
    return task, hand_set_model(task), task.sample(0, DEPTHS, 3)


def test_full_attention_answers_every_prompt(case):
    _, model, prompts = case
    made = model.generate(prompts.ids, attention_mask=torch.ones_like(prompts.ids), max_new_tokens=2, do_sample=False)
    assert torch.equal(made[:, -2:], prompts.answer)


def test_the_previous_token_head_writes_the_token_before(case):
    task, model, prompts = case
    hidden = model(prompts.ids, output_hidden_states=True).hidden_states[1]
    size = task.vocabulary
    before = hidden[..., size : 2 * size]
    assert torch.equal(before[:, 1:].argmax(-1), prompts.ids[:, :-1])
    assert before.max() < 1.001
    assert before.amax(-1).min() > 0.999


def test_layers_find_the_value_exactly_where_they_should(case):
    task, model, prompts = case
    needles = [
        NeedlePrompt(ids.tolist(), Needle("", "", ""), needle, answer, 0.5, False)
        for ids, needle, answer in zip(prompts.ids, prompts.needle_at, prompts.answer_at.tolist(), strict=True)
    ]
    scan = layer_scan(model, needles, keep=32, rules=("logits",))
    covered = scan.of("logits", "covered").mean(dim=1)
    finds = [layer for layer in range(LAYERS) if covered[layer] == 1]
    assert tuple(finds) == FOUND[task.hops]
    assert all(covered[layer] == 0 for layer in range(LAYERS) if layer not in finds)
    stages = scan.stages("logits")
    assert stages[0] == "search"
    assert stages[-1] == "answer"


def test_a_vocabulary_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="do not fit"):
        hand_set_model(PlantedNeedle(256, entities=20, values=20))
