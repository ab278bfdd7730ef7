"""Every public name of the methods and probes is in a table of conformance, or on this list with the reason why not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from assay import methods, probes

FORMULA = "a formula of numbers: it sees no model and no data"
LABELS_ONLY = "made of labels alone, which are integers: nothing is computed on a model or on real numbers"
CALLBACK = "a callback that carries settings into somebody's trainer; test_trainer_callbacks and test_trackers run it"
DATA = "data that somebody hands over, checked when it is made"
EXEMPT = {
    "methods": {
        **dict.fromkeys(
            (
                "FeatureConstants",
                "contrastive_width",
                "cost_model",
                "domain_theory",
                "error_bound",
                "gradient_bound",
                "gradient_requirements",
                "growth_factors",
                "index_cost",
                "learnability_threshold",
                "learnable",
                "loss_floor",
                "max_margin",
                "neuron_sets",
                "predict_split_effect",
                "pruning_horizon",
                "required_loops",
                "required_width",
            ),
            FORMULA,
        ),
        **dict.fromkeys(
            ("LabelTree", "binary_by_ancestor", "one_per_sample", "random_ids", "tree_level"),
            LABELS_ONLY,
        ),
        **dict.fromkeys(("huggingface_callback", "huggingface_swad", "lightning_callback"), CALLBACK),
        "load_filter": "reads a part of a stored model from a folder; tests/methods/gemfilter/test_models runs it",
        "build_max_margin": "makes a network of exact weights from two integers",
    },
    "probes": {
        "grokking_delay": "reads a history of accuracies; that NaN reaches nothing is tested there",
        "mean_interval": "an interval of numbers; that NaN has none is tested there",
        "score_head_tail": "counts predictions, which are integers; head_tail_probe, which calls it, is in the table",
    },
}
TABLES = sorted(Path(__file__).parent.glob("test_conformance*.py"))


def called(room: str) -> set[str]:
    """The names that the tables use as ``methods.name`` or ``probes.name``."""
    nodes = [node for path in TABLES for node in ast.walk(ast.parse(path.read_text()))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    return {node.attr for node in attributes if node.value.id == room}


@pytest.mark.parametrize("room", [methods, probes], ids=["methods", "probes"])
def test_every_public_name_is_in_a_table_or_says_why_not(room):
    short = room.__name__.rpartition(".")[2]
    there, exempt = called(short), EXEMPT[short]
    assert sorted(set(room.__all__) - there - set(exempt)) == []
    assert sorted(set(exempt) & there) == [], "a name in a table needs no exemption"
    assert sorted(set(exempt) - set(room.__all__)) == [], "an exemption is for a public name"
    assert all(exempt.values()), "an exemption has its reason"
