"""The hand-set model does what its docstring says, layer by layer."""

import pytest
import torch

pytest.importorskip("transformers", reason="the hand-set model is of a class of transformers")

from assay.evaluation.needles import Needle, NeedlePrompt
from assay.methods.gemfilter import H2O, GemFilter, OneRun, SnapKV, layer_scan
from assay.studies.gemfilter.exact import random_model
from assay.studies.gemfilter.hand_set import FOUND, LAYERS, hand_set_model
from assay.studies.gemfilter.learners import answers, distance, random_positions, read, recall
from assay.studies.gemfilter.planted import planted_rows
from assay.studies.gemfilter.problem import PlantedNeedle

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


def test_a_shared_prefill_gives_what_the_methods_give_alone(case):
    task, model, prompts = case
    chosen = GemFilter(layer=FOUND[task.hops][0], keep=32)
    seen = read(model, prompts.ids, {"ours": chosen}, chosen)
    assert torch.equal(seen.kept["ours"], chosen.select(model, prompts.ids).indices)
    assert seen.index_sets.shape == (len(prompts), LAYERS * 4, 32)
    made = answers(model, seen, {"one": seen.kept["ours"], "other": seen.kept["ours"]}, 2)
    assert torch.equal(made["full"], prompts.answer)
    alone = {"one": chosen, "other": chosen}
    alone |= {m.name: m for m in (SnapKV(32, window=16), H2O(32, window=16), OneRun(chosen))}
    assert set(made) == {"full", *alone}
    for name, method in alone.items():
        expected = method.generate(model, prompts.ids, max_new_tokens=2, do_sample=False)[:, -2:]
        assert torch.equal(made[name], expected), name


def test_decoding_rows_from_their_own_positions_is_generation():
    """On a random model, where every position and every token counts, and with rows that end at different times."""
    model, new = random_model(3, attention="sdpa"), 8
    ids = torch.randint(3, 97, (2, 96), generator=torch.Generator().manual_seed(0))
    chosen = GemFilter(layer=3, keep=40)
    ends = answers(model, read(model, ids, {"ours": chosen}, chosen), {"ours": chosen.select(model, ids).indices}, new)
    model.generation_config.eos_token_id = [int(ends["ours"][0, 2]), int(ends["snapkv"][1, 4])]
    for row in (0, 1):
        one = ids[row : row + 1]
        seen = read(model, one, {"ours": chosen}, chosen)
        made = answers(model, seen, {"ours": seen.kept["ours"]}, new)
        for name, method in {"ours": chosen, "snapkv": SnapKV(40, window=20), "one-run": OneRun(chosen)}.items():
            expected = method.generate(model, one, max_new_tokens=new, do_sample=False)[:, 96:]
            assert torch.equal(made[name][:, : expected.shape[1]], expected), name
            assert (made[name][:, expected.shape[1] :] == expected[:, -1:]).all()


def test_a_vocabulary_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="do not fit"):
        hand_set_model(PlantedNeedle(256, entities=20, values=20))


def test_recall_and_distance_by_hand():
    kept = torch.tensor([[1, 2, 9], [4, 5, 6]])
    assert recall(kept, [2, 3]).tolist() == [0.5, 0.0]
    assert distance(kept, [3, 4]).tolist() == [1.0, 0.0]
    drawn = random_positions(20, 6, torch.Generator().manual_seed(0), last=2)[0].tolist()
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 6
    assert drawn[-2:] == [18, 19]


def test_rows_tell_the_needle_from_its_absence():
    rows = planted_rows(0, "two-hop", 256, (0.5,), 2, 2, "cpu")
    accuracy = {c["method"]: v["accuracy"] for c, v in rows if "method" in c and "accuracy" in v}
    assert accuracy["gemfilter"] == accuracy["full"] == 1
    assert accuracy["absent"] == accuracy["random"] == 0
