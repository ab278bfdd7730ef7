"""The documentation is tested: commands and snippets run, links resolve, tables are the measured ones."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from assay.report.tables import refresh

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
# Commands that this suite covers elsewhere or that take minutes: they are checked for their words only.
LONG = ("make", "pip", "git", "python -m build")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def snippets(page):
    """Scripts. Where a page opens with a picture, a few lines on names of the reader's own follow it; the next block is
    the same with everything that it needs, and what it makes is there for the first."""
    first, *more = blocks(page, "python") or [""]
    return [f"{more[0]}\n{first}", *more] if opens_with_a_picture(page) else [first, *more]


def opens_with_a_picture(page):
    return page.parent.name == "methods" and "![" in page.read_text().partition("```")[0]


def commands(page):
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def run(words, folder):
    return subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the coin study of CONTRIBUTING written into it, as a reader would."""
    folder = tmp_path_factory.mktemp("reader")
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for name, code in re.findall(r"^`(coin/\w+\.py)`\n\n```python\n(.*?)^```", text, re.M | re.S):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    assert {path.name for path in (folder / "coin").iterdir()} == {"study.py", "claims.py", "figures.py"}
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_run(page, folder):
    for line in commands(page):
        words = shlex.split(line)
        if line.startswith(LONG):
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), line
            continue
        assert words[0] == "assay", f"{page.name} shows a command that this test does not know: {line}"
        if "laptop" in line or (not ({"--preset", "--help", "list", "bench"} & set(words)) and words[1] == "run"):
            words.append("--help")  # minutes of work: the words are checked, the work is not done
        if words[1] in ("bench", "serve"):
            words.append("--help")
        if words[1] == "sweep":  # the same map, of networks that hardly train: else ten minutes on a slow processor
            words = [re.sub(r"^steps=\d+$", "steps=20", word) for word in words]
        done = run([sys.executable, "-m", "assay.cli", *words[1:]], folder)
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run(page, tmp_path):
    if page.name == "CONTRIBUTING.md":
        pytest.skip("its snippets are the coin study, which the commands run")
    for number, code in enumerate(snippets(page)):
        script = tmp_path / f"snippet_{number}.py"
        script.write_text(code)
        done = run([sys.executable, str(script)], tmp_path)
        assert done.returncode == 0, f"{page.name}, snippet {number}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", filter(opens_with_a_picture, PAGES), ids=lambda page: page.name)
def test_below_a_picture_stand_five_lines_of_code(page):
    assert 2 <= len([line for line in blocks(page, "python")[0].splitlines() if line.strip()]) <= 5


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(script, tmp_path):
    done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip(), "an example shows something"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    assert refresh(page.read_text(), ROOT) == page.read_text(), "make docs brings the tables up to date"


def test_the_coin_study_of_the_guide_is_the_tested_one(folder):
    # What a reader copies works like the copy that the lab's own tests use.
    kept = ROOT / "tests/lab/outside/coin/study.py"
    written = (folder / "coin/study.py").read_text()
    assert written in kept.read_text()


def test_the_arm_of_the_guide_is_planned_and_runs(tmp_path):
    code = blocks(ROOT / "docs/write_your_own_study.md", "python")[0]
    (tmp_path / "studies/widths").mkdir(parents=True)
    (tmp_path / "studies/widths/study.py").write_text(code)
    words = ["run", "widths", "--studies", "studies", "--preset", "smoke", "--json"]
    for more, units, computed in (([], 4, 4), (["--set", "widths=4,16,64"], 6, 2)):
        done = run([sys.executable, "-m", "assay.cli", *words, *more], tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        (made,) = json.loads(done.stdout)["runs"]
        assert (made["units"], made["computed"]) == (units, computed), "a new width reruns none of the others"
