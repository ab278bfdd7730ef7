"""A study's page in docs as parts of its page on the site."""

from __future__ import annotations

from pathlib import Path

from assay.lab import discovery
from assay.report import prose

PAGE = """# A coin

**Question.** Is it fair? A coin is *tossed* n times (`tosses`).

```math
p = \\frac{1}{2}
```

```sh
assay run coin
```

For your own coins: [the guide](../methods/coin.md).

## What the study found

It is near fair (C1), X^2 of it.

<!-- headlines: results/coin.json -->
| claim | verdict |
| --- | --- |
| C1 | holds |
<!-- end -->

- **Heads** more often (C9).

## What differs from the source, and why

| a | b |
| --- | --- |
| 1 | <2> |

## Settings

More <b>tosses</b>.
"""


def test_a_page_falls_into_the_parts_of_a_story():
    made = prose.parse(PAGE, {"C1"}, "Is it fair?")
    assert made.setup.startswith("<p>A coin is <em>tossed</em> n times (<code>tosses</code>).</p>")
    assert "<mfrac>" in made.setup
    assert "assay run" not in made.setup
    assert "guide" not in made.setup
    assert made.lead == '<p>It is near fair (<a class="ref" href="#claim-C1">C1</a>), X<sup>2</sup> of it.</p>'
    assert made.found == "<ul><li><strong>Heads</strong> more often (C9).</li></ul>", "C9 is no claim of the study"
    assert made.differs is not None
    assert made.differs.title == "What differs from the source, and why"
    assert '<table class="data"><thead><tr><th>a</th>' in made.differs.body
    assert "<td>&lt;2&gt;</td>" in made.differs.body
    assert [section.title for section in made.others] == ["Settings"]
    assert "<b>" not in made.others[0].body


def test_a_study_outside_brings_its_own_page(tmp_path, coin_folder):
    study = discovery.find("coin", str(coin_folder.parent))
    assert prose.page_of(study) is None
    assert prose.read(study, study.claims) == prose.Prose()
    found = discovery.find("feature-emergence", None)
    page = Path(prose.__file__).parent / "studies/feature_emergence.md"
    assert prose.page_of(found) == page, "in the package, so that an installed one has it"
    assert page.resolve() == Path(__file__).parents[2] / "docs/studies/feature_emergence.md", "and only once"


def test_a_clone_without_links_reads_the_page_in_docs(monkeypatch, tmp_path):
    package = tmp_path / "src" / "assay" / "report"
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    (tmp_path / "docs" / "studies" / "feature_emergence.md").write_text(PAGE)
    monkeypatch.setattr(prose, "HERE", package)
    found = prose.page_of(discovery.find("feature-emergence"))
    assert found == tmp_path / "docs" / "studies" / "feature_emergence.md"
