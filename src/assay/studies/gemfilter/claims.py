"""The claims of the source on exact arms: costs, small random models, and the hand-set model on planted needles."""

from __future__ import annotations

from scipy import stats

from assay.lab import Measurements, Values, combine, pick

from . import model_claims, theory  # noqa: F401 (the claims on a real model register themselves)
from .hand_set import FOUND, LAYERS
from .problem import TASKS
from .study import DEPTHS, study

HARD = "two-hop"


def planted(m: Measurements, metric: str, *, task: str = HARD, length: int | None = None, **where) -> Values:
    """One value per seed from the planted needles, at the first length unless another is asked for."""
    return m.final(metric, arm="planted", task=task, length=length or m.params.lengths[0], **where)


def found_layer(task: str = HARD) -> int:
    return FOUND[TASKS[task]][0]


@study.claim("C1a", "planted, two hops: the last row of a layer before the last covers the value",
             source="Figures 9.2 and 9.5")  # fmt: skip
def value_is_found(m):
    return planted(m, "coverage", layer=found_layer()).at_least(0.95)


@study.claim("C1b", "planted, two hops: the first layer covers the value no better than twice by chance, 2k/n",
             source="Figure 9.5")  # fmt: skip
def first_layer_does_not(m):
    return planted(m, "coverage", layer=0).at_most(0.25)


@study.claim("C2a", "planted: GemFilter answers as often as full attention", source="Figure 9.4")
def keeps_accuracy(m):
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="full")
    return gap.at_least(-0.02)


@study.claim("C2b", "planted: and on the longest prompts", source="Figure 9.4")
def keeps_accuracy_when_long(m):
    n = max(m.params.lengths)
    ours, full = (planted(m, "accuracy", length=n, method=method) for method in ("gemfilter", "full"))
    return (ours - full).at_least(0)


@study.claim("C2c", "planted, two hops: GemFilter answers more often than SnapKV at the same budget",
             source="Figure 9.4")  # fmt: skip
def better_than_snapkv(m):
    return (planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="snapkv")).above(0)


@study.claim("C3a", "the matrix operations that torch counts in both prefills are those of the cost model",
             source="Table of complexities, Section 9.4")  # fmt: skip
def operations_counted(m):
    return m.every("operations_apart", arm="exact").at_most(0, tolerance=1e-3)


@study.claim("C3b", "the bytes of every real cache are 2·m·H_kv·d·L·bytes", source="Section 9.4")
def cache_is_counted(m):
    return m.every("cache_apart", arm="exact").between(0, 0)


@study.claim("C3c", "pass 1 runs exactly r whole layers, and no MLP from layer r on", source="Algorithm 1")
def layers_are_counted(m):
    return m.every("layers_wrong", arm="exact").between(0, 0)


@study.claim("C3d", "prefill operations fall by m/r and never by more: 2.46, 2.11 and 1.68 for the three models",
             source="Figure 9.3", printed="2.4 times faster for all three models", paper=2.4)  # fmt: skip
def speed_up_has_a_ceiling(m):
    return m.every("share_of_ceiling", arm="cost").between(0.95, 1)


def bytes_ratios(m: Measurements, ours: str, theirs: str) -> list[Values]:
    """Prefill bytes of one method over another's, for each of the source's models."""
    n = theory.longest_read(m.params.cost_lengths)
    found = []
    for model in theory.MODELS:
        one, other = (m.final("prefill_bytes", arm="cost", model=model, length=n, method=x) for x in (ours, theirs))
        found.append((one / other).named(f"prefill bytes of {ours} over {theirs}, {model}"))
    return found


IN_CONTEXT = {"a prompt length within 128k tokens": lambda p: min(p.cost_lengths) <= theory.CONTEXT}


@study.claim("C3e", "prefill memory at 120k tokens, largest of the three models: with its own layers alone GemFilter "
             "takes at most 70 % of SnapKV's (weights and caches)", source="Figure 9.3", when=IN_CONTEXT,
             printed="30 % less than SnapKV, whichever layers are loaded", paper=0.70)  # fmt: skip
def memory_falls(m):
    return pick(max, bytes_ratios(m, "filter only", "snapkv")).at_most(0.7)


@study.claim("C3f", "with the whole model loaded the saving against SnapKV is below 10 % for all three models (weights "
             "and caches; activations can be cut for both)",
             source="Figure 9.3", when=IN_CONTEXT, printed="30 % less GPU memory than SnapKV", paper=0.70)  # fmt: skip
def resident_memory_hardly_falls(m):
    return pick(min, bytes_ratios(m, "gemfilter", "snapkv")).between(0.9, 1)


@study.claim("C3h", "prefill memory at 120k tokens, largest of the three models: with its own layers alone GemFilter "
             "takes at most 30 % of full attention's (weights and caches)", source="Figure 9.3", when=IN_CONTEXT,
             printed="prefill memory mw + 2mhd: an n is missing", paper=0.30)  # fmt: skip
def memory_falls_from_full(m):
    return pick(max, bytes_ratios(m, "filter only", "full")).at_most(0.3)


@study.claim("C3g", "decoding reaches position k + t with GemFilter and n + t with compressed caches",
             source="Section 9.3")  # fmt: skip
def positions_are_counted(m):
    return m.every("position_apart", arm="exact").between(0, 0)


@study.claim("C4a", "planted, two hops: the first layer that covers the value is the same for nine prompts in ten "
             "(depth 1 aside: the last tokens are kept by every layer)",
             source="Figure 9.5", printed="min(topk_index − needle_index), without the absolute value")  # fmt: skip
def first_layer_is_consistent(m):
    return planted(m, "first_layer_share").at_least(0.9)


@study.claim("C4b", "planted, two hops: the found layer answers more often than the first by 0.3",
             source="Table 9.2")  # fmt: skip
def found_beats_first(m):
    return (planted(m, "accuracy", layer=found_layer()) - planted(m, "accuracy", layer=0)).at_least(0.3)


@study.claim("C4c", "planted, two hops: the last layer no longer points at the value: worse by 0.3",
             source="Table 9.2")  # fmt: skip
def found_beats_last(m):
    return (planted(m, "accuracy", layer=found_layer()) - planted(m, "accuracy", layer=LAYERS - 1)).at_least(0.3)


@study.claim("C4d", "planted, two hops: over layers, accuracy follows coverage (rank correlation)", source="Table 9.2")
def accuracy_follows_coverage(m):
    layers = [planted(m, metric, layer=i) for metric in ("coverage", "accuracy") for i in range(LAYERS)]
    follows = combine(
        lambda v: stats.spearmanr(v[:LAYERS], v[LAYERS:]).statistic, layers, "rank correlation of accuracy and coverage"
    )
    return follows.above(0.8)


@study.claim("C5a", "planted, two hops: the last row answers more often than the middle row by 0.3",
             source="Figure G.3")  # fmt: skip
def last_beats_middle(m):
    return (planted(m, "accuracy", row="last") - planted(m, "accuracy", row="middle")).at_least(0.3)


@study.claim("C6a", "planted: one run and two answer alike", source="Figure G.4")
def one_run_is_alike(m):
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="one-run")
    return gap.between(-0.03, 0.03)


@study.claim("C7a", "GemFilter has one index set, SnapKV one per layer and key-value head, all different",
             source="Section 9.3", printed="m·h sets: the source's code repeats keys to all query heads")  # fmt: skip
def index_sets_are_counted(m):
    return m.every("sets_apart", arm="exact").between(0, 0)


@study.claim("C7b", "planted: an index set of GemFilter holds more of the needle than one of SnapKV",
             source="Figures G.5 to G.7")  # fmt: skip
def selection_holds_the_needle(m):
    ours, theirs = (planted(m, "needle_recall", method=method) for method in ("gemfilter", "snapkv"))
    return (ours - theirs).above(0)


@study.claim("N1", "a budget for the whole prompt gives the tokens of plain generation", source="control")
def whole_budget_changes_nothing(m):
    return m.every("tokens_apart", arm="exact").between(0, 0)


@study.claim("N2", "what is noted during a shared prefill is what the filter selects by itself", source="control")
def watched_is_selected(m):
    return m.every("watched_apart", arm="exact").between(0, 0)


@study.claim("N3", "planted: when the facts about the asked key are missing nothing is answered", source="control")
def absent_needle(m):
    return planted(m, "accuracy", method="absent").at_most(0.05)


@study.claim("N4", "planted: as many tokens at random, with the question, are not enough", source="control")
def random_tokens(m):
    return planted(m, "accuracy", method="random").at_most(0.25)


@study.claim("N5", "planted: the printed listing, which returns the first tokens for any scores, is not enough, even "
             "with the question's tokens given besides",
             source="Listing of Section 9.3", printed="indices of the sort of the top-k indices")  # fmt: skip
def printed_listing(m):
    return planted(m, "accuracy", method="listing").at_most(1 / len(DEPTHS) + 0.1)
