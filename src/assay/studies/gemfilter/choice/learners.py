"""A real language model, and the filter layer and rule that tuning prompts choose for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from assay._extras import extra
from assay.evaluation.needles import NeedlePrompt
from assay.evaluation.prose import manual_text
from assay.methods.gemfilter import LayerChoice, choose_filter_layer
from assay.methods.gemfilter.calibration import calibration
from assay.methods.gemfilter.layers import filters_of, kept_by
from assay.networks.pretrained import Loaded, load_model
from assay.training.seeds import stream

from ..learners import Row

#: Prompts on which layers are chosen come from seeds that no evaluation uses.
TUNING_SEED = 9000
TINY = "tiny"


@lru_cache(maxsize=2)
def loaded_model(name: str, device: str) -> Loaded:
    """The model, read once per process and not once per unit; ``tiny`` is a random one, for trying an arm out."""
    return tiny_model(device) if name == TINY else load_model(name, device=device)


def tiny_model(device: str) -> Loaded:
    """A random Llama of three layers that reads bytes."""
    with extra("llm", "a random Llama"):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = ["<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    spelling = Tokenizer(models.BPE({letter: place for place, letter in enumerate(letters)}, []))
    spelling.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelling.decoder = decoders.ByteLevel()
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    more = {"num_key_value_heads": 2, "max_position_embeddings": 8192, "initializer_range": 0.15}
    config = LlamaConfig(vocab_size=len(letters), **sizes, **more, pad_token_id=0, bos_token_id=1, eos_token_id=None)
    model = LlamaForCausalLM(config).eval()
    draw = stream(0, "tiny model")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(0.15 * torch.randn(parameter.shape, generator=draw))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=spelling, pad_token="<pad>")
    return Loaded(model.to(device), tokenizer, TINY)


def choice_rows(loaded: Loaded, seed: int, length: int, prompts: int) -> list[Row]:
    """The first layer that tuning prompts find reliable, as the source takes it, judged on other tuning prompts. Needle
    and text are those of the evaluation, and the same on every machine."""
    drawn: dict[str, Any] = {"texts": {"manual": manual_text()}, "needles": ("ingredient",), "seed": TUNING_SEED + seed}
    choice = choose_filter_layer(
        loaded.model,
        loaded.tokenizer,
        keep=length // 8,
        length=length,
        prompts=prompts,
        rules=("logits", "window"),
        place="first",
        remember=False,
        warn=False,
        **drawn,
    )
    held_out = calibration(loaded.tokenizer, length, prompts, **drawn).judging
    tokens, kept = tokens_kept(loaded.model, held_out, choice)
    rows: list[Row] = [
        Row({"rule": rule, "layer": layer}, {"tuning_recall": value})
        for rule, values in choice.recall.items()
        for layer, value in enumerate(values)
    ]
    return [
        *rows,
        Row({}, {"chosen_layer": float(choice.layer)}),
        Row({}, {"held_out_recall": kept / tokens}, trials=tokens),
        Row({}, {"chose_window": float(choice.rule == "window")}, trials=1),
        Row({}, {"held_out_coverage": choice.held_out_coverage}, trials=choice.prompts),
    ]


def tokens_kept(model: Any, prompts: Sequence[NeedlePrompt], choice: LayerChoice) -> tuple[int, int]:
    """The needles' tokens in some prompts, and how many of them the chosen layer and rule keep. The choice has the mean
    of the prompts' shares, which is no share of a number of tokens where needles differ in length."""
    chosen = filters_of(None, choice.keep, [choice.rule])
    shares = [float(kept_by(model, one, chosen, [choice.layer])[0]) for one in prompts]
    lengths = [len(one.needle_at) for one in prompts]
    return sum(lengths), sum(round(share * length) for share, length in zip(shares, lengths, strict=True))
