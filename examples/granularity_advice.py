"""How often is the advice on finer labels right? Its words beside the gain that was then measured, over seeds.

Run: python examples/granularity_advice.py                        (digits, three seeds)
Run: python examples/granularity_advice.py mnist fashion_mnist cifar10 ag_news sst2     (from $ASSAY_DATA, five seeds)
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from assay.data.images import load_images
from assay.data.text import load_text
from assay.methods import (
    FineToCoarse,
    LabelHierarchy,
    Stage,
    clusters_of_all,
    clusters_per_superclass,
    granularity_report,
    random_ids,
)
from assay.networks import load_encoder
from assay.probes import mean_interval

GROUPS = {"cifar10": (2, 3, 4, 5, 6, 7), "fashion_mnist": (0, 2, 3, 4, 6), "ag_news": (0, 1), "sst2": (1,)}
SHARES = {"train": 0.35, "validation": 0.2, "test": 0.45}
HITS = {"unlikely": ("undecided", "below"), "harmful": ("below",)}


def embedded(texts: list[str]) -> Tensor:
    """Mean token states of MiniLM, of unit length."""
    loaded, parts = load_encoder("minilm"), []
    for start in range(0, len(texts), 64):
        batch = loaded.tokenizer(
            texts[start : start + 64], padding=True, truncation=True, max_length=48, return_tensors="pt"
        )
        with torch.no_grad():
            states, mask = loaded.model(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
        parts.append(nn.functional.normalize((states * mask).sum(1) / mask.sum(1)))
    return 10 * torch.cat(parts)


def samples(name: str, limit: int) -> tuple[Tensor, Tensor]:
    """Vectors and classes of a set: small pixels, or sentence embeddings."""
    if name in ("ag_news", "sst2"):
        texts = load_text(name, limit=limit)
        return embedded(list(texts.texts)), texts.labels
    images = load_images(name, limit=limit)
    pixels = avg_pool2d(images.images, 2) if images.images.shape[-1] > 8 else images.images
    flat = pixels.flatten(1)
    return (flat - flat.mean(0)) / flat.std(), images.labels


def hierarchies(inputs: Tensor, classes: Tensor, coarse: Tensor, seed: int) -> dict[str, LabelHierarchy]:
    draw = torch.Generator().manual_seed(seed)
    found = {
        "4 clusters per superclass": clusters_per_superclass(inputs, coarse, 4, seed=seed),
        "16 clusters per superclass": clusters_per_superclass(inputs, coarse, 16, seed=seed),
        "8 clusters of all": clusters_of_all(inputs, coarse, 8, seed=seed),
        "4 random per superclass": random_ids(coarse, 4, generator=draw, within=True),
        "8 random": random_ids(coarse, 8, generator=draw),
    }
    own = {"classes": LabelHierarchy("classes", classes, coarse, aligned=True)}
    return found if torch.equal(classes, coarse) else own | found


def judged(name: str, inputs: Tensor, labels: Tensor, readout: str, seeds: int) -> list[dict[str, object]]:
    """For every kind of labels the advice, most frequent over seeds, and the gain over retraining with its interval."""
    group = torch.tensor(GROUPS.get(name, range(5, 10)))
    wanted = torch.isin(labels, group).long()
    stages = Stage(epochs=8, batch=64, rate=0.05), Stage(epochs=5, batch=32, rate=0.02)
    method = FineToCoarse(*stages, readout, rates=(0.5, 2.0))
    gains: dict[str, list[float]] = {}
    words: dict[str, list[str]] = {}
    for seed in range(seeds):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
        cuts = [round(share * len(order)) for share in SHARES.values()]
        parts = dict(zip(SHARES, order.split([cuts[0], cuts[1], len(order) - cuts[0] - cuts[1]]), strict=True))
        train = parts["train"]
        held = {each: (inputs[parts[each]], wanted[parts[each]]) for each in ("validation", "test")}
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(inputs.shape[1], 128), nn.ReLU(), nn.Linear(128, 2))
        coarse = LabelHierarchy("coarse", wanted[train], wanted[train])
        base = method.transfer(model, inputs[train], coarse, **held, seed=seed).accuracy
        for kind, each in hierarchies(inputs[train], labels[train], wanted[train], seed).items():
            words.setdefault(kind, []).append(granularity_report(each, inputs[train]).advice)
            found = method.transfer(model, inputs[train], each, **held, seed=seed)
            gains.setdefault(kind, []).append(found.accuracy - base)
    rows = []
    for kind, values in gains.items():
        at, advice = mean_interval(values), max(set(words[kind]), key=words[kind].count)
        hit = at.compared() in HITS[advice] if advice in HITS else None
        told = {"advice": advice, "gain": str(at), "measured": at.compared(), "hit": hit}
        rows.append({"set": name, "read-out": readout, "labels": kind, **told})
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    names = sys.argv[1:]
    for name in names or ["digits"]:
        data = samples(name, 1600 if names else 600)
        for readout in ("finetune", "probe"):
            for row in judged(name, *data, readout, 5 if names else 3):
                widths = zip(row.values(), (14, 9, 27, 9, 26, 10, 5), strict=True)
                print("  ".join(str(value).ljust(width) for value, width in widths), flush=True)
