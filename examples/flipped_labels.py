"""Does a language model follow the labels in its prompt? Ten lines, on a tiny random model that follows nothing.

With `load_model("smollm2")` or a hub name in place of the toy, and your own texts, it is the real test.
Run: python examples/flipped_labels.py
"""

import importlib.util

if importlib.util.find_spec("transformers") is None:
    raise SystemExit(print("this example needs transformers: pip install 'assay-lab[llm]'"))

from assay.methods import FlippedLabels
from assay.networks import toy_language_model
from assay.probes import attention_spans, distracted_prompts

texts = [f"a {word} film, number {i}" for i in range(40) for word in ("dull", "weak", "fine", "good")]
films = (texts, [0, 0, 1, 1] * 40)
words = ("negative", "positive")
prompts = distracted_prompts(films, words, count=12)
toy = toy_language_model([*texts, *(each.text for each in prompts), "negative. positive."])

print(FlippedLabels(words, queries=20, seeds=4).run(toy.model, toy.tokenizer, films))
print(attention_spans(toy.model, toy.tokenizer, prompts))
