import copy

import pytest
import torch

from assay.evaluation import needle_prompt
from assay.methods.gemfilter import GemFilter, choose_filter_layer, layer_scan
from assay.methods.gemfilter.choice import measured_length
from assay.methods.gemfilter.layers import LayerScan, stages_of

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


def test_the_first_reliable_layer_is_chosen_and_judged_on_other_prompts(model):
    scan = made_up([[0.1, 0.2, 0.3, 0.95, 1.0], [0.1, 0.2, 0.97, 0.95, 1.0]])
    scan.recall[1, 2, 1::2] = 0.6  # the judging prompts disagree
    choice = _choose(scan, model, keep=16, length=128, reliability=0.9)
    assert (choice.layer, choice.rule, choice.calibrated) == (2, "window", True)
    assert choice.held_out_recall == pytest.approx(0.6)
    assert "layer 2 of 0 to 4" in choice.sentence()
    assert choice.filter(keep_last=4) == GemFilter(layer=2, keep=16, rule="window", keep_last=4)


def test_a_lucky_mean_is_not_enough(model):
    scan = made_up([[0.1, 0.2, 0.94, 1.0, 1.0], [0.1, 0.2, 0.3, 0.4, 0.5]])
    scan.recall[0, 2, :4] = torch.tensor([1.0, 1.0, 0.8, 1.0])
    assert scan.recall[0, 2].mean() > 0.9
    assert _choose(scan, model, 16, 128, 0.9).layer == 3


def test_of_two_rules_at_one_layer_the_texts_own_wins(model):
    choice = _choose(made_up([[0, 0, 0.95, 1, 1], [0, 0, 1.0, 1, 1]]), model, 16, 128, 0.9)
    assert (choice.layer, choice.rule) == (2, "logits")


def test_without_a_reliable_layer_the_best_is_named_as_such(model):
    choice = _choose(made_up([[0, 0.1, 0.5, 0.5, 0.2], [0, 0.2, 0.1, 0.1, 0.1]]), model, 16, 128, 0.9)
    assert (choice.layer, choice.calibrated) == (2, False)
    assert choice.sentence().startswith("no layer kept 90% of the needles")


def test_sliding_layers_are_passed_over(make_model):
    model = make_model("Qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=2)
    choice = _choose(made_up([[0.2, 0.3, 1, 1, 1]] * 2), model, 16, 128, 0.9)
    assert choice.layer == 1
    with pytest.raises(ValueError, match="none can filter"):
        _choose(made_up([[1.0] * 5] * 2), make_model("Mistral", sliding_window=16), 16, 128, 0.9)


def test_stages_are_search_found_and_answer():
    scan = made_up([[0.1, 0.95, 0.5, 0.92, 0.3], [0.0] * 5])
    assert scan.stages("logits") == ["search", "found", "found", "found", "answer"]
    assert scan.stages("window") == ["search"] * 5
    early = [0.1, 0.9, 0.2, 0.3, 0.9, 1.0, 0.8, 1.0, 0.5]  # layer 1 is alone, the dip at 6 is not
    assert stages_of(early) == ["search"] * 4 + ["found"] * 4 + ["answer"]
    assert scan.best_rule() == "logits"
    assert made_up([[0.1, 0.5, 0.5], [0.0, 0.6, 0.6]]).best_rule() == "window"


def test_a_choice_is_remembered_per_model_and_settings(model, tokenizer, monkeypatch, tmp_path, make_model):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    tokenizer("The secret ingredient of the soup served in")
    monkeypatch.setattr("assay.evaluation.needles.manual_text", lambda: TEXT)
    first = choose_filter_layer(model, tokenizer, keep=24, length=120, prompts=4)
    scans = []
    monkeypatch.setattr("assay.methods.gemfilter.layers.layer_scan", lambda *a, **k: scans.append(1) or 1 / 0)
    assert choose_filter_layer(model, tokenizer, keep=24, length=120, prompts=4) == first
    assert not scans
    other = make_model("Llama", seed=1, vocab_size=400)
    with pytest.raises(ZeroDivisionError):
        choose_filter_layer(other, tokenizer, keep=24, length=120, prompts=4)
    with pytest.raises(ZeroDivisionError):
        choose_filter_layer(model, tokenizer, keep=24, length=120, prompts=4, remember=False)
    for change in ({"chat_template": "<turn>"}, {"get_vocab": lambda: {"word": 3}}):
        another = copy.deepcopy(tokenizer)
        vars(another).update(change)
        with pytest.raises(ZeroDivisionError):
            choose_filter_layer(model, another, keep=24, length=120, prompts=4)
    for name in ("model.layers.1.mlp.up_proj.weight", "model.layers.0.self_attn.v_proj.weight", "model.norm.weight"):
        tuned = copy.deepcopy(model)
        with torch.no_grad():
            tuned.get_parameter(name).add_(0.01)
        with pytest.raises(ZeroDivisionError):
            choose_filter_layer(tuned, tokenizer, keep=24, length=120, prompts=4)
    for file in tmp_path.rglob("*.json"):
        file.write_text("{")
    with pytest.raises(ZeroDivisionError):
        choose_filter_layer(model, tokenizer, keep=24, length=120, prompts=4)


def test_auto_filters_with_the_chosen_layer(model, tokenizer, monkeypatch, tmp_path, prompts):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr("assay.evaluation.needles.manual_text", lambda: TEXT)
    auto = GemFilter(layer="auto", keep=24)
    chosen = auto.resolved(model, tokenizer, 120)
    ids = torch.tensor([prompts[0].input_ids])
    assert isinstance(chosen.layer, int)
    assert measured_length(model, 120) == measured_length(model, 65) == 128
    assert measured_length(model, 3000) == 512  # its context
    assert auto.select(model, ids, tokenizer=tokenizer).kept() == chosen.select(model, ids).kept()


def test_choices_that_make_no_sense_are_refused(model, tokenizer):
    with pytest.raises(ValueError, match="prompts must be at least 4, not 2"):
        choose_filter_layer(model, tokenizer, keep=24, prompts=2)
    with pytest.raises(ValueError, match="nothing to filter"):
        choose_filter_layer(model, tokenizer, keep=600)
    with pytest.raises(ValueError, match="compared by their last rows"):
        GemFilter(layer="auto", keep=24, row="middle").resolved(model, tokenizer, 120)
