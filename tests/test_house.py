"""The rules of the house that can be read off the source: who may import whom, and what may not be in it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import assay

PACKAGE = Path(assay.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
FLOORS = ("data", "networks", "probes", "training", "methods", "evaluation")
UPPER = ("lab", "studies", "report", "serve", "apps", "benchmarks", "cli")
LABS_OWN = ("polars", "altair", "pydantic", "typer", "rich", "joblib")


def module_name(path: Path) -> str:
    parts = ("assay", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path, source: str | None = None) -> set[str]:
    """Every module that a file imports, at its top or lazily, with relative names resolved."""
    name = module_name(path)
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text() if source is None else source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return found


def at_once(path: Path) -> set[str]:
    """The modules that are imported when the file is: not those of functions, nor those that only a type checker
    reads."""
    tree = ast.parse(path.read_text())
    lines = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return imports(path, "\n".join(lines))


def within(names: set[str], *packages: str) -> list[str]:
    return sorted(n for n in names if any(n == package or n.startswith(f"{package}.") for package in packages))


def files(*rooms: str) -> list[Path]:
    return [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] in rooms]


def show(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_the_reader_of_imports_sees_every_form():
    source = (
        "import a.b\nfrom c import d\nfrom . import e\nfrom .f import g\nfrom .. import h\n"
        "def late():\n    from assay.lab import i\n"
    )
    seen = imports(PACKAGE / "probes" / "example.py", source)
    expected = {"a.b", "c.d", "assay.probes.e", "assay.probes.f.g", "assay.h", "assay.lab.i"}
    assert expected <= seen
    assert within(seen, "assay.lab") == ["assay.lab", "assay.lab.i"]
    assert within({"assay.laboratory"}, "assay.lab") == []


@pytest.mark.parametrize("path", files(*FLOORS), ids=show)
def test_the_lower_floors_do_not_look_up(path):
    assert within(imports(path), *(f"assay.{room}" for room in UPPER)) == []


@pytest.mark.parametrize("path", files("networks", "probes", "training", "methods", "evaluation"), ids=show)
def test_the_lower_floors_do_without_the_labs_libraries(path):
    assert within(imports(path), *LABS_OWN) == []


@pytest.mark.parametrize("path", files("evaluation"), ids=show)
def test_a_harness_knows_no_method(path):
    # Methods may use harnesses, as the choice of a filter layer uses needle prompts; they come to one as arguments.
    assert within(imports(path), "assay.methods") == []


def test_no_modules_of_the_lower_floors_import_each_other_in_a_circle():
    known = {module_name(path): path for path in files(*FLOORS)}
    above = {name: set(within(at_once(path), "assay")) & known.keys() - {name} for name, path in known.items()}
    while free := [name for name, others in above.items() if not others]:
        for name in free:
            del above[name]
        for others in above.values():
            others.difference_update(free)
    assert above == {}


@pytest.mark.parametrize("path", files("lab"), ids=show)
def test_the_lab_knows_no_study(path):
    # Discovery asks the package of studies for its folder; no one names a study. A report is one of the lab's calls.
    allowed = {"discovery.py": {"assay.studies"}, "api.py": {"assay.report", "assay.report.site"}}.get(path.name, set())
    assert set(within(imports(path), "assay.studies", "assay.report", "assay.apps", "assay.cli")) <= allowed


@pytest.mark.parametrize("path", files("lab", "studies", "report"), ids=show)
def test_nothing_but_the_command_line_knows_the_live_lab(path):
    assert within(imports(path), "assay.serve") == []


@pytest.mark.parametrize("path", files("serve"), ids=show)
def test_the_live_lab_knows_no_study_and_no_command(path):
    assert within(imports(path), "assay.studies", "assay.cli", "assay.benchmarks") == []
    assert within(imports(path), "pickle", "cloudpickle", "multiprocessing") == []


# The lab's side of a study, and its science.
LABS_ROOMS = ("__init__.py", "study.py", "params.py", "arms.py", "claims.py", "figures.py")
SCIENCE_ROOMS = ("problem.py", "theory.py", "learners.py")
SCIENCE = [path for path in files("studies") if path.name not in LABS_ROOMS]


@pytest.mark.parametrize("path", files("studies"), ids=show)
def test_a_study_and_its_parts_have_the_same_rooms(path):
    """A file is cut where the science has a joint, and a part is a folder: a reader knows where everything is."""
    assert path.name in (*LABS_ROOMS, *SCIENCE_ROOMS)
    assert path.relative_to(PACKAGE).parts[2:][:-1] == () or path.name != "study.py"


@pytest.mark.parametrize("path", files("studies"), ids=show)
def test_no_room_of_a_study_is_glued_on(path):
    """Imports stand at the top and are there for their names: discovery finds rooms, no module registers another."""
    tree = ast.parse(path.read_text())
    kinds = [isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body]
    below = kinds[kinds.index(True) :] if True in kinds else []
    assert True not in below[below.index(False) :] if False in below else True
    assert "F401" not in path.read_text()


def test_the_formatter_has_everything():
    kept = re.compile("fmt: (" + "skip|off)")
    assert [show(path) for path in SOURCES if kept.search(path.read_text())] == []


@pytest.mark.parametrize("path", SCIENCE, ids=show)
def test_a_studys_science_runs_without_the_lab(path):
    assert within(imports(path), "assay.lab", "assay.report", *LABS_OWN) == []


@pytest.mark.parametrize("path", files("studies"), ids=show)
def test_a_study_imports_no_other_study(path):
    own = path.relative_to(PACKAGE).parts[1]
    others = [n for n in within(imports(path), "assay.studies") if n.split(".")[2:3] not in ([], [own])]
    assert others == []


def test_a_study_folders_init_is_empty():
    found = {show(path): path.read_text().strip() for path in files("studies") if path.name == "__init__.py"}
    assert found
    assert {name for name, text in found.items() if text and name.count("/") > 1} == set()


def test_importing_assay_is_quick():
    script = "import sys, assay; print([m for m in ('torch', 'polars', 'scipy', 'numpy') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


MACHINE = re.compile(r"(?<![\w.~$}/])/(?:home|root|work|Users|tmp|mnt|opt|srv|private|workspace)(?:/|\b)|[A-Z]:\\\\\w")


def test_no_machine_path_is_in_the_source():
    assert MACHINE.search("open('" + "/".join(["", "home", "someone"]) + "')")
    assert MACHINE.search('"/tmp"')
    assert not MACHINE.search("https://example.org/home/page and a/tmp/b and runs/tmp")
    texts = [path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".csv", ".html", ".css", ".js", ".json"}]
    found = [f"{show(path)}: {match[0]}" for path in texts if (match := MACHINE.search(path.read_text()))]
    assert found == []


def test_no_device_is_named_by_number():
    assert [show(path) for path in SOURCES if re.search(r"cuda:\d", path.read_text())] == []
