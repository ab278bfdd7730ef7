"""Tables that name claims print the very numbers that the claims are judged by, on a small run of their arms."""

from __future__ import annotations

import math
import re

import pytest

from assay import lab

ARMS = {
    "imbalanced-contrastive": (
        "stage-one",
        "pair-moments",
        "logits",
        "loss-floor",
        "pseudo-loss",
        "gradient",
        "one-step",
    ),
    "label-granularity": ("initial", "first-step"),
    "meta-split": ("stages", "control", "engines"),
    "nuclear-norm": ("decayed", "supports", "vanishing", "penalised-outside", "rank-one"),
    "universality-tradeoff": ("program", "equal-optima", "linear-cka"),
}
TABLES = {
    "imbalanced-contrastive": ("stage-one", "loss-identities", "gradient"),
    "label-granularity": ("first-updates",),
    "meta-split": ("race", "controls"),
    "nuclear-norm": ("optima-bounds", "rank-one"),
    "universality-tradeoff": ("program", "single-tasks"),
}

LONGER = {"meta-split": {"steps": 400}}  # at smoke size no feature ends its first stage in 40 steps


@pytest.fixture(scope="module", params=list(ARMS))
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("claim tables")
    name = request.param
    return lab.run(name, preset="smoke", set=LONGER.get(name), arms=ARMS[name], jobs=1, runs=folder)


def test_tables_print_what_their_claims_are_judged_by(run):
    for name in TABLES[run.study.name]:
        cells: dict[str, str] = {}
        for row in run.table(name).iter_rows(named=True):
            cells[row["claim"]] = f"{cells.get(row['claim'], '')} {row['measured']}"
        cells.pop("", None)  # a row beside the claims'
        assert set(cells) == set(run.study.tables[name].shows), name
        for claim, cell in cells.items():
            judged = run.study.claims[claim].judge(run.results)
            if math.isnan(judged.estimate):
                assert cell.strip() == "no finite value", claim
                continue
            printed = [float(number) for number in re.findall(r"-?[\d.]+(?:e[-+]\d+)?", cell)]
            assert any(number == pytest.approx(judged.estimate, rel=1e-3, abs=1e-12) for number in printed), (
                f"{claim} in {name}: {judged.estimate} is not in {cell}"
            )
