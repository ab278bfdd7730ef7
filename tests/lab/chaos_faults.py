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
    """One kind of fault. ``share`` is how often it is drawn, ``happen`` hands back the answer of the run; with an end
    among ``missed`` the run never met the fault. What was in flight may be computed twice, and nothing else."""

    share = 10.0
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

    def over(self) -> None:
        pass


class KilledByTheClock(Fault):
    missed = ("complete",)

    def happen(self) -> dict:
        child = self.trial.start()
        self.trial.pause(0.1)
        child.signal(signal.SIGKILL)
        return child.answer()


STEPS = ("open", "os.listdir", "os.scandir", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


class KilledAtAStep(Fault):
    """The process ends between two steps on the file system, whichever they are."""

    share = 30.0
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
    missed = ("complete",)

    def happen(self) -> dict:
        child = self.trial.start()
        self.trial.pause(0.1)
        child.signal(signal.SIGINT)
        return child.answer()


class TwoMains(Fault):
    """Two runs on one store; half the time one of them is killed."""

    share = 12.0
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

    share = 12.0
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
    share = 5.0
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

    share = 8.0
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

    share = 8.0
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
        self._size(used + 4096 * self.draw.randrange(0, 40))
        return self.trial.start().answer()

    def over(self) -> None:
        self._size(8 * 2**20)

    def _size(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={max(size, 4096)}", self.place], check=True)


class KilledWorker(Fault):
    """One of two workers is killed; the run starts others and completes."""

    share = 1.2
    missed = ("nobody to kill",)
    in_flight = 4  # of two workers: what they compute, and what they have computed and is not stored yet
    delay = 0.3

    def happen(self) -> dict:
        child = self.trial.start(jobs=2)
        deadline = time.monotonic() + 60
        while not workers_of(child.pid) and not child.ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.trial.pause(1.5)
        workers = workers_of(child.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.draw.choice(workers), signal.SIGKILL) if workers else None
        answer = child.answer()
        return answer if workers or answer["end"] != "complete" else answer | {"end": "nobody to kill"}


def workers_of(main: int) -> list[int]:
    """The processes that loky started for a run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == main and b"LokyProcess" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


class KilledRayNode(Fault):
    """One of two nodes of a ray cluster is killed; the run goes on with the other."""

    share = 0.2
    missed = ("nothing left to do",)
    in_flight = 4
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
            deadline = time.monotonic() + 60
            stored = len(self.trial.units())
            while len(self.trial.units()) == stored < 5 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.trial.pause(1.0)
            late = child.ended()
            print("kill", file=nodes.stdin, flush=True)
            answer = child.answer()
            nodes.stdin.close()
        return answer | {"end": "nothing left to do"} if late and answer["end"] == "complete" else answer


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
