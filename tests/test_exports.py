"""What the rooms offer: every name resolves, says what it is, and stands in the guide."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("methods", "probes", "training", "networks", "evaluation", "data")


def room_of(name):
    return importlib.import_module(f"assay.{name}")


def python(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ROOMS)
def test_every_name_resolves_and_has_a_docstring(name):
    room = room_of(name)
    for each in room.__all__:
        thing = getattr(room, each)
        assert callable(thing), f"{each} is a class or a function, and no module"
        assert thing.__doc__, each
        # A dataclass without a docstring is given its signature for one.
        assert not (inspect.isclass(thing) and thing.__doc__.startswith(f"{thing.__name__}(")), each
    assert set(room.__all__) <= set(dir(room))


@pytest.mark.parametrize("name", ROOMS)
def test_type_checkers_see_the_same_names(name):
    (block,) = [node for node in ast.parse(Path(room_of(name).__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {alias.asname or alias.name for line in block.body for alias in line.names}
    assert seen == set(room_of(name).__all__)


@pytest.mark.parametrize("name", ["methods", "probes"])
def test_the_guide_mentions_every_name(name):
    words = {word for page in (ROOT / "docs/methods").glob("*.md") for word in re.findall(r"\w+", page.read_text())}
    assert set(room_of(name).__all__) - words == set()


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_alone_imports_nothing_heavy(name):
    script = f"import sys, assay.{name}; print([m for m in ('torch', 'numpy', 'scipy', 'polars') if m in sys.modules])"
    assert python(script) == "[]"


def test_a_function_wins_over_the_module_of_its_name_whoever_came_first():
    before = "from assay.probes import specialisation; from assay.probes.specialisation import FeatureRow"
    after = "from assay.probes.specialisation import FeatureRow; from assay.probes import specialisation"
    for order in (before, after):
        assert python(f"{order}; print(callable(specialisation), FeatureRow.__name__)") == "True FeatureRow"


def test_submodules_and_unknown_names_are_as_usual():
    from assay import methods
    from assay.methods import gemfilter

    assert inspect.ismodule(gemfilter)
    with pytest.raises(AttributeError, match="no attribute 'gemfiltre'"):
        _ = methods.gemfiltre
