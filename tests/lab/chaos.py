"""Faults at random moments against the store, and what is left of it: `make chaos N=1000`.

Each trial takes a store with some units of a toy study in it, lets one fault happen to it or to runs that write to it,
and then asks: is every unit that was finished before, and not itself attacked, the same byte for byte? Does a run
afterwards complete, with each unit once and no leftovers, does it reuse all that was finished by then and leave it as
it was, and is its table that of the undisturbed run? Was nothing computed a second time but what was in flight? Runs
are forks of this process, which has everything imported and computes nothing itself.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import hashlib
import importlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ |= {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}

from chaos_faults import FAULTS, Fault, Skip, obey_modes

from assay.lab import discovery, results, runner
from assay.lab.dispatch import Options
from assay.lab.errors import UserError
from assay.lab.events import Said
from assay.lab.execute import environment
from assay.lab.planning import make_plan
from assay.lab.store import Store
from assay.lab.units import Request

FIXTURES = str(Path(__file__).parent / "fixtures")
UNITS, PATIENCE = 6, 300.0
MEMORY = Path("/dev/shm")
TRIES = 20  # in a row that met nobody, after which a fault is not tried any more


class Child:
    """A fork at work; its answer comes through a pipe, and one that was killed has none."""

    def __init__(self, work) -> None:
        reading, writing = os.pipe()
        # A fork that is interrupted before it is at work would go on as its parent, which tidies up at its end.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(reading)
                os.write(writing, json.dumps(self._tried(work)).encode())
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.close(writing)
        self._pipe = reading

    @staticmethod
    def _tried(work) -> dict:
        os.setpgid(0, 0)
        obey_modes()
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            answer = work()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        except UserError as error:
            return {"end": "refused", "why": str(error)}
        except KeyboardInterrupt:
            return {"end": "interrupted"}
        except BaseException:
            return {"end": "broken", "why": traceback.format_exc()}
        return answer

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)  # it is not reaped yet, so its number is its own

    def ended(self) -> bool:
        """Whether it is over; it stays to be asked for its answer."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def answer(self) -> dict:
        deadline = time.monotonic() + PATIENCE
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                os.close(self._pipe)
                return {"end": "hung"}
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # idle workers, which would stay for minutes with our output open
        for semaphore in MEMORY.glob(f"sem.loky-{self.pid}-*"):  # who would remove them was killed with the workers
            semaphore.unlink(missing_ok=True)
        with open(self._pipe, "rb") as pipe:
            said = pipe.read()
        return json.loads(said) if said else {"end": "killed", "why": str(ended[1])}


class Trial:
    """A store with some units, and the ways to run the study on it."""

    def __init__(self, folder: Path, draw: random.Random, delay: float) -> None:
        self.folder, self.draw, self.delay = folder, draw, delay
        self.runs = folder / "runs"
        self.log = folder.with_name(f"{folder.name}.log")  # beside the folder, whose disk may be full
        self.damaged: dict[str, str] = {}  # units that the fault damaged, and what they were like then

    @property
    def store(self) -> Store:
        return Store(self.runs, "slow")

    def units(self) -> list[Path]:
        return sorted(self.store.units.glob("[!.]*"))

    def start(self, *, before=None, jobs: int = 1, backend: str = "loky", address=None) -> Child:
        def work() -> dict:
            if before is not None:
                before()
            return run_once(self.runs, Options(jobs, backend, address, FIXTURES), self.delay, self.log)

        return Child(work)

    def rerun(self) -> dict:
        """The run after the fault, which must be right."""
        return self.start(before=hurry).answer()

    def pause(self, longest: float) -> None:
        time.sleep(self.draw.uniform(0, longest))

    def begun(self) -> int:
        """How often anybody began to compute a unit."""
        return self.log.read_text().count("\n") if self.log.exists() else 0

    def contents(self) -> dict[str, str]:
        """Each finished unit by a hash of all its files."""
        return {unit.name: digest(unit) for unit in self.units()}

    def damage(self, path: Path, content: bytes | None) -> None:
        """Give a file another content, or none: then it is gone. A unit that it belongs to counts as damaged."""
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        if path.parent.parent == self.store.units:
            self.damaged[path.parent.name] = digest(path.parent)


def hurry() -> None:
    """Let units take no time where nothing will happen to the run; how long they should take is part of their keys."""
    time.sleep = lambda seconds: None


def digest(folder: Path) -> str:
    """What a unit's files say, and which files they are: computed again, a unit may come to the very same bytes."""
    content = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found = path.stat()
        content.update(f"{path.name} {found.st_ino} {found.st_mtime_ns}\n".encode() + path.read_bytes())
    return content.hexdigest()


def run_once(runs: Path, options: Options, delay: float = 0.0, log: Path | str = "") -> dict:
    said: list[str] = []
    study = discovery.find("slow", FIXTURES)
    request = Request("smoke", {"units": str(UNITS), "delay": str(delay), "log": str(log)})
    store = Store(runs, "slow")
    plan = make_plan(study, request, store)
    done = runner.run(
        plan, store, options, lambda event: said.append(event.sentence) if isinstance(event, Said) else None
    )
    manifest = done.manifest
    answer = {"end": manifest.status, "computed": done.computed, "reused": done.reused, "said": said}
    if manifest.status == "complete":
        measured = results.load(store, study, manifest)
        rows = json.dumps([[str(cell) for cell in row] for row in measured.frame.drop("value").rows()])
        table = hashlib.sha256(rows.encode() + measured.frame["value"].to_numpy().tobytes())
        for k in range(UNITS):
            table.update(measured.array("path", k=k).tobytes())
        answer |= {"table": table.hexdigest(), "units": len({unit.key for unit in manifest.units})}
    return answer


def warmed() -> None:
    """Do once, before any fork, what every run would begin with. Nothing of it starts a thread."""
    for name in ("torch", "polars", "scipy", "safetensors.numpy", "threadpoolctl", "filelock", "assay.training.seeds"):
        importlib.import_module(name)
    environment("cpu")
    make_plan(discovery.find("slow", FIXTURES), Request("smoke"), None)


def prepared(trial: Trial, fault: Fault) -> None:
    """A store as it may be found: empty, with all units or with some, as far as the fault can meet somebody there."""
    share = trial.draw.choice(fault.kept)
    if share:
        assert trial.start(before=hurry).answer()["end"] == "complete"
        units = trial.units()
        trial.draw.shuffle(units)
        for number, unit in enumerate(units):
            if number < fault.lacks or trial.draw.random() > share:
                shutil.rmtree(unit)


def suffered(name: str, folder: Path, draw: random.Random, table: str) -> tuple[str, list[str]]:
    """Let one fault happen: how the runs that met it ended, if any did, and what was not right afterwards."""
    folder.mkdir()
    trial = Trial(folder, draw, FAULTS[name].delay)
    with FAULTS[name](trial) as fault:
        prepared(trial, fault)
        before, begun = trial.contents(), trial.begun()
        answer = fault.happen()
        fault.over()  # what is stored can be looked at again
        after = trial.contents()
        last = trial.rerun()
        wrong = not_right(trial, before, after, last)
        again = trial.begun() - begun - (UNITS - len(before)) - len(trial.damaged)
        if again > fault.in_flight:
            wrong.append(f"{again} units were computed once more, and {fault.in_flight} may have been in flight")
        met = fault.met(answer)
        if answer["end"] not in (fault.ends if met else fault.missed):
            wrong.append(f"the run ended otherwise than it should: {answer}")
        if last["end"] == "complete":
            wrong += ["the table is another"] if last["table"] != table else []
            wrong += ["units are stored twice"] if not len(trial.units()) == last["units"] == UNITS else []
            wrong += [f"left over: {path.name}" for path in trial.store.units.glob(".tmp-*")]
    shutil.rmtree(folder, ignore_errors=True)
    trial.log.unlink(missing_ok=True)
    return answer["end"] if met or wrong else "missed", wrong


def not_right(trial: Trial, before: dict[str, str], after: dict[str, str], last: dict) -> list[str]:
    """What was lost of that which was finished before the fault, or before the last run."""
    spared = {unit: content for unit, content in before.items() if unit not in trial.damaged}
    finished = {unit: content for unit, content in after.items() if content != trial.damaged.get(unit)}
    at_last = trial.contents()
    wrong = lost(spared, after, "when the fault was over") + lost(finished, at_last, "after the last run")
    wrong += [f"{unit} is damaged still" for unit, content in trial.damaged.items() if at_last.get(unit) == content]
    if last["end"] != "complete":
        wrong.append(f"the run afterwards: {last}")
    elif last["reused"] != len(finished) or last["computed"] != UNITS - len(finished):
        wrong.append(
            f"of {len(finished)} finished units the last run reused {last['reused']}, and computed {last['computed']}"
        )
    return wrong


def lost(earlier: dict[str, str], later: dict[str, str], when: str) -> list[str]:
    """The finished units that are not what they were."""
    gone = [f"{unit} is gone {when}" for unit in earlier if unit not in later]
    return gone + [f"{unit} is another {when}" for unit in earlier if later.get(unit, earlier[unit]) != earlier[unit]]


def dealt(shares: dict[str, int], draw: random.Random) -> list[str]:
    """A thousand faults in random order, after each kind once."""
    rest = [name for name, share in shares.items() for _ in range(share - 1)]
    draw.shuffle(rest)
    return [*shares, *rest]


def table_of(counts: dict[str, collections.Counter]) -> str:
    lines = [
        "| fault | times | how the run that met it ended | afterwards | never met |",
        "| --- | ---: | --- | --- | ---: |",
    ]
    for name, seen in counts.items():
        wrong = seen["wrong"]
        ends = ", ".join(
            f"{count} {end}" for end, count in sorted(seen.items()) if end not in ("wrong", "times", "missed")
        )
        after = f"{wrong} NOT RIGHT" if wrong else "units intact, rerun equal" if seen["times"] else ""
        lines.append(f"| {name} | {seen['times']} | {ends} | {after} | {seen['missed']} |")
    return "\n".join(lines)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--faults", type=int, default=1000)
    asked.add_argument("--seconds", type=float, default=3600.0, help="no new fault after so many")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", help="faults with this in their names")
    asked.add_argument("--without", help="no faults with this in their names")
    asked.add_argument("--save", type=Path)
    options = asked.parse_args()
    draw, began = random.Random(options.seed), time.monotonic()
    shares = {
        name: fault.share
        for name, fault in FAULTS.items()
        if (options.only or "") in name and not (options.without and re.search(options.without, name))
    }
    counts = {name: collections.Counter() for name in shares}
    skipped: dict[str, str] = {}
    wrongs: list[str] = []
    warmed()
    # Kills and full disks are the same in memory, and waiting for a disk finds nothing.
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as place:
        os.environ["JOBLIB_TEMP_FOLDER"] = place  # who is killed leaves folders behind
        table = Child(lambda: run_once(Path(place) / "calm", Options(1, outside=FIXTURES))).answer()["table"]
        hand: list[str] = []
        met = tries = 0
        for number in itertools.count():
            if met == options.faults or len(skipped) == len(shares) or time.monotonic() - began > options.seconds:
                break
            if not tries:  # a fault that met nobody is tried again
                hand = hand or dealt(shares, draw)
                name = hand.pop(0)
            if name in skipped:
                continue
            try:
                end, wrong = suffered(name, Path(place) / str(number), random.Random(draw.random()), table)
            except Skip as reason:
                skipped[name], tries = str(reason), 0
                continue
            if end == "missed":
                counts[name]["missed"] += 1
                tries = (tries + 1) % TRIES
                if not tries:
                    skipped[name] = f"{TRIES} in a row met nobody"
                continue
            met, tries = met + 1, 0
            if met % 50 == 0:
                print(f"{met} faults, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            counts[name] += collections.Counter({"times": 1, end: 1, "wrong": bool(wrong)})
            wrongs += [f"fault {number}, {name}: {each}" for each in wrong]
            for each in wrong:
                print(f"fault {number}, {name}: {each}", flush=True)
    print(table_of(counts))
    for name, reason in skipped.items():
        print(f"{name}: skipped, {reason}")
    if options.save:
        document = {
            "about": "Faults at random moments, and whether units were intact and the rerun equal afterwards.",
            "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
            "seconds": round(time.monotonic() - began),
            "seed": options.seed,
            **environment("cpu"),
            "total": sum(seen["times"] for seen in counts.values()),
            "faults": {name: dict(seen) for name, seen in counts.items()},
            "skipped": skipped,
            "wrong": wrongs,
        }
        options.save.write_text(json.dumps(document, indent=1) + "\n")
        options.save.with_suffix(".md").write_text(table_of(counts) + "\n")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
