"""The choice of the layer: on which prompts, what is reported, what is remembered, and what it costs."""

import copy
import warnings
from dataclasses import replace

import pytest
import torch

from assay.evaluation import Needle, needle_prompt
from assay.methods.gemfilter import GemFilter, LayerChoice, choose_filter_layer, layer_scan
from assay.methods.gemfilter import calibration as calibrating
from assay.methods.gemfilter import choice as choosing
from assay.methods.gemfilter.calibration import CHOOSING, JUDGING, calibration
from assay.methods.gemfilter.choice import measured_length

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
OTHER = " ".join(f"Nobody came to the {i}th meeting in the empty hall." for i in range(60))
OWN = {"texts": {"story": TEXT}, "needles": ("ingredient",)}
FEW = {"keep": 24, "length": 120, "prompts": 4, **OWN, "warn": False}


@pytest.fixture
def model(make_model):
    return make_model("Llama", vocab_size=600)


@pytest.fixture(autouse=True)
def folder_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))


@pytest.fixture
def measured(monkeypatch):
    """Every prompt that is measured, with the layers it is read at; its recall is what ``shares`` says."""
    seen = []

    def kept_by(_, needle, filters, layers):
        seen.append((needle, [one.rule for one in filters], list(layers)))
        column = torch.tensor([[kept_by.shares(needle, layer) for layer in layers] for _ in filters])
        return column, column, column

    kept_by.shares = lambda needle, layer: 1.0 if layer >= 1 else 0.1
    monkeypatch.setattr(choosing, "kept_by", kept_by)
    seen.append(kept_by)
    return seen


def test_choosing_and_judging_share_no_text_and_no_wording(tokenizer):
    made = calibration(tokenizer, 300, 18, texts={"story": TEXT, "hall": OTHER})
    kinds = [{one.kind.split(" in ")[0] for one in side} for side in (made.choosing, made.judging)]
    assert kinds == [set(CHOOSING), set(JUDGING)]
    assert {one.kind.split(" in ")[1] for one in made.judging} == {"story", "hall"}
    assert len({one.kind for one in made.judging}) == 6
    texts = [
        {number for one in side for number in numbers_in(tokenizer, one)} for side in (made.choosing, made.judging)
    ]
    assert not texts[0] & texts[1]
    depths = [one.depth for one in made.choosing[:6]]
    assert min(depths) < 0.2
    assert max(depths) > 0.8


def numbers_in(tokenizer, prompt):
    """Sentences are told apart by their numbers."""
    hidden = set(prompt.needle_at)
    ids = [token for place, token in enumerate(prompt.input_ids) if place not in hidden]
    words = tokenizer.decode(ids).split()
    return {word for word in words if word.rstrip("th").isdigit()}


def test_a_user_brings_texts_needles_or_whole_prompts(model, tokenizer):
    needle = Needle("The gate opens at nine.", "When does the gate open?", "nine")
    own = {"texts": {"hall": OTHER}, "needles": [needle], "remember": False, "warn": False}
    choice = choose_filter_layer(model, tokenizer, keep=24, length=120, prompts=4, **own)
    assert set(choice.kinds) == {"'The gate opens at nine.' in hall"}
    prompts = [needle_prompt(tokenizer, 130, i / 6, seed=i, haystack=TEXT) for i in range(6)]
    choice = choose_filter_layer(model, tokenizer, keep=24, prompts=prompts, remember=False, warn=False)
    assert (choice.prompts, choice.length) == (3, 130)
    for bad, sentence in (
        ({"texts": {}}, "at least one text"),
        ({"needles": []}, "at least one needle"),
        ({"prompts": prompts[:3]}, "the number of prompts must be at least 4, not 3"),
        ({"place": "last"}, "place must be one of middle, first"),
    ):
        with pytest.raises(ValueError, match=sentence):
            choose_filter_layer(model, tokenizer, **{"keep": 24, "length": 120, "prompts": 4, **bad})


def test_the_worst_kind_is_reported_and_warned_about(model, tokenizer, measured):
    judged = {"story": 1.0, "hall": 0.5}
    measured[0].shares = lambda needle, layer: (
        judged[needle.kind.split(" in ")[1]] if needle.kind.split(" in ")[0] in JUDGING else 1.0
    )
    texts = {"story": TEXT, "hall": OTHER}
    with pytest.warns(UserWarning, match=r"the filter layer is not reliable: .* 50% at worst \(\w+ in hall\)"):
        choice = choose_filter_layer(model, tokenizer, keep=24, length=150, texts=texts)
    assert choice.calibrated
    assert not choice.reliable
    assert choice.worst == 0.5
    assert 0.7 < choice.held_out_recall < 0.8
    with pytest.warns(UserWarning, match="not reliable"):  # also when it is remembered
        choose_filter_layer(model, tokenizer, keep=24, length=150, texts=texts)


def test_no_reliable_layer_is_warned_about(model, tokenizer):
    with pytest.warns(UserWarning, match="not reliable: no layer kept 90% of the needles; the best, layer"):
        choose_filter_layer(model, tokenizer, **{**FEW, "warn": True})


def test_choosing_stops_when_a_prompt_changes_nothing_and_judges_below_the_layer_alone(model, tokenizer, measured):
    said = []
    options = {"keep": 24, "length": 150, **OWN, "progress": said.append}
    choice = choose_filter_layer(model, tokenizer, **options)
    chose = [one for one in measured[1:] if len(one[2]) == 5]
    judged = [one for one in measured[1:] if len(one[2]) == 1]
    assert len(chose) == 7  # of nine
    assert (len(judged), judged[0][1:]) == (9, ([choice.rule], [2]))
    assert (choice.layer, choice.calibrated, choice.reliable) == (2, True, True)
    assert choice.passes == pytest.approx(7 + 9 * 2 / 5)
    assert said[0] == "at most 9 passes over 150 tokens, and 9 shorter ones"
    assert said[1] == "needle prompt 1 of 9"
    assert "s more" in said[2]


def test_what_was_measured_is_kept_when_interrupted(model, tokenizer, measured):
    calls = []

    def interrupted(needle, layer):
        calls.append(layer)
        if len(calls) > 22:
            raise KeyboardInterrupt
        return 1.0

    measured[0].shares = interrupted
    options = {"keep": 24, "length": 150, **OWN}
    with pytest.raises(KeyboardInterrupt):
        choose_filter_layer(model, tokenizer, **options)
    before = len(measured) - 1
    measured[0].shares = lambda needle, layer: 1.0
    choice = choose_filter_layer(model, tokenizer, **options)
    again = [one[0].input_ids for one in measured[1:][before:]]
    assert before == 3
    assert not any(one[0].input_ids in again for one in measured[1:3])
    assert choice.passes < 7 + 9
    assert not list(choosing.Remembered(model, tokenizer, {}).path.parent.glob("*.jsonl"))


def test_the_width_of_pooling_is_chosen_with_the_rule(model, tokenizer):
    """All widths share one reading of the prompts; each has the recall that it has alone."""
    alone = {k: choose_filter_layer(model, tokenizer, **FEW, kernels=(k,)) for k in (1, 9)}
    both = choose_filter_layer(model, tokenizer, **FEW, kernels=(1, 9))
    found = {f"{rule} over {k}": shares for k, one in alone.items() for rule, shares in one.recall.items()}
    assert both.recall == {name: pytest.approx(found[name]) for name in found}
    assert found["window over 1"] != found["window over 9"]
    assert both.filter().kernel == both.kernel
    (chosen,) = [row for row in both.table() if row["chosen"]]
    assert (chosen["layer"], chosen["rule"]) == (both.layer, f"{both.rule} over {both.kernel}")
    assert max(max(shares) for shares in found.values()) == pytest.approx(chosen["recall"]), "none is reliable here"


def test_in_chunks_all_widths_share_one_reading_too(model, tokenizer):
    base = GemFilter(0, keep=24, chunk=40, tail=24)
    alone = choose_filter_layer(model, tokenizer, **FEW, base=base, rules=("window",), kernels=(9,))
    both = choose_filter_layer(model, tokenizer, **FEW, base=base, rules=("logits", "window"), kernels=(1, 9))
    assert both.recall["window over 9"] == pytest.approx(alone.recall["window"])


def test_a_choice_is_remembered_per_model_and_settings(model, tokenizer, monkeypatch, tmp_path, make_model):
    first = choose_filter_layer(model, tokenizer, **FEW)
    monkeypatch.setattr(choosing, "kept_by", lambda *a, **k: 1 / 0)
    assert choose_filter_layer(model, tokenizer, **FEW) == first
    other = make_model("Llama", seed=1, vocab_size=600)
    changed = [(other, tokenizer, {}), (model, tokenizer, {"remember": False}), (model, tokenizer, {"place": "first"})]
    changed += [(model, tokenizer, {"base": GemFilter(layer=0, chunk=40, tail=30)})]
    changed += [(model, tokenizer, {"texts": {"hall": OTHER}})]
    for change in ({"chat_template": "<turn>"}, {"get_vocab": lambda: {"word": 3}}):
        another = copy.deepcopy(tokenizer)
        vars(another).update(change)
        changed.append((model, another, {}))
    for name in ("model.layers.1.mlp.up_proj.weight", "model.layers.0.self_attn.v_proj.weight", "model.norm.weight"):
        tuned = copy.deepcopy(model)
        with torch.no_grad():
            tuned.get_parameter(name).add_(0.01)
        changed.append((tuned, tokenizer, {}))
    for which, words, options in changed:
        with pytest.raises(ZeroDivisionError):
            choose_filter_layer(which, words, **{**FEW, **options})
    for damage in ("{", "{}", '{"layer": 3}'):
        for file in tmp_path.rglob("*.json"):
            file.write_text(damage)
        with pytest.raises(ZeroDivisionError):
            choose_filter_layer(model, tokenizer, **FEW)


def test_auto_filters_with_the_chosen_layer_at_no_more_than_the_prompts_length(model, tokenizer, monkeypatch):
    seen = []

    def chosen(model, tokenizer, **options):
        seen.append(options)
        return LayerChoice(3, "window", 24, 96, 5, 0.9, 1.0, 1.0, 1.0, "x", True, 9, 1.0, {}, {})

    monkeypatch.setattr(choosing, "choose_filter_layer", chosen)
    auto = GemFilter(layer="auto", keep=24, chunk=40, tail=30)
    ids = torch.tensor([needle_prompt(tokenizer, 120, 0.5, haystack=TEXT).input_ids])
    kept = auto.select(model, ids, tokenizer=tokenizer).kept()
    assert kept == GemFilter(layer=3, keep=24, rule="window", chunk=40, tail=30).select(model, ids).kept()
    assert (seen[0]["length"], seen[0]["base"].chunk) == (120, 40)


def test_auto_says_what_the_first_answer_waits_for(model, tokenizer, measured, monkeypatch):
    monkeypatch.setattr(calibrating, "haystacks", lambda: {"story": TEXT})
    auto = GemFilter(layer="auto", keep=24)
    with pytest.warns(UserWarning, match="is measured first") as heard:
        chosen = auto.resolved(model, tokenizer, 150)
    assert [str(one.message) for one in heard] == [
        "layer='auto' is measured first, and remembered then: at most 9 passes over 150 tokens, and 9 shorter ones"
    ]
    assert chosen == GemFilter(layer=2, keep=24, rule="logits")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert auto.resolved(model, tokenizer, 150) == chosen  # remembered


def test_lengths_are_measured_at_the_next_step_below(make_model):
    model = make_model("Llama", max_position_embeddings=2000)
    whole, cut = GemFilter(layer=0, keep=24), GemFilter(layer=0, keep=24, chunk=40)
    steps = {511: 511, 512: 512, 767: 512, 768: 768, 1023: 768, 1024: 1024, 1900: 1536}
    assert {n: measured_length(model, n, whole) for n in steps} == steps
    assert measured_length(model, 600, GemFilter(layer=0, keep=550)) == 600  # 512 tokens leave nothing to filter
    assert measured_length(model, 3000, whole) == 2000  # its context
    assert measured_length(model, 3000, cut) == 2048
    assert measured_length(model, 100_000, cut) == 8192


def test_choices_that_make_no_sense_are_refused(model, tokenizer):
    with pytest.raises(ValueError, match="prompts must be at least 4, not 2"):
        choose_filter_layer(model, tokenizer, keep=24, prompts=2)
    with pytest.raises(ValueError, match="nothing to filter"):
        choose_filter_layer(model, tokenizer, keep=600)
    with pytest.raises(ValueError, match="compared by their last rows"):
        GemFilter(layer="auto", keep=24, row="middle").resolved(model, tokenizer, 120)


def own_prompts(tokenizer, length=120, count=6):
    return [needle_prompt(tokenizer, length, (i + 0.5) / count, seed=i, haystack=TEXT) for i in range(count)]


def test_prompts_of_your_own_that_are_kept_whole_are_refused(model, tokenizer):
    prompts = own_prompts(tokenizer)
    prompts[3] = needle_prompt(tokenizer, 80, 0.5, haystack=TEXT)
    sentence = "^prompts of 80 tokens have nothing to filter at keep = 80: give longer prompts$"
    with pytest.raises(ValueError, match=sentence):
        choose_filter_layer(model, tokenizer, keep=80, prompts=prompts)
    with pytest.raises(ValueError, match="at keep = 1024"):
        choose_filter_layer(model, tokenizer, prompts=prompts)
    assert choose_filter_layer(model, tokenizer, keep=79, prompts=prompts, warn=False).keep == 79


def test_a_share_is_kept_of_every_prompt(model, tokenizer):
    """As the filter keeps it: a fifth of prompts of 120 tokens is 24."""
    share, number = (choose_filter_layer(model, tokenizer, **{**FEW, "keep": keep}) for keep in (0.2, 24))
    assert share.filter() == GemFilter(share.layer, keep=0.2, rule=share.rule)
    assert (share.layer, share.recall, share.kinds) == (number.layer, number.recall, number.kinds)
    own = [*own_prompts(tokenizer), needle_prompt(tokenizer, 90, 0.5, haystack=TEXT)]
    assert choose_filter_layer(model, tokenizer, keep=0.2, prompts=own, warn=False).keep == 0.2


@pytest.mark.parametrize("chunk", [None, 64])
def test_a_share_without_a_length_is_measured_within_the_context(model, tokenizer, measured, chunk):
    base = GemFilter(0, chunk=chunk, tail=24)
    choice = choose_filter_layer(model, tokenizer, **{**FEW, "keep": 0.125, "length": None}, base=base)
    assert choice.length == (512 if chunk is None else 8192)


def test_one_rule_needle_or_width_stands_for_a_list_of_one(model, tokenizer):
    needle = Needle("The lamp is green.", "What colour is the lamp?", "green")
    several = {"needles": [needle], "rules": ["window"], "kernels": [9]}
    alone = {"needles": needle, "rules": "window", "kernels": 9}
    made = [choose_filter_layer(model, tokenizer, **{**FEW, **each}, remember=False) for each in (several, alone)]
    assert made[0] == made[1]
    prompts = own_prompts(tokenizer)
    read = [choose_filter_layer(model, tokenizer, keep=24, prompts=p, warn=False) for p in (prompts, iter(prompts))]
    assert read[0] == read[1]
    scans = [layer_scan(model, prompts[:1], keep=24, rules=rules) for rules in ("window", ["window"])]
    assert torch.equal(scans[0].recall, scans[1].recall)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rules": ()}, "a layer is measured with at least one rule"),
        ({"needles": []}, "a layer is measured with at least one needle"),
        ({"prompts": ["a", "b", "c", "d"]}, "prompts of your own are needle prompts, .* and not str"),
        ({"prompts": "four"}, "prompts of your own are needle prompts"),
        ({"prompts": 4.0}, "prompts must be an integer, not 4.0"),
    ],
)
def test_what_is_no_list_of_that_kind_gets_a_sentence(model, tokenizer, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        choose_filter_layer(model, tokenizer, **{**FEW, **options})


@pytest.mark.parametrize("places", [[], [-1], [5, 120]])
def test_prompts_of_your_own_have_a_needle(model, tokenizer, places):
    prompts = own_prompts(tokenizer)
    prompts[2] = replace(prompts[2], needle_at=places)
    with pytest.raises(ValueError, match=r"^prompt 2 hides no needle: needle_at must hold positions among its 120"):
        choose_filter_layer(model, tokenizer, keep=24, prompts=prompts)
    with pytest.raises(ValueError, match="the number of prompts must be at least 4, not 1"):
        choose_filter_layer(model, tokenizer, keep=24, prompts=prompts[0])


def test_a_text_without_a_name_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"texts are given by their names, as in \{'minutes': text\}, not as str"):
        calibration(tokenizer, 300, 18, texts=TEXT)
