"""Job that waits, among those of the queue; errors for others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import Conflict, FairbankError, NotFound
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.parsers.job_lines import COMMAND as JOB_COMMAND
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue


class NotPending(Conflict):
    """The job does not wait: it runs, or is completing."""

    def __init__(
        self, job: SlurmJob, cluster: str | None, as_of: int, unreadable: Sequence[UnreadableLine]
    ) -> None:
        super().__init__(
            f"job {job.squeue_name} does not wait: it is {job.state.lower()}",
            field="JOBID",
            remedy="ask for one that waits: squeue --states=PENDING",
        )
        self.job, self.cluster, self.as_of, self.unreadable = job, cluster, as_of, unreadable


class NotListed(NotFound):
    """No job of this name waits or runs on the cluster, as far as its lines could be read.

    `unread` is the line of the job; None if it has none. `number` is that of a task that has ended;
    empty if it is not known.
    """

    def __init__(
        self,
        job_id: str,
        cluster: str | None,
        unread: UnreadableLine | None = None,
        number: str = "",
    ) -> None:
        super().__init__(
            f"slurmctld has no job {job_id} that waits"
            if unread is None
            else f"the line of job {job_id} could not be read: {unread}",
            field="JOBID",
            remedy=(
                "give a job that waits, as squeue --states=PENDING has it; "
                "sacct knows those that are over"
                if unread is None
                else f"see what Slurm has there: scontrol --oneliner show job {job_id}"
            ),
        )
        self.cluster, self.number = cluster, number


def find_pending(job_id: str, queue: LiveQueue) -> PendingJob | None:
    """Return the pending job of this name; of an array the task that is next; None without one."""
    named = [
        job
        for job in queue.snapshot.queue.jobs()
        if job_id
        in (job.name, str(job.array), str(job.number), queue.slurm_jobs[job.number].squeue_name)
    ]
    return min(named, key=lambda job: (job.name != job_id, job.task), default=None)


def not_waiting(
    job_id: str,
    queue: LiveQueue,
    cluster: str | None,
    unreadable: Sequence[UnreadableLine],
    answer: str,
) -> FairbankError:
    """Return the error for a job that does not wait.

    Args:
        job_id: the job, as squeue shows it.
        queue: the jobs that could be read.
        cluster: name of the cluster; None if unknown.
        unreadable: lines that could not be read.
        answer: output of scontrol with the lines of all jobs.
    """
    for slurm_job in queue.slurm_jobs.values():
        if not slurm_job.is_pending and job_id in (slurm_job.squeue_name, str(slurm_job.job_id)):
            return NotPending(slurm_job, cluster, queue.now, unreadable)
    name = re.compile(rf"\b(?:Array|Het)?JobId={re.split('[_+]', job_id)[0]}\b", re.ASCII)
    lines = {entry.line: entry for entry in unreadable if entry.command == JOB_COMMAND}
    for number, line in enumerate(answer.splitlines(), 1):
        if (unread := lines.get(number)) is not None and name.search(line):
            return NotListed(job_id, cluster, unread)
    array, _, task = job_id.partition("_")
    of_task = rf"\bJobId=(\d+) ArrayJobId={re.escape(array)} ArrayTaskId={re.escape(task)}\s"
    ended = re.search(of_task, answer, re.ASCII) if task else None
    return NotListed(job_id, cluster, number=ended[1] if ended else "")
