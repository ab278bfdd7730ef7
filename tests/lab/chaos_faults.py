"""The faults of the harness: each prepares its place, happens, and is over before the run that must be right."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


class Skip(Exception):
    """Why a fault cannot be made here."""


def obey_modes() -> None:
    """Root may read everything, and a fault is a file that may not be read: give that power up, for good."""
    if os.getuid() != 0:
        return
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice
    if libc.capget(header, sets) == 0:
        sets[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.capset(header, sets)


class Fault:
    """One kind of fault, ``share`` of a thousand. It finds a store that has kept one of the shares ``kept`` of its
    units and lacks ``lacks`` of them at least. ``happen`` hands back the answer of the run, which must end as ``ends``
    says, or as ``missed`` does where it never met the fault. What was in flight may be computed twice, and nothing
    else."""

    share: int
    kept: tuple[float, ...] = (0.0, 0.5, 0.5, 1.0)
    lacks = 0
    ends: tuple[str, ...] = ("complete",)
    missed: tuple[str, ...] = ()
    in_flight = 1
    delay = 0.004  # seconds that a unit takes, beside what storing it takes

    def __init__(self, trial) -> None:
        self.trial, self.draw = trial, trial.draw

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *error) -> None:
        pass

    def happen(self) -> dict:
        raise NotImplementedError

    def met(self, answer: dict) -> bool:
        return answer["end"] not in self.missed

    def over(self) -> None:
        pass


class KilledByTheClock(Fault):
    share = 100
    ends = ("killed",)
    missed = ("complete",)

    def happen(self) -> dict:
        child = self.trial.start()
        self.trial.pause(0.1)
        child.signal(signal.SIGKILL)
        return child.answer()


STEPS = ("open", "os.listdir", "os.scandir", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


class KilledAtAStep(Fault):
    """The process ends between two steps on the file system, whichever they are."""

    share = 270
    ends = ("killed",)
    missed = ("complete",)

    def happen(self) -> dict:
        left, place = self.draw.randrange(1, 250), str(self.trial.runs)

        def count(event: str, arguments: tuple) -> None:
            nonlocal left
            if event in STEPS and isinstance(arguments[0], (str, Path)) and str(arguments[0]).startswith(place):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        return self.trial.start(before=lambda: sys.addaudithook(count)).answer()


class Interrupted(Fault):
    share = 90
    ends = ("interrupted",)
    missed = ("complete",)

    def happen(self) -> dict:
        child = self.trial.start()
        self.trial.pause(0.1)
        child.signal(signal.SIGINT)
        return child.answer()


class TwoMains(Fault):
    """Two runs on one store; half the time one of them is killed."""

    share = 170
    lacks = 1  # with nothing to compute, they do not meet
    ends = ("complete", "killed")
    in_flight = 0

    def happen(self) -> dict:
        children = [self.trial.start(), self.trial.start()]
        if self.draw.random() < 0.5:
            self.in_flight = 1
            self.trial.pause(0.1)
            children[0].signal(signal.SIGKILL)
        first, second = (child.answer() for child in children)
        return first if second["end"] == "complete" else second


class DamagedByte(Fault):
    """A byte of a stored file is another one, or the end of the file is gone."""

    share = 120
    kept = (0.5, 0.5, 1.0)
    missed = ("nothing to damage",)
    in_flight = 0

    def happen(self) -> dict:
        files = [path for unit in self.trial.units() for path in unit.iterdir()]
        files += list(self.trial.store.manifests.glob("*.json"))
        if not files:
            return {"end": "nothing to damage"}
        path = self.draw.choice(files)
        content = bytearray(path.read_bytes())
        if self.draw.random() < 0.3:
            content = content[: self.draw.randrange(len(content))]
        else:
            content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        self.trial.damage(path, bytes(content))
        return self.trial.start().answer()


class FileThatIsGone(Fault):
    share = 50
    kept = (0.5, 0.5, 1.0)
    missed = ("nothing to remove",)
    in_flight = 0

    def happen(self) -> dict:
        files = [path for unit in self.trial.units() for path in unit.iterdir()]
        if not files:
            return {"end": "nothing to remove"}
        self.trial.damage(self.draw.choice(files), None)
        return self.trial.start().answer()


class UnreadableFile(Fault):
    """A file that may not be read is refused by name; a unit is not thrown away for it."""

    share = 70
    kept = (0.5, 0.5, 1.0)
    ends = ("refused",)
    missed = ("nothing to hide",)
    in_flight = 0
    path: Path | None = None

    def happen(self) -> dict:
        files = [path for unit in self.trial.units() for path in (unit, *unit.iterdir())]
        if not files:
            return {"end": "nothing to hide"}
        self.path = self.draw.choice(files)
        self.mode = self.path.stat().st_mode
        self.path.chmod(0)
        return self.trial.start().answer()

    def over(self) -> None:
        if self.path is not None:
            self.path.chmod(self.mode)


class FullDisk(Fault):
    """The store is on a file system of some kilobytes, which later has more."""

    share = 50
    kept = (0.0, 0.5)
    lacks = 2
    ends = ("refused",)
    missed = ("complete",)

    def __enter__(self) -> Fault:
        self.place = self.trial.folder
        found = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m,mode=777", "tmpfs", self.place], capture_output=True, text=True
        )
        if found.returncode:
            raise Skip(f"no file system can be mounted here ({found.stderr.strip().splitlines()[-1]})")
        return self

    def __exit__(self, *error) -> None:
        subprocess.run(["umount", "-l", self.place], check=True)

    def happen(self) -> dict:
        used = (os.statvfs(self.place).f_blocks - os.statvfs(self.place).f_bfree) * os.statvfs(self.place).f_frsize
        self._size(used + 4096 * self.draw.randrange(0, 24))  # of which a unit takes four
        return self.trial.start().answer()

    def over(self) -> None:
        self._size(8 * 2**20)

    def _size(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={max(size, 4096)}", self.place], check=True)


class KilledHelper(Fault):
    """Somebody who computes for the run is killed; the run says so, starts others and completes."""

    kept = (0.0, 0.3)
    lacks = 4  # two in flight, and two that are still to be sent out
    missed = ("complete",)
    in_flight = 4  # of two workers: what they compute, and what they have computed and is not stored yet

    def met(self, answer: dict) -> bool:
        # Who is killed when all is computed is missed by nobody.
        died = any(sentence.startswith("a worker died") for sentence in answer.get("said", ()))
        return died or answer["end"] not in self.missed

    def wait(self, child, until: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not until() and not child.ended() and time.monotonic() < deadline:
            time.sleep(0.02)

    def wait_for_a_unit(self, child) -> None:
        stored = len(self.trial.units())
        self.wait(child, lambda: len(self.trial.units()) > stored)


class KilledWorker(KilledHelper):
    """One of two workers is killed, while they start or while they compute."""

    share = 62
    delay = 0.3

    def happen(self) -> dict:
        child = self.trial.start(jobs=2)
        if self.draw.random() < 0.5:
            self.wait(child, lambda: workers_of(child.pid))
            self.trial.pause(1.0)
        else:
            self.wait_for_a_unit(child)
            self.trial.pause(self.delay)
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(self.draw.choice(workers_of(child.pid)), signal.SIGKILL)
        return child.answer()


def workers_of(main: int) -> list[int]:
    """The processes that loky started for a run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == main and b"LokyProcess" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


class KilledRayNode(KilledHelper):
    """One of two nodes of a ray cluster is killed; the run goes on with the other."""

    share = 18
    delay = 0.5

    def __enter__(self) -> Fault:
        if importlib.util.find_spec("ray") is None:
            raise Skip("ray is not installed")
        return self

    def happen(self) -> dict:
        # A process of its own: this one must stay without threads, for it forks.
        helper = Path(__file__).with_name("ray_nodes.py")
        with subprocess.Popen(
            [sys.executable, helper], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as nodes:
            address = nodes.stdout.readline().strip()
            child = self.trial.start(jobs=2, backend="ray", address=address)
            self.wait_for_a_unit(child)
            self.trial.pause(self.delay / 2)  # then both nodes are at work on the next ones
            print("kill", file=nodes.stdin, flush=True)
            answer = child.answer()
            nodes.stdin.close()
        return answer


FAULTS: dict[str, type[Fault]] = {
    "main process killed at a random time": KilledByTheClock,
    "main process killed at a random step on the disk": KilledAtAStep,
    "main process interrupted (SIGINT)": Interrupted,
    "two main processes on one store, one killed at times": TwoMains,
    "byte flipped or file cut": DamagedByte,
    "file removed": FileThatIsGone,
    "file or unit unreadable": UnreadableFile,
    "disk full (small tmpfs)": FullDisk,
    "worker killed": KilledWorker,
    "ray node killed": KilledRayNode,
}
