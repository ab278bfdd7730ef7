"""Clusters on this machine: two ray nodes, a dask scheduler with two workers, and a Slurm of three scripts."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import assay
from assay.lab.clusters import _job_options
from assay.lab.interrupts import interrupts_stay

HERE = Path(__file__).parent
SOURCE = Path(assay.__file__).parent
UNITS = "6"
REAL = "looped-transformers"
# Ray asks its nodes for a token otherwise, which is kept in the home folder.
QUIET = {"RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0", "PYTHONWARNINGS": "ignore"}

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def process(*command, **options):
    """A process that does not outlive the block, nor do those that it started."""
    with subprocess.Popen([str(word) for word in command], start_new_session=True, text=True, **options) as started:
        try:
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, 15)
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, 9)


@contextlib.contextmanager
def ray_nodes(**environment: str):
    """Two nodes of ray, whose workers have this environment besides; gives the address."""
    pytest.importorskip("ray", reason="ray is not installed: it is in the extra cluster")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    env = {**os.environ, **QUIET, **environment}
    with process(sys.executable, HERE / "ray_nodes.py", env=env, **pipes) as nodes:
        yield nodes.stdout.readline().strip()
        nodes.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            nodes.wait(60)  # it takes its nodes down


@pytest.fixture(scope="module")
def ray_address():
    with ray_nodes() as address:
        yield address


@pytest.fixture(scope="module")
def start_dask(tmp_path_factory):
    """Start a dask scheduler with one worker for each given set of options; returns the address."""
    pytest.importorskip("distributed", reason="dask is not installed: it is in the extra cluster")
    with contextlib.ExitStack() as stack:

        def start(*workers: tuple[str, ...], **environment: str) -> str:
            place = tmp_path_factory.mktemp("dask")
            known = place / "scheduler.json"
            options = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            dask = [sys.executable, "-m", "dask"]
            scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            stack.enter_context(process(*dask, *scheduler, "--scheduler-file", known, **options))
            alone = ["worker", "--scheduler-file", known, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            for words in workers:
                stack.enter_context(process(*dask, *alone, *words, env={**os.environ, **environment}, **options))
            return address_in(known)

        yield start


def address_in(path: Path) -> str:
    from distributed import Client

    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, "the scheduler did not start"
        time.sleep(0.1)
    with Client(scheduler_file=str(path)) as client:
        return client.scheduler.address


@pytest.fixture(scope="module")
def dask_address(start_dask):
    return start_dask((), ("--resources", "GPU=1"))


def command(verb: str, study: str, *words: str, runs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    studies = ["--studies", str(HERE / "fixtures")] if study != REAL else []
    given = [verb, study, "--preset", "smoke", "--runs", str(runs), *words, *studies]
    # From a folder in which no copy of the package lies.
    return subprocess.run(
        [sys.executable, "-m", "assay.cli", *given],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=runs.parent,
        env={**os.environ, **QUIET, **environment},
    )


def run(runs: Path, study: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return command("run", study, *words, runs=runs, **environment)


def table(runs: Path, study: str):
    from assay import lab

    outside = HERE / "fixtures" if study == "slow" else None
    found = lab.open_run(study, preset="smoke", runs=runs, studies=outside)
    assert found.manifest.status == "complete"
    frame = found.measurements
    return frame.drop("value").rows(), frame["value"].to_numpy().tobytes()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The tables of runs in one process of this machine."""
    place = tmp_path_factory.mktemp("local")
    for words in (("slow", "--set", f"units={UNITS}"), (REAL,)):
        found = run(place / "runs", *words, "--jobs", "1")
        assert found.returncode == 0, found.stderr
    return {study: table(place / "runs", study) for study in ("slow", REAL)}


@pytest.mark.parametrize("backend", ["ray", "dask"])
@pytest.mark.parametrize("study", ["slow", REAL])
def test_a_cluster_gives_the_same_table_bit_for_bit(backend, study, local, request, tmp_path):
    address = request.getfixturevalue(f"{backend}_address")
    words = ["--set", f"units={UNITS}"] if study == "slow" else []
    found = run(tmp_path / "runs", study, *words, "--backend", backend, "--address", address)
    assert found.returncode == 0, found.stderr
    assert table(tmp_path / "runs", study) == local[study]


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_units_for_a_gpu_go_where_one_is(backend, request, tmp_path):
    """Asked of joblib itself: no unit can be computed on a GPU that is a number."""
    address = request.getfixturevalue(f"{backend}_address")
    script = tmp_path / "ask.py"
    script.write_text(
        "import sys, joblib\n"
        "from assay.lab.clusters import joblib_backend\n"
        "def place(kind):\n"
        "    if kind == 'ray':\n"
        "        import os\n"
        "        return len(os.environ.get('CUDA_VISIBLE_DEVICES', '').split())\n"
        "    from distributed import get_worker\n"
        "    return get_worker().state.total_resources.get('GPU', 0)\n"
        "with joblib_backend(sys.argv[1], 0, sys.argv[2], 'cuda') as workers:\n"
        "    asked = (joblib.delayed(place)(sys.argv[1]) for _ in range(6))\n"
        "    found = joblib.Parallel(n_jobs=workers.count(), batch_size=1)(asked)\n"
        "print([int(each) for each in found])\n"
    )
    words = [sys.executable, script, backend, address]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, **QUIET})
    assert found.stdout.strip() == "[1, 1, 1, 1, 1, 1]", found.stderr


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_worker_with_another_checkout_is_refused_by_name(backend, request, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(SOURCE, other / "assay", ignore=shutil.ignore_patterns("__pycache__"))
    path = other / "assay" / "training" / "seeds.py"
    path.write_text(path.read_text().replace("return self.draw(", "return 1 * self.draw("))
    with contextlib.ExitStack() as stack:
        if backend == "ray":
            address = stack.enter_context(ray_nodes(PYTHONPATH=str(other)))
        else:
            address = request.getfixturevalue("start_dask")((), PYTHONPATH=str(other))
        words = ["--arms", "shortcut", "--backend", backend, "--address", address]
        found = run(tmp_path / "runs", REAL, *words)
    assert found.returncode == 1
    assert f"({other / 'assay'}) than where the run was planned" in found.stderr


def test_an_address_where_nobody_answers_is_refused(tmp_path):
    pytest.importorskip("distributed", reason="dask is not installed: it is in the extra cluster")
    words = ["--backend", "dask", "--address", "tcp://127.0.0.1:9"]
    found = run(tmp_path / "runs", "slow", *words, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="2s")
    assert found.returncode == 2
    assert "no dask cluster answers at tcp://127.0.0.1:9" in found.stderr


def test_what_is_stored_opens_no_cluster(tmp_path):
    pytest.importorskip("distributed", reason="dask is not installed: it is in the extra cluster")
    assert run(tmp_path / "runs", "slow").returncode == 0
    found = run(tmp_path / "runs", "slow", "--backend", "dask", "--address", "tcp://127.0.0.1:9")
    assert found.returncode == 0, found.stderr


SLURM = {
    "sbatch": """#!/bin/sh
id=1; until mkdir "$FAKE_SLURM/$id.job" 2> /dev/null; do id=$((id + 1)); done  # several are sent at once
cp "$1" "$FAKE_SLURM/$id.sh"
setsid sh "$FAKE_SLURM/$id.sh" > "$FAKE_SLURM/$id.out" 2>&1 &
echo $! > "$FAKE_SLURM/$id.pid"
echo "Submitted batch job $id"
""",
    "squeue": """#!/bin/sh
for pid in "$FAKE_SLURM"/*.pid; do kill -0 $(cat "$pid") 2> /dev/null && basename "$pid" .pid; done
""",
    "scancel": """#!/bin/sh
for id in "$@"; do kill -- -$(cat "$FAKE_SLURM/$id.pid") 2> /dev/null; echo $id >> "$FAKE_SLURM/cancelled"; done
""",
}


@pytest.fixture
def slurm(tmp_path):
    """A Slurm of three scripts: the environment in which they are found, and the folder of its jobs."""
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("dask-jobqueue is not installed: it is in the extra cluster")
    programs, jobs = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    jobs.mkdir()
    for name, text in SLURM.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    settings = tmp_path / "dask" / "jobqueue.yaml"
    settings.parent.mkdir()
    settings.write_text("jobqueue:\n  slurm:\n    queue: short\n    account: theory\n    walltime: '00:10:00'\n")
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "FAKE_SLURM": str(jobs),
        "DASK_CONFIG": str(settings.parent),
    }
    return environment, jobs


def test_slurm_runs_the_workers(local, slurm, tmp_path):
    environment, jobs = slurm
    words = ["--backend", "slurm", "--jobs", "2", "--set", f"units={UNITS}"]
    found = run(tmp_path / "runs", "slow", *words, **environment)
    assert found.returncode == 0, found.stderr + "".join(path.read_text() for path in jobs.glob("*.out"))
    assert table(tmp_path / "runs", "slow") == local["slow"]
    script = (jobs / "1.sh").read_text()
    assert "#SBATCH -p short" in script
    assert "#SBATCH -A theory" in script
    assert len(list(jobs.glob("*.sh"))) == 2, "as many jobs were sent as were asked for"
    assert set((jobs / "cancelled").read_text().split()) == {"1", "2"}


@pytest.mark.parametrize(
    ("sbatch", "reason"),
    [
        ("#!/bin/sh\necho 'sbatch: error: invalid partition specified: short' >&2\nexit 1\n", "invalid partition"),
        ("#!/bin/sh\necho 'the queue is closed'\n", "Could not parse job id"),
        (None, "there is no command sbatch here"),
    ],
)
def test_a_slurm_that_takes_no_job_is_told_in_a_sentence(slurm, tmp_path, sbatch, reason):
    """dask-jobqueue raises it in another thread, and the run waited for a worker for ever."""
    environment, _ = slurm
    program = tmp_path / "bin" / "sbatch"
    program.unlink() if sbatch is None else program.write_text(sbatch)
    found = run(tmp_path / "runs", "slow", "--backend", "slurm", "--jobs", "2", **environment)
    assert found.returncode == 2, found.stderr
    assert "assay: Slurm takes no job: " in found.stderr
    assert reason in found.stderr
    assert "Traceback" not in found.stderr


def test_a_slurm_that_takes_some_jobs_runs_on_those(local, slurm, tmp_path):
    environment, _ = slurm
    program = tmp_path / "bin" / "sbatch"
    limit = '#!/bin/sh\n[ -e "$FAKE_SLURM/1.job" ] && { echo "error: one job a user" >&2; exit 1; }\n'
    program.write_text(program.read_text().replace("#!/bin/sh\n", limit))
    words = ["--backend", "slurm", "--jobs", "2", "--set", f"units={UNITS}"]
    found = run(tmp_path / "runs", "slow", *words, **environment)
    assert found.returncode == 0, found.stderr
    assert table(tmp_path / "runs", "slow") == local["slow"]


def test_a_sweep_sends_its_jobs_to_slurm_once(slurm, tmp_path):
    """It computes in several batches: to find the arms that the claim reads, and between looks at the clock."""
    environment, jobs = slurm
    axes = ("--vary", "signal=0.5,1.5,2.5", "--vary", "noise=0.01,0.02,0.03")
    words = (*axes, "--claim", "C1", "--budget", "1h", "--backend", "slurm", "--jobs", "2")
    found = command("sweep", "mapped", *words, runs=tmp_path / "runs", **environment)
    assert found.returncode == 0, found.stderr + "".join(path.read_text() for path in jobs.glob("*.out"))
    assert "3 fails, 6 holds" in found.stdout
    assert len(list(jobs.glob("*.sh"))) == 2
    assert set((jobs / "cancelled").read_text().split()) == {"1", "2"}
    assert found.stderr.count("waiting for the first worker") == 1
    again = command("sweep", "mapped", *words, runs=tmp_path / "runs", **environment)
    assert again.returncode == 0, again.stderr
    assert len(list(jobs.glob("*.sh"))) == 2, "for what is stored no cluster is opened"


def test_a_job_of_slurm_has_a_worker_for_each_core_and_one_for_its_gpu():
    dask = pytest.importorskip("dask", reason="dask is not installed: it is in the extra cluster")
    with interrupts_stay():
        queue = pytest.importorskip("dask_jobqueue", reason="it is in the extra cluster")
    settings = {"jobqueue.slurm.cores": 4, "jobqueue.slurm.job-extra-directives": ["--gres=gpu:1"]}
    with dask.config.set(settings):
        scripts = {
            device: queue.slurm.SLURMJob("tcp://127.0.0.1:1", "worker", **_job_options(device)).job_script()
            for device in ("cpu", "cuda")
        }
    assert all("#SBATCH --cpus-per-task=4" in script for script in scripts.values())
    assert "--nworkers 4" in scripts["cpu"]
    assert "--nworkers" not in scripts["cuda"]
    assert "--nthreads 1" in scripts["cuda"]
    assert "--resources GPU=1" in scripts["cuda"]


def test_jobs_that_reached_their_end_are_sent_again(slurm, tmp_path):
    """Between two batches of a sweep, which may outlive the time of its jobs."""
    environment, jobs = slurm
    script = tmp_path / "ask.py"
    script.write_text(
        "import os, sys, time, joblib\n"
        "from pathlib import Path\n"
        "from distributed import default_client\n"
        "from assay.lab.clusters import joblib_backend\n"
        "def asked(workers):\n"
        "    return joblib.Parallel(n_jobs=max(2, workers.count()))(joblib.delayed(abs)(-k) for k in range(3))\n"
        "with joblib_backend('slurm', 1, None) as workers:\n"
        "    first = asked(workers)\n"
        "    os.killpg(int((Path(sys.argv[1]) / '1.pid').read_text()), 9)\n"
        "    while default_client().ncores():\n"
        "        time.sleep(0.1)\n"
        "    print(first, asked(workers))\n"
    )
    found = subprocess.run(
        [sys.executable, script, jobs],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, **QUIET, **environment},
    )
    assert found.stdout.strip() == "[0, 1, 2] [0, 1, 2]", found.stderr
    assert len(list(jobs.glob("*.sh"))) == 2
