"""Generation from the kept tokens: as transformers' own decoding loop, and consistent with the whole prompt."""

import warnings

import pytest
import torch

from assay.methods.gemfilter import FullAttention, GemFilter, share_prefill
from assay.methods.gemfilter.cautions import no_room

transformers = pytest.importorskip("transformers")
GEM = GemFilter(layer=2, keep=20)
CUT = GemFilter(layer=2, keep=20, chunk=16, tail=8)


@pytest.mark.filterwarnings("ignore:Using the model-agnostic default")
@pytest.mark.parametrize("gem", [GEM, CUT, GemFilter(layer=2, keep=60)], ids=["whole", "chunks", "all"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_new_tokens": 6, "do_sample": False},
        {"max_length": 66, "do_sample": False},
        {"do_sample": False},
        {"max_new_tokens": 5, "num_beams": 3, "num_return_sequences": 2, "do_sample": False},
        {"max_new_tokens": 5, "min_new_tokens": 4, "do_sample": False, "repetition_penalty": 1.3},
        {"max_new_tokens": 5, "do_sample": False, "use_cache": False},
    ],
    ids=["new", "length", "default", "beams", "processors", "no cache"],
)
def test_custom_generate_is_the_methods_own_generation(llama, ids, gem, options):
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    expected = gem.generate(llama, **inputs, **options)
    assert torch.equal(llama.generate(**inputs, **options, custom_generate=gem), expected)


def same_as_its_own(model, gem, ids, **options):
    """What the filter generates by itself, which is also what generation makes of it as a custom loop."""
    made, custom = [], {"attention_mask": torch.ones_like(ids), "custom_generate": gem}
    for generate in (lambda: gem.generate(model, ids, **options), lambda: model.generate(ids, **custom, **options)):
        torch.manual_seed(3)
        made.append(generate())
    assert torch.equal(*made)
    return made[0]


@pytest.mark.parametrize("gem", [GEM, CUT, GemFilter(layer=2, keep=60)], ids=["whole", "chunks", "all"])
def test_a_callers_own_processor_or_criterion_goes_before_the_one_of_its_class(llama, ids, gem):
    """Generation makes a criterion of length and warpers itself, and the caller's take their place."""
    length = transformers.MaxLengthCriteria(max_length=min(gem.keep, 60) + 3)
    criteria = transformers.StoppingCriteriaList([length])
    assert (
        same_as_its_own(llama, gem, ids, max_new_tokens=9, do_sample=False, stopping_criteria=criteria).shape[1] == 63
    )
    hot = transformers.LogitsProcessorList([transformers.TemperatureLogitsWarper(1e4)])
    options = {"max_new_tokens": 6, "do_sample": True, "top_k": None, "temperature": 0.01}
    warm = same_as_its_own(llama, gem, ids, logits_processor=hot, **options)
    assert not torch.equal(warm, same_as_its_own(llama, gem, ids, **options))
    same_as_its_own(llama, gem, ids, max_new_tokens=4, do_sample=False, max_time=100.0, min_new_tokens=2)


@pytest.mark.parametrize("own", [False, True], ids=["asked for", "and the caller's own"])
@pytest.mark.parametrize("kind", ["WatermarkingConfig", "SynthIDTextWatermarkingConfig"])
def test_a_watermark_is_applied_once(llama, ids, kind, own):
    """It holds a generator of random numbers, and two of these are never equal."""
    settings = {"bias": 1.0} if kind == "WatermarkingConfig" else {"keys": [3, 5, 7], "ngram_len": 2}
    config, options = getattr(transformers, kind)(**settings), {"max_new_tokens": 4, "do_sample": False}
    options |= {"watermarking_config": config, "return_dict_in_generate": True}
    options |= {"output_scores": True, "output_logits": True}
    found = []
    for custom in (False, True):
        if own:
            processor = config.construct_processor(llama.config.vocab_size, "cpu")
            options["logits_processor"] = transformers.LogitsProcessorList([processor])
        made = llama.generate(ids, custom_generate=CUT, **options) if custom else CUT.generate(llama, ids, **options)
        found.append((made.scores[0] - made.logits[0]).nan_to_num())
    assert found[0].abs().max() > 0
    assert torch.equal(*found)


def test_what_the_caller_turns_off_stays_off(llama, ids):
    """None is not left out: without it the model's own end, and a default number of likely tokens, would come back."""
    llama.generation_config.eos_token_id = int(GEM.generate(llama, ids, max_new_tokens=3, do_sample=False)[0, 61])
    assert same_as_its_own(llama, GEM, ids, max_new_tokens=6, do_sample=False).shape[1] == 62
    assert same_as_its_own(llama, GEM, ids, max_new_tokens=6, do_sample=False, eos_token_id=None).shape[1] == 66
    same_as_its_own(llama, GEM, ids, max_new_tokens=6, do_sample=True, temperature=1e4, top_k=None, eos_token_id=None)


def test_a_negative_prompt_is_not_lost(llama, ids):
    options = {"max_new_tokens": 6, "do_sample": False, "guidance_scale": 4.0}
    guided = same_as_its_own(llama, GEM, ids, negative_prompt_ids=ids[:, 5:40], **options)
    assert not torch.equal(guided, same_as_its_own(llama, GEM, ids, **options))


def test_a_streamer_that_would_wait_forever_is_refused(llama, ids):
    with pytest.raises(ValueError, match=r"is handed no streamer: use gem\.generate\(model, \*\*inputs, streamer"):
        llama.generate(ids, custom_generate=GEM, max_new_tokens=2, streamer=Heard())


def test_embeddings_for_a_custom_loop_are_refused_by_name(llama, ids):
    embedded = llama.get_input_embeddings()(ids)
    for inputs in ({}, {"input_ids": ids}):
        with pytest.raises(ValueError, match="do not pass inputs_embeds"):
            llama.generate(**inputs, inputs_embeds=embedded, custom_generate=GEM, max_new_tokens=2)


@pytest.mark.parametrize("gem", [GEM, CUT], ids=["whole", "chunks"])
def test_lengths_hold_wherever_they_stand(llama, ids, gem):
    """As in plain generation, a configuration that is passed is filled up from the model's own."""
    end = int(gem.generate(llama, ids, max_new_tokens=4, do_sample=False)[0, 63])
    config = transformers.GenerationConfig(do_sample=False)
    llama.generation_config.max_length = 66
    assert same_as_its_own(llama, gem, ids, generation_config=config).shape[1] == 66
    assert same_as_its_own(llama, gem, ids, generation_config=config, max_new_tokens=2).shape[1] == 62
    llama.generation_config.min_length = 62
    for length in ({"max_length": 72}, {"max_new_tokens": 12}):
        ended = same_as_its_own(llama, gem, ids, do_sample=False, eos_token_id=end, **length)
        assert ended.shape[1] == 64


def test_a_length_that_the_prompt_has_already_is_refused_in_its_own_numbers(llama, ids):
    with pytest.raises(ValueError, match=r"max_length counts the prompt, too: 50 leaves no room .* its 60 tokens"):
        GEM.generate(llama, ids, max_length=50)


class Heard(transformers.generation.streamers.BaseStreamer):
    """What a streamer is handed, and how often it is told the end."""

    def __init__(self):
        self.parts, self.ends = [], 0

    def put(self, value):
        self.parts.append(value.flatten().tolist())

    def end(self):
        self.ends += 1


@pytest.mark.parametrize("gem", [GEM, CUT], ids=["whole", "chunks"])
def test_a_streamer_is_handed_the_kept_tokens_and_then_each_new_one(llama, ids, gem):
    heard = Heard()
    made = gem.generate(llama, ids, max_new_tokens=5, do_sample=False, streamer=heard)
    assert heard.parts == [ids[0, gem.select(llama, ids).kept()].tolist(), *([new] for new in made[0, 60:].tolist())]
    assert len(heard.parts) == 6
    assert heard.ends == 1


def test_a_streamer_that_skips_the_prompt_prints_the_answer_alone(llama, ids, tokenizer, capsys):
    streamer = transformers.TextStreamer(tokenizer, skip_prompt=True)
    made = GEM.generate(llama, ids, max_new_tokens=5, do_sample=False, streamer=streamer)
    assert capsys.readouterr().out.strip() == tokenizer.decode(made[0, 60:].tolist()).strip()


def test_so_it_is_in_every_family(any_model, ids):
    for gem in (GEM, CUT):
        expected = gem.generate(any_model, ids, max_new_tokens=4, do_sample=False)
        assert torch.equal(any_model.generate(ids, custom_generate=gem, max_new_tokens=4, do_sample=False), expected)


def test_custom_generate_takes_padded_batches_and_the_callers_processors(llama, ids):
    batch = torch.cat([ids, torch.cat([torch.zeros(1, 9, dtype=torch.long), ids[:, 9:]], dim=1)])
    mask = torch.ones_like(batch)
    mask[1, :9] = 0
    seen = []

    class Watching(transformers.LogitsProcessor):
        def __call__(self, input_ids, scores):
            seen.append(input_ids.shape[1])
            return scores

    options = {"max_new_tokens": 4, "do_sample": False, "logits_processor": [Watching()]}
    options["logits_processor"] = transformers.LogitsProcessorList([Watching()])
    expected = GEM.generate(llama, batch, attention_mask=mask, **options)
    alone = seen.copy()
    seen.clear()
    made = llama.generate(batch, attention_mask=mask, custom_generate=GEM, **options)
    assert torch.equal(made, expected)
    assert seen == alone == [20, 21, 22, 23]  # the kept tokens, not the prompt
    options["stopping_criteria"] = transformers.StoppingCriteriaList([lambda i, _: torch.full((2,), i.shape[1] > 21)])
    made = llama.generate(batch, attention_mask=mask, custom_generate=GEM, **options)
    assert made.shape == (2, 62)
    assert torch.equal(made, GEM.generate(llama, batch, attention_mask=mask, **options))


def test_custom_generate_is_random_only_where_sampling_is(llama, ids):
    options = {"max_new_tokens": 6, "do_sample": True, "temperature": 2.0, "top_k": 20}
    made = []
    for generate in (
        lambda: GEM.generate(llama, ids, **options),
        lambda: llama.generate(ids, custom_generate=GEM, **options),
    ):
        torch.manual_seed(3)
        made.append(generate())
    assert torch.equal(*made)


def test_what_custom_generate_cannot_know_is_refused(llama, ids):
    with pytest.raises(ValueError, match=r"use gem\.resolved\(model, tokenizer\)"):
        llama.generate(ids, custom_generate=GemFilter(layer="auto", keep=8), max_new_tokens=2)
    cache = llama(ids[:, :5], use_cache=True).past_key_values
    with pytest.raises(ValueError, match="do not pass past_key_values"):
        llama.generate(ids, past_key_values=cache, custom_generate=GEM, max_new_tokens=2)
    shifted = torch.arange(5, 65)[None]
    with pytest.raises(ValueError, match="do not pass position_ids"):
        llama.generate(ids, position_ids=shifted, custom_generate=GEM, max_new_tokens=2)


@pytest.mark.parametrize("name", ["pixel_values", "position_ids", "input_features", "cache_position"])
def test_inputs_beyond_tokens_are_refused(llama, ids, name):
    extra = {name: torch.ones(1, 60)}
    for run in (
        lambda: GEM.generate(llama, ids, **extra),
        lambda: GEM.generate(llama, {"input_ids": ids, **extra}),
        lambda: GEM.select(llama, {"input_ids": ids, **extra}),
        lambda: GEM.select(llama, ids, **extra),
    ):
        with pytest.raises(ValueError, match=f"do not pass {name}"):
            run()


@pytest.mark.parametrize("extra", [{"image_sizes": [[1, 2]]}, {"max_new_tokens": 8}], ids=["sizes", "an option"])
def test_a_selection_loses_no_words(llama, ids, extra):
    """Generation refuses what it does not know, and takes what no selection does."""
    name = next(iter(extra))
    for run in (
        lambda: GEM.select(llama, ids, **extra),
        lambda: GEM.select(llama, {"input_ids": ids, **extra}),
        lambda: share_prefill(llama, {"input_ids": ids, **extra}, [FullAttention()]),
    ):
        with pytest.raises(ValueError, match=f"read as tokens alone, and {name} would be lost"):
            run()
    nothing = {"image_sizes": None, "token_type_ids": [[0] * 60]}
    assert GEM.select(llama, ids, **nothing).kept() == GEM.select(llama, ids).kept()


def test_images_are_refused_where_generation_has_encoded_them(ids):
    """A custom loop is handed what the vision tower made of them."""
    sizes = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2)
    text = {"model_type": "llama", "vocab_size": 97, **sizes}
    vision = {"model_type": "clip_vision_model", "image_size": 14, "patch_size": 7, **sizes}
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_index=96)
    model, gem = transformers.LlavaForConditionalGeneration(config).eval(), GemFilter(layer=1, keep=20)
    ids = ids.clamp_max(90)
    same_as_its_own(model, gem, ids, max_new_tokens=3, do_sample=False)
    ids[0, 5:9] = 96
    seen = {"pixel_values": torch.ones(1, 3, 14, 14), "max_new_tokens": 3}
    assert model.generate(ids, **seen).shape == (1, 63)
    for generate in (
        lambda: gem.generate(model, ids, **seen),
        lambda: model.generate(ids, custom_generate=gem, **seen),
    ):
        with pytest.raises(ValueError, match="do not pass pixel_values"):
            generate()


@pytest.mark.parametrize("prompt", ["hello", ["hello"], [[3, 4, 5], [3, 4]]])
def test_what_is_no_table_of_numbers_is_told_what_to_do(llama, prompt):
    with pytest.raises(ValueError, match="give a text to the tokenizer first, and pad prompts of several lengths"):
        GEM.generate(llama, prompt)


def test_two_prompts_in_one_call_are_refused(llama, ids):
    with pytest.raises(ValueError, match="input_ids came twice"):
        GEM.generate(llama, ids, input_ids=ids[:, :9])


def test_types_of_tokens_are_left_out_where_they_say_nothing(llama, ids):
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    expected = GEM.generate(llama, ids, max_new_tokens=3, do_sample=False)
    assert torch.equal(GEM.generate(llama, inputs, max_new_tokens=3, do_sample=False), expected)
    assert GEM.select(llama, inputs).kept() == GEM.select(llama, ids).kept()
    with pytest.raises(ValueError, match="do not pass token_type_ids"):
        GEM.generate(llama, {**inputs, "token_type_ids": torch.ones_like(ids)})


def test_a_cache_that_belongs_to_other_tokens_is_withheld(llama, ids):
    options = {"max_new_tokens": 4, "do_sample": False, "return_dict_in_generate": True, "output_logits": True}
    made = GEM.generate(llama, ids, **options)
    assert made.sequences.shape == (1, 64)
    assert made.past_key_values is None
    assert "past_key_values" not in made
    assert made.kept_cache.get_seq_length() == 23
    assert len(made.logits) == 4
    whole = GemFilter(layer=2, keep=60).generate(llama, ids, **options)
    assert whole.past_key_values.get_seq_length() == 63
    more = llama.generate(whole.sequences, past_key_values=whole.past_key_values, max_new_tokens=2, do_sample=False)
    assert torch.equal(more, llama.generate(ids, max_new_tokens=6, do_sample=False))
    custom = llama.generate(ids, custom_generate=GEM, **options)
    assert torch.equal(custom.sequences, made.sequences)
    assert custom.past_key_values is None


def test_a_filter_without_a_head_says_that_it_cannot_answer(llama, ids):
    with pytest.raises(ValueError, match="LlamaModel has no head and cannot answer"):
        GEM.generate(llama.model, ids, max_new_tokens=2)


@pytest.mark.parametrize("length", [{"max_new_tokens": 4}, {"max_length": 304}], ids=["new", "length"])
def test_kept_tokens_that_leave_the_answer_no_room_in_the_context_are_told_of(make_model, ids, length):
    model, long, options = make_model("Llama", max_position_embeddings=64), ids.repeat(1, 5), {"do_sample": False}
    for keep, kept in ((0.5, 150), (62, 62)):
        gem = GemFilter(layer=2, keep=keep, chunk=20, tail=8)
        said = f"^{kept} kept tokens and 4 new ones exceed the 64 that the model was trained for: a smaller keep"
        with pytest.warns(UserWarning, match=said):
            gem.generate(model, long, **length, **options)
        with pytest.warns(UserWarning, match=said):
            model.generate(long, custom_generate=gem, **length, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GemFilter(layer=2, keep=0.5, chunk=20, tail=8).select(model, long)  # its tokens may go to another model
        GemFilter(layer=2, keep=60, chunk=20, tail=8).generate(model, long, **length, **options)


def test_an_answer_of_unknown_length_counts_for_nothing(make_model):
    model = make_model("Llama", max_position_embeddings=64)
    assert no_room(model, 64, 0) is None
    assert no_room(model, 1125, 0).startswith("1,125 kept tokens exceed the 64 that the model was trained for")
