"""Log-probabilities of labels: against a plain loop over whole prompts, on models with and without a cache."""

import pytest
import torch

from assay.methods.flipped_labels import label_scores
from assay.networks import toy_language_model

SHOWN = "sentence: a fine film\nThe answer is positive.\n\nsentence: a dull film\nThe answer is negative.\n\n"
PROMPTS = [f"{SHOWN}sentence: {text}\nThe answer is" for text in ("a film", "fine", "a dull dull dull film", "film a")]
LABELS = [" negative", " positive"]


@pytest.fixture(scope="module")
def toy():
    return toy_language_model([*PROMPTS, " very good"])


def slow(model, tokenizer, prompts, labels, *, mean=False):
    rows = []
    for prompt in prompts:
        row = []
        for label in labels:
            both, start = tokenizer(prompt + label)["input_ids"], len(tokenizer(prompt)["input_ids"])
            with torch.no_grad():
                logs = model(torch.tensor([both])).logits[0].log_softmax(-1)
            each = [float(logs[at - 1, both[at]]) for at in range(start, len(both))]
            row.append(sum(each) / (len(each) if mean else 1))
        rows.append(row)
    return torch.tensor(rows)


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_equals_a_loop_over_whole_prompts(toy, batch):
    found = label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS, batch=batch)
    assert found.shape == (4, 2)
    torch.testing.assert_close(found, slow(toy.model, toy.tokenizer, PROMPTS, LABELS), atol=1e-4, rtol=0)


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_several_tokens(toy, how):
    labels = [" negative", " very good"]
    found = label_scores(toy.model, toy.tokenizer, PROMPTS, labels, several_tokens=how)
    expected = slow(toy.model, toy.tokenizer, PROMPTS, labels, mean=how == "mean")
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_prompts_with_nothing_in_common(toy):
    prompts = ["a film", "fine film a"]
    found = label_scores(toy.model, toy.tokenizer, prompts, LABELS)
    torch.testing.assert_close(found, slow(toy.model, toy.tokenizer, prompts, LABELS), atol=1e-4, rtol=0)


def test_the_common_beginning_is_read_once(toy):
    seen = []
    hook = toy.model.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS, batch=4)
    hook.remove()
    assert seen[0][0] == 1
    assert seen[1][0] == 4
    assert seen[1][1] < seen[0][1] < len(toy.tokenizer(PROMPTS[0])["input_ids"])


def test_a_model_without_a_cache(knowing):
    model, tokenizer = knowing
    prompts = [f"{SHOWN}sentence: a {word} film\nThe answer is" for word in ("fine", "dull", "fine")]
    found = label_scores(model, tokenizer, prompts, LABELS, batch=2)
    assert found.argmax(-1).tolist() == [1, 0, 1]
    torch.testing.assert_close(found, slow(model, tokenizer, prompts, LABELS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["Mistral", "Qwen2", "Phi3"])
def test_other_families(make_model, family, words):
    model, tokenizer = make_model(family), words()
    found = label_scores(model, tokenizer, PROMPTS, LABELS)
    torch.testing.assert_close(found, slow(model, tokenizer, PROMPTS, LABELS), atol=1e-3, rtol=0)


def test_absolute_positions_and_windows(toy):
    import transformers

    sizes = {"vocab_size": len(toy.tokenizer), "bos_token_id": 1, "eos_token_id": 2}
    layers = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    window = {"num_key_value_heads": 2, "sliding_window": 16, "pad_token_id": 0}
    torch.manual_seed(0)
    for model in (
        transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, n_embd=32, n_layer=2, n_head=4)),
        transformers.MistralForCausalLM(transformers.MistralConfig(**sizes, **layers, **window)),
    ):
        found = label_scores(model, toy.tokenizer, PROMPTS, LABELS)
        torch.testing.assert_close(found, slow(model.eval(), toy.tokenizer, PROMPTS, LABELS), atol=1e-3, rtol=0)


def test_modes_and_generators_are_as_before(toy):
    toy.model.train()
    toy.model.model.layers[0].eval()
    modes = [module.training for module in toy.model.modules()]
    state = torch.get_rng_state()
    label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS)
    with pytest.raises(ValueError, match="same tokens"):
        label_scores(toy.model, toy.tokenizer, PROMPTS, [" fine", " fine"])
    assert [module.training for module in toy.model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    toy.model.eval()


def test_autocast_gives_the_same_conclusion(toy):
    plain = label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain, atol=0.3, rtol=0)


def test_a_label_outside_the_vocabulary(toy):
    with pytest.raises(ValueError, match="label ' terrible' is not in the model's vocabulary"):
        label_scores(toy.model, toy.tokenizer, PROMPTS, [" negative", " terrible"])


def test_a_label_of_several_tokens(toy):
    with pytest.raises(ValueError, match=r"' very good' is 2 tokens \(' very', ' good'\): choose a word of one token"):
        label_scores(toy.model, toy.tokenizer, PROMPTS, [" negative", " very good"])


def test_a_label_that_melts_into_the_prompt(toy):
    with pytest.raises(ValueError, match="does not begin with a token of its own behind 'he answer is'"):
        label_scores(toy.model, toy.tokenizer, PROMPTS, ["sue", " positive"])


def test_a_prompt_longer_than_the_context():
    small = toy_language_model(PROMPTS, max_position_embeddings=24)
    with pytest.raises(ValueError, match="longer than the model's context of 24: show fewer demonstrations"):
        label_scores(small.model, small.tokenizer, PROMPTS, LABELS)


def test_scores_that_are_not_finite(toy):
    weight = toy.model.lm_head.weight
    kept = weight.data
    weight.data = torch.full_like(kept, torch.nan)
    try:
        with pytest.raises(ValueError, match="scores of labels must be finite"):
            label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS)
    finally:
        weight.data = kept


def test_nothing_to_score(toy):
    with pytest.raises(ValueError, match="one prompt and two labels are the least"):
        label_scores(toy.model, toy.tokenizer, [], LABELS)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        label_scores(toy.model, toy.tokenizer, PROMPTS, LABELS, batch=0)
