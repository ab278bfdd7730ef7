"""Jobs of Slurm, sent by dask-jobqueue, and a sentence where Slurm takes none of them."""

from __future__ import annotations

import time
from typing import Any

from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed.core import Status

from .errors import UserError
from .events import Listener, Said, nobody


class NotingJob(SLURMJob):  # type: ignore[misc]
    """A job that notes what became of its submission. dask-jobqueue raises a refusal in a thread where nobody hears
    it, and the cluster waits for a worker for ever."""

    async def start(self) -> None:
        submissions: list[str | None] = self.submissions
        try:
            await super().start()
        except (OSError, RuntimeError, ValueError) as error:
            submissions.append(_reason(error))
            self.status = Status.running  # as far as the cluster knows: there is nothing to take back
        else:
            submissions.append(None)


def slurm_cluster(**options: Any) -> Any:
    """A cluster without jobs yet; ``submissions`` has an entry for each that was sent: None, or why it was refused."""
    submissions: list[str | None] = []
    job = type("Job", (NotingJob,), {"submissions": submissions})
    cluster = SLURMCluster(job_cls=job, scheduler_options={"dashboard_address": None}, **options)
    cluster.submissions = submissions
    return cluster


def send(cluster: Any, jobs: int) -> None:
    """Ask for as many workers; what was said of earlier jobs is forgotten."""
    cluster.submissions.clear()
    cluster.scale(jobs or 1)


def wait_for_a_worker(client: Any, tell: Listener = nobody) -> None:
    """Until a worker is there, however long jobs queue, unless Slurm has refused every job that it was asked for."""
    told = False
    while not client.ncores():
        submissions: list[str | None] = list(client.cluster.submissions)
        asked, refused = len(client.cluster.worker_spec), [reason for reason in submissions if reason is not None]
        if refused and len(refused) >= asked:
            raise UserError(f"Slurm takes no job: {refused[0]}")
        if refused and len(submissions) >= asked and not told:
            tell(Said(f"Slurm refused {len(refused)} of {asked} jobs: {refused[0]}"))
            told = True
        time.sleep(0.1)


def _reason(error: Exception) -> str:
    """What the command itself said, where it ran."""
    if isinstance(error, FileNotFoundError):
        return f"there is no command {error.filename or SLURMJob.submit_command} here"
    words = str(error)
    said = [line.strip() for line in words.rpartition("stderr:")[2].splitlines() if line.strip()]
    return said[0] if said else words.splitlines()[0]
