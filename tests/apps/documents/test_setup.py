"""The layer that is measured where none is known: its choice, and whether it can be trusted."""

import pytest

pytest.importorskip("transformers", reason="documents are read by language models, of the extra llm")

from assay.apps.documents import setup
from assay.methods.gemfilter.choice import LayerChoice


def choice(calibrated, worst):
    made = {"layer": 1, "rule": "window", "keep": 256, "length": 2048, "layers": 3, "reliability": 0.9}
    made |= {"held_out_recall": 0.95, "held_out_coverage": 0.9, "worst": worst, "worst_kind": "passcode"}
    return LayerChoice(**made, calibrated=calibrated, prompts=9, passes=1.0, recall={}, kinds={})


@pytest.mark.parametrize(
    ("calibrated", "worst", "begin"),
    [
        (True, 0.9, "layer 1 of 0 to 2"),
        (True, 0.89, "not reliable: layer 1 of 0 to 2"),
        (False, 0.5, "not reliable: no layer kept 90%"),
    ],
)
def test_a_measured_layer_is_told_with_how_far_it_can_be_trusted(folder, monkeypatch, calibrated, worst, begin):
    monkeypatch.setattr(setup, "choose_filter_layer", lambda *_, **__: choice(calibrated, worst))
    said = []
    _, chosen = setup.filter_of(str(folder), layer="auto", device="cpu", tell=said.append)
    assert chosen.layer == 1
    (told,) = (line for line in said if not line.startswith("loading "))
    assert told.startswith(begin)
    assert f"{worst:.0%} at worst (passcode)" in told
