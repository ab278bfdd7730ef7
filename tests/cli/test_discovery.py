"""Commands are found, not named: modules of the package by their ``register``, other packages by an entry point."""

import os
import re
import subprocess
import sys

import pytest

OURS = ["list", "run", "check", "claims", "runs", "compare", "report", "bench"]
OURS += ["gemfilter", "needle", "index", "ask", "proxy"]
HELLO = 'def register(app):\n    app.command("hello")(hello)\n\ndef hello(name: str) -> None:\n    """Greets."""\n'
HELLO += '    print(f"hello {name}")\n'


def python(*words, path=""):
    places = os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": places}
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, env=environment)


def commands(text):
    return re.findall(r"^  (\w+)(?:  |$)", text.partition("Commands:")[2], re.M)


@pytest.fixture
def announce(tmp_path):
    """Install a package that is one file with some entry points."""

    def install(points, code=HELLO):
        (tmp_path / "outside.py").write_text(code)
        facts = tmp_path / "outside-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
        lines = [f"{name} = {value}\n" for name, value in points.items()]
        (facts / "entry_points.txt").write_text("[assay.commands]\n" + "".join(lines))
        return tmp_path

    return install


def test_the_listing_keeps_its_order():
    done = python("-m", "assay.cli", "--help")
    assert done.returncode == 0
    assert [name for name in commands(done.stdout) if name in OURS] == OURS


@pytest.mark.parametrize("value", ["outside", "outside:register"])
def test_another_package_adds_a_command(announce, value):
    path = announce({"greetings": value})
    done = python("-m", "assay.cli", "hello", "you", path=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello you\n", "")
    assert commands(python("-m", "assay.cli", "--help", path=path).stdout)[-1] == "hello"


BROKEN = """
import typer

def fails(app):
    app.command("half")(lambda: None)
    raise RuntimeError("it is not ready,\\nreally")

def hides(app):
    app.command("run")(lambda: None)

def group(app):
    inner = typer.Typer()
    inner.command("one")(lambda: None)
    inner.command("two")(lambda: None)
    app.add_typer(inner, name="more")
"""


def test_what_is_broken_is_left_out_with_a_sentence_and_takes_nothing_away(announce):
    points = {"a": "nowhere", "b": "outside:missing", "c": "outside:fails", "d": "outside:hides", "e": "outside:group"}
    done = python("-m", "assay.cli", "--help", path=announce(points, BROKEN))
    assert done.returncode == 0
    found = commands(done.stdout)
    assert [name for name in found if name in OURS] == OURS
    assert found[-1] == "more"
    assert "half" not in found
    said = done.stderr.splitlines()
    assert len(said) == 4
    for line, (name, value), reason in zip(
        said,
        points.items(),
        ("No module named 'nowhere'", "has no attribute 'missing'", "not ready, really", "a command 'run' already"),
        strict=False,
    ):
        assert line.startswith(f"assay: the commands of '{name}' ({value}) are left out: ")
        assert reason in line


def test_a_file_in_the_package_is_all_that_a_group_needs(tmp_path):
    (tmp_path / "greetings.py").write_text(f"ORDER = 15\n\n{HELLO}")
    script = "import sys\nfrom assay import cli\ncli.__path__.append(sys.argv.pop(1))\ncli.main()"
    done = python("-c", script, tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    found = commands(done.stdout)
    assert found[found.index("confirm") : found.index("claims") + 1] == ["confirm", "sweep", "hello", "claims"]
