"""Which retriever cites the right file? Questions about this repository's guides, in other words than the guides' own.

    python tests/apps/documents/compare_retrievers.py bm25 minilm gemfilter [--use judged] [--save FILE.json]
    python tests/apps/documents/compare_retrievers.py --save FILE.json      # the table of what was saved

All have the same passages and the same budget of tokens. ``first`` is the share of questions whose best passage is from
a right file, ``kept`` the share with one among the passages that fit the budget, ``rank`` the mean of 1/rank of the
first right file (0 where none was kept). Shares have Clopper and Pearson's 95 % interval, means and paired differences
that of resampled questions. ``results/retrievers.json`` is what the guide shows."""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from pathlib import Path
from statistics import mean

from assay.apps.documents import RETRIEVERS, Document, Library, Text, chosen_passages
from assay.apps.documents.passages import pieces
from assay.apps.documents.setup import loaded_once, retriever_for
from assay.probes.intervals import clopper_pearson

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGES = "docs/methods"


def questions(use: str) -> list[dict]:
    return [row for row in json.loads((HERE / "questions.json").read_text()) if row["use"] == use]


def prose(library: Library) -> Library:
    """The pages without their code blocks."""
    made = {}
    for name, one in library.documents.items():
        text = re.sub(r"^```.*?^```\n", "", one.text.text, flags=re.M | re.S)
        cut = Text(text, "line", (0,), (1,))
        made[name] = Document(name, one.path, cut, pieces(cut))
    return Library(made, {}, library.roots)


def ranked_files(library: Library, scores: dict[str, list[float]], keep: int, count) -> list[str]:
    """Files of the passages that fit the budget, the best first, as they stand in the repository."""
    chosen = chosen_passages(library, scores, keep, count)
    names = dict.fromkeys(library.documents[one.document].path for one in chosen)
    return [path.relative_to(ROOT).as_posix() for path in names]


def rank_of(files: list[str], right: list[str]) -> int | None:
    return next((place for place, name in enumerate(files, start=1) if name in right), None)


def resampled(values: list[float], draws: int = 10_000) -> list[float]:
    """The 95 % interval of a mean over questions, by resampling them."""
    chance = random.Random(0)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(draws))
    return [round(means[int(share * draws)], 3) for share in (0.025, 0.975)]


def values_of(ranks: list[int | None]) -> dict[str, list[float]]:
    """Of every question: is the right file first, is it kept, and 1/rank."""
    return {
        "first": [float(rank == 1) for rank in ranks],
        "kept": [float(rank is not None) for rank in ranks],
        "rank": [1 / rank if rank else 0.0 for rank in ranks],
    }


def summary(ranks: list[int | None]) -> dict:
    made: dict = {"questions": len(ranks)}
    for name, values in values_of(ranks).items():
        made[name] = round(mean(values), 3)
        exact = [round(end, 3) for end in clopper_pearson(sum(values), len(values))]
        made[f"{name}_interval"] = resampled(values) if name == "rank" else exact
    return made


def differences(first: dict, second: dict) -> dict:
    """Of two retrievers on the questions that both were asked."""
    both = [question for question in first["ranks"] if question in second["ranks"]]
    ours, theirs = (values_of([one["ranks"][question] for question in both]) for one in (first, second))
    made = {}
    for name in ours:
        apart = [a - b for a, b in zip(ours[name], theirs[name], strict=True)]
        made[name] = [round(mean(apart), 3), *resampled(apart)]
    return made


def table(made: dict) -> str:
    """What was saved as the guide shows it."""
    lines = ["| retriever | first | kept | rank |", "| --- | --- | --- | --- |"]
    for name, one in made["retrievers"].items():
        cells = [f"{one[what]:.2f} {_ends(one[f'{what}_interval'])}" for what in ("first", "kept", "rank")]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    best, *others = made["retrievers"]
    for other in others:
        apart = differences(made["retrievers"][best], made["retrievers"][other]).values()
        cells = [f"{middle:+.2f} {_ends(ends)}".replace("-", "−") for middle, *ends in apart]
        lines.append(f"| `{best}` less `{other}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ends(ends: list[float]) -> str:
    return f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("retrievers", nargs="*", help="bm25, minilm, gemfilter")
    words.add_argument("--use", default="judged", choices=("judged", "tuning"))
    words.add_argument("--keep", type=int, default=1024)
    words.add_argument("--layer", default="auto")
    words.add_argument("--model", default="smollm2")
    words.add_argument("--save", type=Path)
    words.add_argument("--prose", action="store_true", help="the pages without their code blocks: half of the reading")
    words.add_argument("--minutes", type=float, default=1e9, help="stop after so many; the same command goes on")
    given, started = words.parse_args(), time.monotonic()
    if unknown := set(given.retrievers) - set(RETRIEVERS):
        words.error(f"no such retriever: {', '.join(unknown)}")
    library = Library.of([ROOT / PAGES])
    library = prose(library) if given.prose else library
    models = loaded_once("cpu", tell=print)
    tokenizer = models.tokenizer(given.model)

    def count(text: str) -> int:
        return len(tokenizer(text, verbose=False)["input_ids"])

    made: dict = {"keep": given.keep, "use": given.use, "documents": len(library.documents), "model": given.model}
    before = json.loads(given.save.read_text()) if given.save and given.save.exists() else {}
    made["retrievers"] = dict(before.get("retrievers", {}))
    for name in given.retrievers:
        options = {"layer": given.layer} if name == "gemfilter" else {}
        used = retriever_for(name, given.model, models, whole=None, tell=print, **options)
        begun = time.monotonic()
        used.prepare(library)
        noted = made["retrievers"].setdefault(name, {"ranks": {}, "seconds": []})
        noted.setdefault("seconds_to_prepare", round(time.monotonic() - begun, 1))
        for row in questions(given.use):
            if row["question"] in noted["ranks"]:
                continue
            if time.monotonic() - started > 60 * given.minutes:
                print("stopped by --minutes: the same command goes on")
                break
            begun = time.monotonic()
            files = ranked_files(library, used.scores(row["question"], library), given.keep, count)
            noted["ranks"][row["question"]] = rank_of(files, row["files"])
            noted["seconds"].append(round(time.monotonic() - begun, 2))
            print(f"{name}: {noted['ranks'][row['question']]} {row['files'][0]} {row['question']}", flush=True)
            made["retrievers"][name] = {**noted, **summary(list(noted["ranks"].values()))}
            if given.save:
                given.save.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(table(made))


if __name__ == "__main__":
    main()
