"""Every road by which code gets from an arm to its results, one after another: an edit anywhere on it is seen."""

from __future__ import annotations

import sys

import pytest

from assay.lab import discovery
from assay.lab.code_version import arm_codes

LEARNER = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
# Each a study's body, and what is edited in which room: a change that the arm's result may follow.
ROADS = {
    "another function of an installed package": ("from math import floor as act", "act(1.5)", "study", "floor", "ceil"),
    "two aliases exchanged": (
        "from .rooms import f as a, g as b",
        "a() - b()",
        "study",
        "f as a, g as b",
        "g as a, f as b",
    ),
    "a conditional import": (
        "if len('x') == 1:\n    from .rooms import f\nelse:\n    from math import floor as f",
        "f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "an import that may fail": (
        "try:\n    from .rooms import f\nexcept ImportError:\n    raise",
        "f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "a star that may fail": (
        "try:\n    from .rooms import *\nexcept ImportError:\n    raise",
        "f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "what checkers do not see": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    f = None\nelse:\n    from .rooms import f",
        "f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "the order of two values": ("RATE = 1\nRATE = 2", "RATE", "study", "RATE = 1\nRATE = 2", "RATE = 2\nRATE = 1"),
    "the order of two changes": (
        "RATE = 1\nRATE += 1\nRATE *= 3",
        "RATE",
        "study",
        "RATE += 1\nRATE *= 3",
        "RATE *= 3\nRATE += 1",
    ),
    "a subclass that registers itself": (
        "from .rooms import RULES",
        "RULES['m'].rate",
        "rooms",
        "rate = 1",
        "rate = 2",
    ),
    "an import for its effect": ("import assay_outside_effect.patch", "1", "effect", "VALUE = 1", "VALUE = 2"),
    "a module by its name": (
        "import importlib",
        "importlib.import_module('.rooms', __package__).f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "a module by a name that is made": (
        "import importlib",
        "importlib.import_module('.ro' + 'oms', __package__).f()",
        "rooms",
        "return 1",
        "return 3",
    ),
    "a name by text": (
        "import sys\ndef f(): return 1",
        "getattr(sys.modules[__name__], 'f')()",
        "study",
        "return 1",
        "return 3",
    ),
    "a parameter class that is no model": (
        "from dataclasses import dataclass\nclass OptParams: pass\n@dataclass\nclass Adam(OptParams):\n"
        "    beta: float = 1.0",
        "Adam().beta",
        "study",
        "1.0",
        "2.0",
    ),
}
HOOKED = """RULES = {}


class Rule:
    def __init_subclass__(cls, name):
        RULES[name] = cls


class M(Rule, name="m"):
    rate = 1
"""


@pytest.mark.parametrize("road", ROADS)
def test_no_road_from_an_arm_is_missed(coin_copy, outside_folder, road, tmp_path, monkeypatch):
    imported, used, room, old, new = ROADS[road]
    (tmp_path / "path" / "assay_outside_effect").mkdir(parents=True)
    (tmp_path / "path" / "assay_outside_effect" / "__init__.py").write_text("")
    effect = tmp_path / "path" / "assay_outside_effect" / "patch.py"
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    code = (outside_folder / "coin" / "study.py").read_text()
    code = code.replace("\n\nclass Params", f"\n{imported}\n\n\nclass Params", 1)
    code = code.replace("heads.mean(1),", f"heads.mean(1) + 0 * ({used}),", 1)
    texts = {
        "study": code,
        "rooms": HOOKED if "registers" in road else LEARNER,
        "effect": "import sys\nsys.VALUE = 1\n",
    }

    def version():
        effect.write_text(texts["effect"])
        folder = coin_copy(study=texts["study"], rooms=texts["rooms"])
        return arm_codes(discovery.find("coin", str(folder)))["tossed"].version

    before = version()
    assert version() == before
    assert old in texts[room]
    texts[room] = texts[room].replace(old, new)
    assert version() != before
    for name in [name for name in sys.modules if name.startswith("assay_outside_effect")]:
        del sys.modules[name]
