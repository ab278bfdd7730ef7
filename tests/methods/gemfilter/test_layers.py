from dataclasses import replace

import pytest
import torch

from assay.evaluation import needle_prompt
from assay.methods.gemfilter import GemFilter, layer_scan
from assay.methods.gemfilter.layers import LayerScan, stages_of
from assay.methods.gemfilter.picking import pick, usable_layers

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))


@pytest.fixture
def prompts(tokenizer):
    return [needle_prompt(tokenizer, 120, depth, seed=i, haystack=TEXT) for i, depth in enumerate((0, 0.4, 0.8, 1))]


@pytest.fixture
def model(make_model):
    return make_model("Llama", vocab_size=400)


def test_one_pass_over_all_layers_finds_what_each_filter_finds(model, prompts):
    scan = layer_scan(model, prompts, keep=24)
    assert scan.recall.shape == (3, 5, 4)
    for which, rule in enumerate(scan.rules):
        for layer in range(5):
            for number, needle in enumerate(prompts):
                ids = torch.tensor([needle.input_ids])
                selection = GemFilter(layer=layer, keep=24, rule=rule).select(model, ids)
                assert scan.recall[which, layer, number] == pytest.approx(selection.recall(needle.needle_at))
                covered = set(needle.answer_at) <= set(selection.kept())
                assert bool(scan.covered[which, layer, number]) is covered
                nearest = min(abs(i - j) for i in needle.needle_at for j in selection.kept())
                assert scan.distance[which, layer, number] == nearest


def made_up(recall: list[list[float]], prompts: int = 8) -> LayerScan:
    """A scan with the given recall for every (rule, layer), equal for all prompts."""
    table = torch.tensor(recall)[:, :, None].expand(-1, -1, prompts).clone()
    return LayerScan(("logits", "window"), table, (table > 0.5).float(), 1 - table)


LAYERS = range(5)


def test_the_middle_of_the_found_stage_is_chosen():
    scan = made_up([[0.1, 0.2, 0.95, 0.95, 0.3], [0.1, 0.95, 0.97, 1.0, 0.2]])
    assert pick(scan.recall, LAYERS, 0.9) == (1, 2, True)  # the rule with most reliable layers
    assert pick(scan.recall, LAYERS, 0.9, "first") == (1, 1, True)
    scan = made_up([[1.0, 0.2, 0.2, 0.95, 0.95], [0.0] * 5])
    assert pick(scan.recall, LAYERS, 0.9) == (0, 3, True)  # one early layer is no stage
    assert pick(scan.recall, LAYERS, 0.9, "first") == (0, 0, True)
    scan = made_up([[0.95, 0.95, 0.2, 0.95, 0.95], [0.0] * 5])
    assert pick(scan.recall, LAYERS, 0.9) == (0, 1, True)  # a dip in the middle is not taken


def test_a_lucky_mean_is_not_enough():
    scan = made_up([[0.1, 0.2, 0.94, 1.0, 1.0], [0.1, 0.2, 0.3, 0.4, 0.5]])
    scan.recall[0, 2, :4] = torch.tensor([1.0, 1.0, 0.6, 1.0])
    assert scan.recall[0, 2].mean() > 0.9
    assert pick(scan.recall, LAYERS, 0.9, "first") == (0, 3, True)


def test_of_two_rules_with_as_many_layers_the_texts_own_wins():
    recall = made_up([[0, 0, 0.95, 1, 1], [0, 0, 1.0, 1, 1]]).recall
    assert pick(recall, LAYERS, 0.9) == (0, 3, True)
    assert pick(recall, LAYERS, 0.9, "first") == (0, 2, True)


def test_without_a_reliable_layer_the_best_is_named_as_such():
    recall = made_up([[0, 0.1, 0.5, 0.5, 0.2], [0, 0.2, 0.1, 0.1, 0.1]]).recall
    assert pick(recall, LAYERS, 0.9) == (0, 2, False)


def test_sliding_layers_are_passed_over(make_model):
    model = make_model("Qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=2)
    base = GemFilter(layer=0)
    assert usable_layers(model, base, 128) == [0, 1]
    assert usable_layers(model, base, 16) == list(LAYERS)
    assert usable_layers(model, GemFilter(layer=0, chunk=10, tail=6), 128) == list(LAYERS)
    with pytest.raises(ValueError, match="none can filter"):
        usable_layers(make_model("Mistral", sliding_window=16), base, 128)


def test_stages_are_search_found_and_answer():
    scan = made_up([[0.1, 0.95, 0.5, 0.92, 0.3], [0.0] * 5])
    assert scan.stages("logits") == ["search", "found", "found", "found", "answer"]
    assert scan.stages("window") == ["search"] * 5
    early = [0.1, 0.9, 0.2, 0.3, 0.9, 1.0, 0.8, 1.0, 0.5]  # layer 1 is alone, the dip at 6 is not
    assert stages_of(early) == ["search"] * 4 + ["found"] * 4 + ["answer"]
    assert scan.best_rule() == "logits"
    assert made_up([[0.1, 0.5, 0.5], [0.0, 0.6, 0.6]]).best_rule() == "window"


def test_a_scan_needs_needles_in_its_prompts(model, prompts):
    for wrong, sentence in (([], "at least one prompt"), ([replace(prompts[0], needle_at=[])], "hides no needle")):
        with pytest.raises(ValueError, match=sentence):
            layer_scan(model, wrong, keep=24)
