from __future__ import annotations

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="GemFilter needs the extra llm")

FAMILIES = {
    "Llama": {},
    "Mistral": {"head_dim": 12, "sliding_window": None},
    "Qwen2": {},
    "Qwen3": {"head_dim": 16},
    "Phi3": {"partial_rotary_factor": 0.5},
}


def tiny_model(family: str = "Llama", attention: str = "sdpa", seed: int = 0, **changes: object):
    """A random decoder of five layers with grouped heads; large weights, so that attention is not flat."""
    torch.manual_seed(seed)
    sizes = dict(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=5, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        initializer_range=0.15,
    )  # fmt: skip
    config = getattr(transformers, f"{family}Config")(**{**sizes, **FAMILIES[family], **changes})
    config._attn_implementation = attention
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    model.generation_config.eos_token_id = None
    return model


@pytest.fixture
def make_model():
    return tiny_model


@pytest.fixture(params=[(family, attention) for family in FAMILIES for attention in ("eager", "sdpa")], ids="-".join)
def any_model(request):
    return tiny_model(*request.param)


@pytest.fixture
def llama():
    return tiny_model()


@pytest.fixture
def ids():
    return torch.randint(3, 97, (1, 60), generator=torch.Generator().manual_seed(5))


class Letters:
    """A tokenizer that needs no file: one token per word, with its blank, and per line break or full stop."""

    chat_template = None
    name_or_path = "letters"

    def __init__(self, size: int = 97) -> None:
        self.words: list[str] = []
        self.size = size

    def __len__(self) -> int:
        return 10**9

    def __call__(self, text, add_special_tokens=True, **_):
        import re

        pieces = re.findall(r"\n|\.| ?[^\s.]+| ", text)
        return {"input_ids": [self.number(piece) for piece in pieces]}

    def number(self, word: str) -> int:
        if word not in self.words:
            self.words.append(word)
        return 3 + self.words.index(word)  # 0 to 2 are the models' special tokens

    def decode(self, tokens, **_):
        known = dict(enumerate(self.words, start=3))
        return "".join(known.get(int(token), f" <{int(token)}>") for token in tokens)

    def apply_chat_template(self, turns, add_generation_prompt, tokenize):
        return f"<user>{turns[0]['content']}</user><model>"


@pytest.fixture
def tokenizer():
    return Letters()
