"""The arm on a real model, on a small random one: what it measures per prompt does not depend on company."""

import pytest
import torch

pytest.importorskip("transformers", reason="the study's models need the extra llm")

from assay.methods.gemfilter import GemFilter
from assay.networks import load_model
from assay.studies.gemfilter.learners import Row
from assay.studies.gemfilter.needles.learners import Trial, needle_trial, prompt_of

DEPTHS = (0.0, 0.5, 1.0)
TRIAL = Trial(layer=1, rule="window", text_layer=2, layers=(0, 2), new=4)


@pytest.fixture(scope="module")
def loaded(folder):
    """In float64: of the two hundred selections here the closest lets a score in by 4e-7 of the largest, which a prompt
    read alone and in a batch of three could settle differently in float32."""
    made = load_model(str(folder), device="cpu")
    made.model.double()
    return made


@pytest.fixture(scope="module")
def together(loaded):
    return needle_trial(loaded, [3, 4, 5], 200, DEPTHS, TRIAL)


def test_a_seed_measures_the_same_alone_and_in_company(loaded, together):
    for place, seed in enumerate((3, 4, 5)):
        ((rows, selected),) = needle_trial(loaded, [seed], 200, DEPTHS, TRIAL)
        assert rows == together[place][0]
        assert torch.equal(selected.kept, together[place][1].kept)
        assert torch.equal(selected.heads, together[place][1].heads)


def test_seeds_take_the_depths_in_turn(together):
    assert [rows[0] for rows, _ in together] == [Row({}, {"depth": depth}) for depth in DEPTHS]


def test_selections_are_those_of_the_filter_itself(loaded, together):
    ids = torch.tensor([prompt_of(loaded, 4, 200, DEPTHS).input_ids])
    alone = GemFilter(layer=1, keep=25, rule="window").select(loaded.model, ids).indices[0]
    assert torch.equal(together[1][1].kept, alone)


def test_ablations_are_asked_for_with_layers(loaded):
    ((rows, _),) = needle_trial(loaded, [0], 200, DEPTHS, Trial(1, "window", 2, (), 2))
    answered = [row for row in rows if "accuracy" in row.metrics]
    assert answered
    assert all(set(row.columns) == {"method"} and row.trials == 1 for row in answered)


def test_a_plain_prompt_hides_the_same_fact_without_the_template(loaded):
    loaded.tokenizer.chat_template = "{{ messages[0]['content'] }} now: "
    try:
        plain, chat = (prompt_of(loaded, 4, 200, DEPTHS, chat=chat) for chat in (False, True))
    finally:
        loaded.tokenizer.chat_template = None
    assert (plain.chat, chat.chat) == (False, True)
    assert plain.needle == chat.needle
    assert len(plain.input_ids) == len(chat.input_ids) == 200
    assert plain.input_ids != chat.input_ids
