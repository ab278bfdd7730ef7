"""The claims on the shape of attention heads (C5), and a control."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from ..grokking.arms import STRONG, Params
from ..grokking.claims import where_generalised
from ..params import about
from .arms import part

GROKKED = about(STRONG, layers=1, terms=2, decay=1)


def _share(m: Measurements[Params], name: str, setting: str = STRONG, arm: str = "grokking") -> Values:
    """The share of the two strongest modes of the median head."""
    return m.final(f"top2_{name}", arm=arm, setting=setting)


def _gain(m: Measurements[Params], setting: str, arm: str = "grokking") -> Values:
    ratio = _share(m, "trained", setting, arm) / _share(m, "untrained", setting, arm)
    return ratio.named("share of 2 modes, trained/untrained")


@part.claim(
    "C5a",
    "One-layer transformers that grokked sums of 2 numbers mod p (decay 1) have periodic heads: two modes carry at "
    "least 4 times the untrained share.",
    source="Figure 4.3, against the untrained head; share of its power, median over heads; a run that never "
    "generalises (validation accuracy 0.99) counts against it",
    headline=True,
    **GROKKED,
)
def periodic(m: Measurements[Params]) -> Judgement:
    return where_generalised(m, _gain(m, STRONG), STRONG).at_least(4)


@part.claims_over(
    {
        "C5b": {"k": 2, "figure": "4.3", **about("sum-of-2", layers=1, terms=2, decay=1e-3)},
        "C5c": {"k": 3, "figure": "C.5", **about("sum-of-3", layers=1, terms=3, decay=1e-3)},
        "C5d": {"k": 4, "figure": "4.3", **about("sum-of-4", layers=1, terms=4, decay=1e-3)},
    },
    statement="One-layer transformers adding {k} numbers mod p with the source's weight decay 0.001 have periodic "
    "heads: two modes carry at least 4 times the untrained share.",
    source="Figure {figure}",
)
def periodic_with_listed_decay(m: Measurements[Params], *, setting: str) -> Judgement:
    return _gain(m, setting).at_least(4)


@part.claim(
    "C5e",
    "Heads of one-layer transformers that grokked sums of 2 numbers mod p (decay 1) are two superposed cosines: two "
    "modes carry at least half of the power.",
    source="Introduction of chapter 4, Figure 4.3; a run that never generalises counts against it",
    **GROKKED,
)
def two_cosines(m: Measurements[Params]) -> Judgement:
    return where_generalised(m, _share(m, "trained"), STRONG).named("share of 2 modes").at_least(0.5)


@part.claim(
    "C5f",
    "Trained key and query weights make heads more periodic (sums of 2 numbers mod p, decay 1): with untrained ones, "
    "two modes carry a smaller share.",
    source="Figure 4.3 reads W^{KQ}, here under the trained embeddings; at one layer no number is ever a query",
    **GROKKED,
)
def keys_and_queries(m: Measurements[Params]) -> Judgement:
    ratio = _share(m, "trained") / _share(m, "embedding")
    return ratio.named("share of 2 modes, all trained/embeddings alone").above(1)


def _size(setting: str, k: int, p: int, decay: float) -> dict[str, object]:
    """The words and the domain of a claim at one of the source's sizes."""
    domain = about(setting, terms=k, modulus=p, layers=1, heads=160, decay=decay)
    return {"k": k, "p": p, "decay": decay, **domain}


@part.claims_over(
    {
        "C5g": {"figure": "C.5", **_size("heads-3", 3, 61, 1e-3)},
        "C5h": {"figure": "4.3", **_size("heads-4", 4, 31, 1e-3)},
        "C5i": {"figure": "C.6", **_size("heads-5", 5, 17, 1e-3)},
        "C5j": {"figure": "C.5", **_size("heads-3-strong", 3, 61, 1.0)},
    },
    statement="One-layer transformers of 160 heads adding {k} numbers mod {p} (decay {decay:g}) have periodic heads: "
    "two modes carry at least 4 times the untrained share.",
    source="Figure {figure}",
)
def periodic_at_size(m: Measurements[Params], *, setting: str) -> Judgement:
    return _gain(m, setting, "attention").at_least(4)


@part.claim(
    "N6",
    "With number tokens in a random order, heads of one-layer transformers that grokked sums of 2 numbers mod p "
    "(decay 1) are not periodic: two modes carry less than 4 times the untrained share.",
    source="Control: the cycle; a run that never generalises counts against it",
    **GROKKED,
)
def random_order(m: Measurements[Params]) -> Judgement:
    ratio = _share(m, "shuffled") / _share(m, "untrained")
    return where_generalised(m, ratio, STRONG).named("share of 2 modes, shuffled/untrained").below(4)
