"""The code version: what a result depends on changes it, wording does not."""

from __future__ import annotations

import pytest

from assay.lab import discovery
from assay.lab.code_version import _closure, _tree, code_version

LEARNERS = '''"""Tossing."""

from . import theory


def toss(seeds, n, bias):
    """Toss n coins per seed."""
    # a comment
    return (seeds.uniform("tosses", n) < theory.level(bias)).double()
'''
THEORY = "def level(bias):\n    return bias\n"


@pytest.fixture
def version(coin_copy, outside_folder):
    """The code version of a coin study that keeps its learner and theory in rooms of their own."""
    original = (outside_folder / "coin" / "study.py").read_text()
    toss = '(seeds.uniform("tosses", params.tosses) < params.bias).double()'
    assert toss in original
    code = original.replace(toss, "learners.toss(seeds, params.tosses, params.bias)")
    code = code.replace("from assay import lab\n", "from assay import lab\n\nfrom . import learners\n")

    def of(**rooms: str) -> str:
        folder = coin_copy(**{"study": code, "learners": LEARNERS, "theory": THEORY, **rooms})
        return code_version(discovery.find("coin", str(folder)).module)

    of.code = code
    of.folder = coin_copy
    return of


def test_the_same_code_in_another_folder_has_the_same_version(version):
    assert version() == version()


def test_changing_what_the_study_imports_changes_it(version):
    seen = [
        version(),
        version(learners=LEARNERS.replace(" < ", " <= ")),
        version(theory=THEORY.replace("return bias", "return 1 - bias")),
        version(study=version.code.replace("heads.mean(1)", "heads.sum(1) / params.tosses", 1)),
    ]
    assert len(set(seen)) == len(seen)


def test_rewording_changes_nothing(version, outside_folder):
    claims = (outside_folder / "coin" / "claims.py").read_text()
    reworded = LEARNERS.replace('"""Tossing."""', '"""Tossing coins."""').replace("# a comment", "# another")
    reworded = reworded.replace("Toss n coins per seed.", "n tosses,\n    for every seed.").replace(
        "\n\n\n", "\n\n\n\n"
    )
    for rooms in (
        {"learners": reworded},
        {"study": version.code.replace('"""Toss and count."""', '"""Count."""')},
        {"claims": claims.replace("0.05", "0.04")},
        {"figures": ""},
        {"problem": "LEVEL = 3\n"},  # a room that nothing imports
    ):
        assert version(**rooms) == version()


def test_claims_and_figures_stay_out_even_when_the_study_imports_them(version, outside_folder):
    claims = (outside_folder / "coin" / "claims.py").read_text()
    code = version.code + "\n\nfrom . import claims  # noqa: E402, F401\n"
    assert version(study=code) == version(study=code, claims=claims.replace("0.05", "0.04"))


def test_the_closure_holds_shared_rooms_and_no_lab(coin_copy, outside_folder):
    code = "from assay.networks import quadratic\n" + (outside_folder / "coin" / "study.py").read_text()
    study = discovery.find("coin", str(coin_copy(study=code)))
    closure = _closure(study.module, ("assay", study.module.rpartition(".")[0]))
    assert {study.module, "assay.networks.quadratic", "assay.training.seeds"} <= closure
    assert not [name for name in closure if name.startswith(("assay.lab", "assay.report", "assay.cli", "torch"))]


def test_presets_defaults_and_words_are_in_the_address_and_not_in_the_code(version):
    code = version.code
    for old, new in (
        ('lab.Preset(seeds=8, cost="1 s")', 'lab.Preset(seeds=9, cost="2 s")'),
        ("Field(0.6, gt=0, lt=1", "Field(0.7, gt=0, lt=1"),
        ("Does the share of heads approach", "Does the share of heads go to"),
        ('settings={"few": {"tosses": 20}', 'settings={"few": {"tosses": 30}'),
    ):
        assert old in code
        assert version(study=code.replace(old, new)) == version()


def test_a_constant_of_the_parameters_counts_and_an_annotated_field_does_not(version):
    def with_line(line):
        field = 'tosses: int = Field(1000, ge=10, description="tosses per seed")\n'
        code = version.code.replace(field, f"{field}    {line}\n")
        return version(study=code.replace("from pydantic", "from typing import ClassVar\n\nfrom pydantic"))

    constants = ("_SIDES = 2", "_SIDES = 3", "SIDES: ClassVar[int] = 2", "SIDES: ClassVar[int] = 3")
    assert len({with_line(""), *(with_line(constant) for constant in constants)}) == 5
    assert with_line("sides: int = 2") == with_line("sides: int = 3") == with_line("")


def test_a_new_version_of_the_package_reruns_nothing(version):
    study = discovery.find("coin", str(version.folder()))
    assert "assay" not in _closure(study.module, ("assay",))


def test_code_in_the_parameters_counts(version):
    def with_property(value):
        field = 'tosses: int = Field(1000, ge=10, description="tosses per seed")\n'
        assert field in version.code
        method = f"\n    @property\n    def half(self):\n        return self.tosses / {value}\n"
        return version(study=version.code.replace(field, field + method))

    assert len({version(), with_property(2), with_property(3)}) == 3


def test_every_python_gives_the_same_version(tmp_path):
    """3.12 gave functions and classes a field more, 3.13 leaves empty ones out: a store must not care."""
    path = tmp_path / "code.py"
    path.write_text(
        """async def f(a, *b, c=f"{1!r:>3}"):\n    pass\n\nclass A(list):\n    x: int = 1\n    def g(self): ...\n"""
    )
    assert _tree(path) == "5fe1af3b05c27fb0dc39b8c7"


def test_code_beside_the_study_counts(coin_copy, outside_folder):
    """A folder of studies may share rooms."""
    original = (outside_folder / "coin" / "study.py").read_text()

    def of(text: str) -> str:
        imported = original.replace("from assay import lab\n", "from assay import lab\n\nfrom ..common import SCALE\n")
        folder = coin_copy(study=imported)
        (folder / "common.py").write_text(text)
        return code_version(discovery.find("coin", str(folder)).module)

    assert of("SCALE = 1\n") == of("SCALE = 1  # wherever the folder lies\n") != of("SCALE = 2\n")
