"""The nuclear-norm penalty in a Hugging Face Trainer: one callback. A tiny random model, no download.

Needs the extra llm (pip install 'assay-lab[llm]'). Run: python examples/nuclear_norm_trainer.py
"""

import importlib.util
import sys
import tempfile

import torch

from assay.methods import NuclearNorm, huggingface_callback

if missing := [name for name in ("transformers", "accelerate") if importlib.util.find_spec(name) is None]:
    print(f"This example needs {' and '.join(missing)}: install them with pip install 'assay-lab[llm]'.")
    sys.exit(0)

from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.set_num_threads(1)
torch.manual_seed(0)
sizes = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
model = BertForSequenceClassification(BertConfig(**sizes, num_labels=2))

# Does a word from the upper half of the vocabulary come first?
ids = torch.randint(1, 50, (512, 8))
data = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": (row[0] >= 25).long()} for row in ids]

callback = huggingface_callback(NuclearNorm(lam=0.05, warmup=20))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=80,
        per_device_train_batch_size=32,
        learning_rate=2e-3,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[callback])
    trainer.train()

for row in trainer.state.log_history:
    if "nuclear_penalty" in row:
        print({name: round(float(row[name]), 4) for name in ("step", "loss", "nuclear_penalty", "nuclear_stable_rank")})
print(callback.report())
