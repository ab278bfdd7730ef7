"""What tests of the command line and of studies share."""

import os

import pytest

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))


@pytest.fixture(autouse=True)
def _no_width_of_a_terminal(monkeypatch):
    """Whoever started the tests may have said how wide their terminal is; what is piped does not depend on it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # readline sets it behind Python's back, and processes that a test starts inherit it


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A model folder: a tiny random Llama and a word-level tokenizer."""
    import torch
    import transformers
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    from assay.methods.gemfilter.needles import _PLACES, _THINGS

    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|\.| ?[^\s.]+| "), "isolated")
    words.decoder = decoders.Fuse()
    extra = [f"{TEXT} The secret ingredient of the soup served in {place} is {thing}. What is\n served in {place}?"
             for place in _PLACES for thing in _THINGS]  # fmt: skip
    extra.append("Read this long text and answer the question at its end from what it says.\n\nQuestion: \nAnswer:")
    words.train_from_iterator(extra, trainers.WordLevelTrainer(special_tokens=["<unk>", "<bos>", "<eos>"]))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>")
    place = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=2,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    (place / "text.txt").write_text(TEXT)
    return place
