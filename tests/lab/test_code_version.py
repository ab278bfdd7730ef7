"""The code version of an arm: what its result depends on changes it, wording and its neighbours do not."""

from __future__ import annotations

import importlib
import sys

import pytest

from assay.lab import UserError, code_version, discovery
from assay.lab.code_version import arm_codes, study_sources
from assay.lab.source import parse

LEARNERS = '''"""Tossing."""

from . import theory


def toss(seeds, n, bias):
    """Toss n coins per seed."""
    # a comment
    return (seeds.uniform("tosses", n) < theory.level(bias)).double()


def unused(n):
    return n
'''
THEORY = "def level(bias):\n    return bias\n"
ARM = '''

@study.arm("second")
def second(params, seeds, record):
    """Another condition."""
    record(share=0.5)
'''


@pytest.fixture
def version(coin_copy, outside_folder):
    """The code version of the arm of a coin study that keeps its learner and theory in rooms of their own."""
    original = (outside_folder / "coin" / "study.py").read_text()
    toss = '(seeds.uniform("tosses", params.tosses) < params.bias).double()'
    assert toss in original
    code = original.replace(toss, "learners.toss(seeds, params.tosses, params.bias)")
    code = code.replace("from assay import lab\n", "from assay import lab\n\nfrom . import learners\n")

    def of(arm: str = "tossed", **rooms: str) -> str:
        folder = coin_copy(**{"study": code, "learners": LEARNERS, "theory": THEORY, **rooms})
        return arm_codes(discovery.find("coin", str(folder)))[arm].version

    of.code = code
    of.folder = coin_copy
    return of


def test_the_same_code_in_another_folder_has_the_same_version(version):
    assert version() == version()


def test_changing_what_the_arm_reaches_changes_it(version):
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
        {"learners": LEARNERS.replace("def toss(seeds, n, bias):", "def toss(seeds, n: int, bias: float) -> object:")},
        {"study": version.code.replace('"""Toss and count."""', '"""Count."""')},
        {"claims": claims.replace("0.05", "0.04")},
        {"figures": ""},
        {"problem": "LEVEL = 3\n"},  # a room that nothing imports
        {"study": version.code + ARM},
        {"learners": LEARNERS.replace("return n\n", "return n + 1\n")},  # a definition that nothing reaches
        {"theory": THEORY + "\n\ndef other(bias):\n    return -bias\n"},
        {"study": version.code.replace('"setting": ["few", "many"]', '"setting": ["many"]')},
    ):
        assert version(**rooms) == version()


def test_an_arm_that_calls_another_depends_on_it(version):
    calling = ARM.replace("record(share=0.5)", 'tossed(params, seeds, record, setting="few")')
    edited = version.code.replace("heads.mean(1)", "heads.sum(1) / params.tosses", 1)
    assert version("second", study=version.code + calling) != version("second", study=edited + calling)
    assert version("second", study=version.code + ARM) == version("second", study=edited + ARM)


def test_what_a_module_does_when_it_is_imported_always_counts(version):
    table = LEARNERS + "\n\nTABLE = {}\n"
    seen = [
        version(learners=table),
        version(learners=table + 'TABLE["unused"] = unused\n'),
        version(learners=table + "for _k in range(2):\n    TABLE[_k] = unused\n"),
        version(learners=table + "\n\n@TABLE.setdefault\ndef kept(n):\n    return n\n"),
    ]
    assert len(set(seen)) == len(seen)
    pure = LEARNERS + "\n\nfrom functools import cache\n\n\n@cache\ndef kept(n):\n    return n\n"
    assert version(learners=pure) == version()


def test_a_name_by_any_road_is_followed(version):
    """Through a re-export, a star, a lazy import, a class, and a module that is handed on as an object."""
    roads = {
        "from .theory import level": "level(bias)",
        "from .theory import *": "level(bias)",
        "from . import theory as t": "t.level(bias)",
        "from .exports import level": "level(bias)",
        "import importlib\n\nfrom . import theory": "(lambda module: module.level)(theory)(bias)",
    }
    for imported, call in roads.items():
        learners = LEARNERS.replace("from . import theory", imported).replace("theory.level(bias)", call)
        rooms = {"learners": learners, "exports": "from .theory import level\n"}
        other = THEORY.replace("return bias", "return 1 - bias")
        assert version(**rooms) != version(**rooms, theory=other), imported
        assert version(**rooms) == version(**rooms), imported
    lazy = LEARNERS.replace("from . import theory\n", "").replace("    # a comment\n", "    from . import theory\n\n")
    assert version(learners=lazy) != version(learners=lazy, theory=THEORY.replace("return bias", "return 1 - bias"))


def test_an_arm_made_by_a_call_counts_its_whole_module(version):
    made = version.code + (
        "\n\ndef make(share):\n    def arm(params, seeds, record):\n        record(share=share)\n\n    return arm\n"
        '\n\nstudy.arm("second")(make(0.5))\n'
    )
    assert version("second", study=made) != version("second", study=made.replace("make(0.5)", "make(0.6)"))


def test_claims_and_figures_stay_out_even_when_the_study_imports_them(version, outside_folder):
    claims = (outside_folder / "coin" / "claims.py").read_text()
    code = version.code + "\n\nfrom . import claims  # noqa: E402, F401\n"
    assert version(study=code) == version(study=code, claims=claims.replace("0.05", "0.04"))
    # But what an arm takes from there counts.
    taken = LEARNERS.replace("from . import theory", "from . import theory\nfrom .figures import SCALE")
    taken = taken.replace("theory.level(bias)", "SCALE * theory.level(bias)")
    scales = [version(learners=taken, figures=f"SCALE = {scale}\n") for scale in (1, 2)]
    assert len(set(scales)) == 2


def test_shared_rooms_count_and_the_lab_does_not(coin_copy, outside_folder):
    code = "from assay.networks import quadratic\n" + (outside_folder / "coin" / "study.py").read_text()
    code = code.replace("heads.mean(1),", "heads.mean(1) + 0 * (quadratic.quadratic is None),", 1)
    study = discovery.find("coin", str(coin_copy(study=code)))
    tossed = arm_codes(study)["tossed"]
    assert {"study.py", "assay/networks/quadratic.py", "assay/training/seeds.py"} <= set(tossed.files)
    assert not [name for name in tossed.files if name.startswith(("assay/lab", "assay/report", "assay/cli", "torch"))]
    assert set(tossed.packages) == {"torch"}
    assert study.module in study_sources(study.module.rpartition(".")[0], study.folder)


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


def test_code_in_the_parameters_counts(version):
    def with_property(value):
        field = 'tosses: int = Field(1000, ge=10, description="tosses per seed")\n'
        assert field in version.code
        method = f"\n    @property\n    def half(self):\n        return self.tosses / {value}\n"
        return version(study=version.code.replace(field, field + method))

    assert len({version(), with_property(2), with_property(3)}) == 3


def test_every_python_gives_the_same_version():
    """3.12 gave functions and classes a field more, 3.13 leaves empty ones out: a store must not care."""
    text = b"""async def f(a, *b, c=f"{1!r:>3}"):\n    pass\n\nclass A(list):\n    x: int = 1\n    def g(self): ...\n"""
    digests = [statement.digest for statement in parse(text).statements]
    assert digests == ["08fd8a4ead321171571ad972", "83b5cd1ca26c2f6d0401a696"]


def test_code_beside_the_study_counts(coin_copy, outside_folder):
    """A folder of studies may share rooms."""
    original = (outside_folder / "coin" / "study.py").read_text()

    def of(text: str) -> str:
        imported = original.replace("from assay import lab\n", "from assay import lab\n\nfrom ..common import SCALE\n")
        folder = coin_copy(study=imported.replace("heads.mean(1),", "SCALE * heads.mean(1),", 1))
        (folder / "common.py").write_text(text)
        return arm_codes(discovery.find("coin", str(folder)))["tossed"].version

    assert of("SCALE = 1\n") == of("SCALE = 1  # wherever the folder lies\n") != of("SCALE = 2\n")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of one's own on the path, which the coin study uses."""
    folder = tmp_path / "path"
    (folder / "coinlib").mkdir(parents=True)
    (folder / "coinlib" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    yield folder / "coinlib" / "biases.py"
    for name in [name for name in sys.modules if name.partition(".")[0] == "coinlib"]:
        del sys.modules[name]


def with_library(outside_folder) -> str:
    code = (outside_folder / "coin" / "study.py").read_text()
    code = code.replace("from assay import lab\n", "from coinlib import biases\n\nfrom assay import lab\n")
    return code.replace("< params.bias", "< biases.of(params.bias)")


def test_a_library_on_the_path_counts(coin_copy, outside_folder, library):
    code = with_library(outside_folder)
    library.write_text("def of(bias):\n    return bias\n\n\ndef other():\n    return 1\n")
    study = discovery.find("coin", str(coin_copy(study=code)))
    before = arm_codes(study)["tossed"]
    assert "coinlib/biases.py" in before.files
    library.write_text("def of(bias):\n    return bias  # the same\n\n\ndef other():\n    return 2\n")
    assert arm_codes(study)["tossed"].version == before.version
    library.write_text("def of(bias):\n    return 1 - bias\n")
    assert arm_codes(study)["tossed"].version != before.version


@pytest.fixture
def installed_anew():
    """What is installed is looked up once in a process; here something is installed meanwhile."""
    code_version._distributions.cache_clear()
    code_version._version_of.cache_clear()
    yield
    code_version._distributions.cache_clear()
    code_version._version_of.cache_clear()


def test_a_package_that_an_installer_put_on_the_path_counts_by_version(
    coin_copy, outside_folder, library, installed_anew
):
    """As ``pip install --target`` leaves it: the record lies beside the package."""
    library.write_text("def of(bias):\n    return bias\n")
    record = library.parent.parent / "coinlib-1.2.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: coinlib\nVersion: 1.2\n")
    (record / "RECORD").write_text("coinlib/__init__.py,,\ncoinlib/biases.py,,\n")
    (record / "top_level.txt").write_text("coinlib\n")
    study = discovery.find("coin", str(coin_copy(study=with_library(outside_folder))))
    code = arm_codes(study)["tossed"]
    assert code.packages["coinlib"] == "1.2"
    assert not any(name.startswith("coinlib") for name in code.files)
    (record / "RECORD").write_text("another/__init__.py,,\n")
    assert "coinlib/biases.py" in arm_codes(study)["tossed"].files


def test_a_long_lived_process_sees_edits(coin_copy, outside_folder, library):
    """Of the study, of a room beside it and of a library: what runs is what the version says."""
    code = with_library(outside_folder)
    library.write_text("def of(bias):\n    return bias\n")
    folder = coin_copy(study=code)
    study = discovery.find("coin", str(folder))
    assert discovery.find("coin", str(folder)) is study
    claims = folder / "coin" / "claims.py"
    claims.write_text(claims.read_text().replace("near the bias", "close to it"))
    second = discovery.find("coin", str(folder))
    assert "close to it" in second.claims["C1"].statement
    library.write_text("def of(bias):\n    return 1 - bias\n")
    discovery.find("coin", str(folder))
    assert importlib.import_module("coinlib.biases").of(0.25) == 0.75


@pytest.mark.parametrize("room", ["claims", "figures"])
def test_an_arm_where_code_does_not_count_is_refused(coin_copy, outside_folder, room):
    text = (outside_folder / "coin" / f"{room}.py").read_text() + ARM
    folder = str(coin_copy(**{room: text}))
    with pytest.raises(UserError, match=rf"arm 'second' .*{room}.py, line \d+\): its code is in {room}.py"):
        _ = discovery.find("coin", folder).figures  # loaded when asked for


def test_an_arm_of_an_installed_package_is_refused(coin_copy, outside_folder):
    code = (outside_folder / "coin" / "study.py").read_text()
    folder = str(coin_copy(study=code + "\n\nimport joblib\n\nstudy.arm('second')(joblib.hash)\n"))
    with pytest.raises(UserError, match=r"arm 'second' .*whose source is not local"):
        discovery.find("coin", folder)


MADE = {
    "a partial": "import functools\n\n\ndef train(params, seeds, record, rate):\n    record(share=rate)\n\n\n"
    'study.arm("made")(functools.partial(train, rate=1.0))\n',
    "a bound method": "class T:\n    def __init__(self, rate):\n        self.rate = rate\n\n"
    '    def go(self, params, seeds, record):\n        record(share=self.rate)\n\n\nstudy.arm("made")(T(1.0).go)\n',
    "a wrapped function": "import functools\n\n\ndef with_rate(rate):\n    def wrap(f):\n        @functools.wraps(f)\n"
    "        def inner(params, seeds, record):\n            record(share=rate)\n\n        return inner\n\n"
    "    return wrap\n\n\n"
    'def train(params, seeds, record):\n    pass\n\n\nstudy.arm("made")(with_rate(1.0)(train))\n',
    "a name that is not written out": "def make(rate):\n    def arm(params, seeds, record):\n"
    "        record(share=rate)\n\n"
    '    return arm\n\n\nstudy.arm("ma" + "de")(make(1.0))\n',
}


@pytest.mark.parametrize("kind", MADE)
def test_what_an_arm_was_made_with_counts(version, kind):
    made = version.code + "\n\n" + MADE[kind]
    edited = made.replace("rate=1.0", "rate=2.0").replace("(1.0)", "(2.0)")
    assert edited != made
    assert version("made", study=made) != version("made", study=edited)
    assert version("tossed", study=made) == version("tossed", study=edited)


def test_types_of_parameters_and_private_values_count(version):
    mode = (
        "import enum\n\n\nclass Mode(enum.Enum):\n    A = 'a'\n\n    def go(self):\n        return 1\n\n\nclass Params"
    )
    field = '    tosses: int = Field(1000, ge=10, description="tosses per seed")\n'
    code = version.code.replace("class Params", mode, 1)
    code = code.replace(
        field, field + '    mode: Mode = Field(Mode.A, description="a mode")\n    _scale: float = 1.0\n'
    )
    assert version(study=code) != version(study=code.replace("return 1\n", "return 2\n"))
    assert version(study=code) != version(study=code.replace("_scale: float = 1.0", "_scale: float = 2.0"))
    assert version(study=code) == version(study=code.replace("Field(Mode.A,", "Field(Mode.A, frozen=True,"))


def test_a_block_that_only_a_script_runs_counts_for_nothing(version):
    script = '\n\nif __name__ == "__main__":\n    print(1)\n'
    assert version() == version(learners=LEARNERS + script)


def test_long_chains_of_calls_are_followed(version):
    chain = "".join(f"def f{k}():\n    return f{k + 1}()\n\n\n" for k in range(1500)) + "def f1500():\n    return 1\n"
    learners = LEARNERS.replace("# a comment", "f0()") + "\n\n" + chain
    assert version(learners=learners) != version(learners=learners.replace("return 1\n", "return 2\n"))


def test_a_file_saved_while_a_study_loads_is_read_again(coin_copy, outside_folder, tmp_path):
    """What is in memory is what its version says, also when an editor saves in the middle of an import."""
    original = (outside_folder / "coin" / "study.py").read_text()
    code = original.replace("from assay import lab\n", "from assay import lab\n\nfrom .learners import SCALE\n", 1)
    code = code.replace("heads.mean(1),", "SCALE * heads.mean(1),", 1)
    flag = tmp_path / "flag"
    slow = (
        "from pathlib import Path\nSCALE = 1\n"
        f"if not Path({str(flag)!r}).exists():\n    Path({str(flag)!r}).touch()\n"
        "    Path(__file__).write_text(Path(__file__).read_text().replace('SCALE = 1', 'SCALE = 2'))\n"
    )
    study = discovery.find("coin", str(coin_copy(study=code, learners=slow)))
    assert sys.modules[study.module].SCALE == 2
