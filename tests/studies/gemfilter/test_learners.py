"""What the parts share: one prefill for all methods, decoding from it, and what a selection holds."""

import pytest
import torch

pytest.importorskip("transformers", reason="the study's models are of a class of transformers")

from assay.methods.gemfilter import H2O, GemFilter, OneRun, SnapKV
from assay.studies.gemfilter.exact.learners import random_model
from assay.studies.gemfilter.learners import answers, blocks_touched, distance, random_positions, read, recall
from assay.studies.gemfilter.planted.problem import PlantedNeedle
from assay.studies.gemfilter.planted.theory import FOUND, LAYERS, hand_set_model


@pytest.mark.parametrize("hops", [1, 2], ids=["one-hop", "two-hop"])
def test_a_shared_prefill_gives_what_the_methods_give_alone(hops):
    task = PlantedNeedle(256, hops)
    model, prompts = hand_set_model(task), task.sample(0, (0.1, 0.5, 0.8), 3)
    chosen = GemFilter(layer=FOUND[task.hops][0], keep=32)
    seen = read(model, prompts.ids, {"ours": chosen}, chosen)
    assert torch.equal(seen.kept["ours"], chosen.select(model, prompts.ids).indices)
    assert seen.index_sets.shape == (len(prompts), LAYERS * 4, 32)
    made = answers(model, seen, {"one": seen.kept["ours"], "other": seen.kept["ours"]}, 2)
    assert torch.equal(made["full"], prompts.answer)
    alone = {"one": chosen, "other": chosen}
    alone |= {m.name: m for m in (SnapKV(32, window=16), H2O(32, window=16), OneRun(chosen))}
    assert set(made) == {"full", *alone}
    for name, method in alone.items():
        expected = method.generate(model, prompts.ids, max_new_tokens=2, do_sample=False)[:, -2:]
        assert torch.equal(made[name], expected), name


def test_decoding_rows_from_their_own_positions_is_generation():
    """On a random model, where every position and every token counts, and with rows that end at different times."""
    model, new = random_model(3, attention="sdpa"), 8
    ids = torch.randint(3, 97, (2, 96), generator=torch.Generator().manual_seed(0))
    chosen = GemFilter(layer=3, keep=40)
    ends = answers(model, read(model, ids, {"ours": chosen}, chosen), {"ours": chosen.select(model, ids).indices}, new)
    model.generation_config.eos_token_id = [int(ends["ours"][0, 2]), int(ends["snapkv"][1, 4])]
    for row in (0, 1):
        one = ids[row : row + 1]
        seen = read(model, one, {"ours": chosen}, chosen)
        made = answers(model, seen, {"ours": seen.kept["ours"]}, new)
        for name, method in {"ours": chosen, "snapkv": SnapKV(40, window=20), "one-run": OneRun(chosen)}.items():
            expected = method.generate(model, one, max_new_tokens=new, do_sample=False)[:, 96:]
            assert torch.equal(made[name][:, : expected.shape[1]], expected), name
            assert (made[name][:, expected.shape[1] :] == expected[:, -1:]).all()


def test_recall_and_distance_by_hand():
    kept = torch.tensor([[1, 2, 9], [4, 5, 6]])
    assert recall(kept, [2, 3]).tolist() == [0.5, 0.0]
    assert distance(kept, [3, 4]).tolist() == [1.0, 0.0]
    drawn = random_positions(20, 6, torch.Generator().manual_seed(0), last=2)[0].tolist()
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 6
    assert drawn[-2:] == [18, 19]


def test_spread_counts_blocks():
    kept = torch.tensor([[0, 1, 2, 3], [0, 16, 32, 63]])
    assert blocks_touched(kept, 64).tolist() == [0.25, 1.0]
