"""A language model of a moment: tiny, random, with a tokenizer that knows the words of given texts. It shows how a
method is called, and tests run on it; it knows nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from assay._extras import extra
from assay.networks.pretrained import Loaded


def toy_language_model(texts: Iterable[str], *, seed: int = 0, **sizes: Any) -> Loaded:
    """A random Llama of two layers and a tokenizer whose tokens are the words of ``texts``, each with the blank before
    it, and single marks. ``sizes`` change the configuration (``hidden_size=64``, ...). The global generator is left as
    it was."""
    with extra("llm", "a language model"):
        import transformers
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n| ?\w+| ?[^\w\s]|\s"), "isolated")
    words.decoder = decoders.Fuse()
    words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["<unk>", "<s>", "</s>"]))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    config = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "initializer_range": 0.2,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **sizes,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    return Loaded(model.eval(), tokenizer, "toy")
