"""Mathematics on pages: formulas as MathML, powers and indices of sentences."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.report import formulas

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("2^{2k−2}(p−1) neurons", "2<sup>2k−2</sup>(p−1) neurons"),
        ("γ*‖θ_i‖^{k+1}", "γ*‖θ<sub>i</sub>‖<sup>k+1</sup>"),
        ("½C(D,k)^⅓ of them", "½C(D,k)<sup>⅓</sup> of them"),
        ("p_o(1 − 2^k)", "p<sub>o</sub>(1 − 2<sup>k</sup>)"),
        ("yΣ_r j_rσ(y)", "yΣ<sub>r</sub> j<sub>r</sub>σ(y)"),
        ("n^(−1/2), d^1.5, log(d)^0.1", "n<sup>−1/2</sup>, d<sup>1.5</sup>, log(d)<sup>0.1</sup>"),
        ("ℓ'_p and M*_j", "ℓ&#39;<sub>p</sub> and M*<sub>j</sub>"),
        ("weighted by norm^{k+1}", "weighted by norm<sup>k+1</sup>"),
        ("logit_masked, fashion_mnist and a_b_c", "logit_masked, fashion_mnist and a_b_c"),
        ("a <b> & c", "a &lt;b&gt; &amp; c"),
    ],
)
def test_sentences(text, made):
    assert formulas.marked(text) == made


@given(st.text())
def test_no_text_is_lost_or_becomes_markup(text):
    plain = formulas.marked(text).replace("<sub>", "").replace("</sub>", "").replace("<sup>", "").replace("</sup>", "")
    assert "<" not in plain


def test_a_formula_is_well_formed_and_reads_as_written():
    made = formulas.display(
        r"f(x) = \sum_{i=1}^{m} a_i\,\sigma(w_i x),\quad \frac{1}{2}\sqrt{n} \le \hat{y} < \mathbb{E}"
    )
    tree = ElementTree.fromstring(made)
    assert [part.tag for part in tree] == ["math", "math"]
    assert "".join(tree.itertext()) == "f(x)=∑i=1maiσ(wix),12n≤y^<𝔼"
    assert tree.find(".//munderover") is not None
    assert tree.find(".//mfrac") is not None


@pytest.mark.parametrize(
    ("latex", "why"), [(r"\nothing", "know no"), ("{a", "not closed"), ("a}", "closes nothing"), ("x^", "ends")]
)
def test_what_is_no_formula_is_refused(latex, why):
    with pytest.raises(ValueError, match=why):
        formulas.formula(latex)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "studies").glob("*.md")), ids=lambda page: page.stem)
def test_every_studys_set_up_has_a_formula_that_can_be_drawn(page):
    found = re.findall(r"^```math\n(.*?)^```", page.read_text(), re.M | re.S)
    assert found
    for latex in found:
        ElementTree.fromstring(formulas.display(latex))
