"""Facts of a waiting job that the model of the scheduler does not know."""

from __future__ import annotations

from fairbank.core.errors import Conflict, NotFound
from fairbank.scheduling.explain.answer import BankRefusal
from fairbank.scheduling.explain.checks import JobCredit
from fairbank.scheduling.explain.dependencies import OpenDependencies
from fairbank.scheduling.explain.explanation import JobFacts, StatedWait
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import NEVER_TESTED, PRIORITY, RESOURCES, SchedulePlan
from fairbank.scheduling.reason import explain_reason
from fairbank.slurm.explain.components import pending_components
from fairbank.slurm.explain.job_credit import bank_refusal, release_of
from fairbank.slurm.parsers.job_lines import read_ended_jobs
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.dependencies import open_dependencies
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue


def job_facts(
    job: PendingJob,
    queue: LiveQueue,
    plan: SchedulePlan[PendingJob, Placement],
    credit: JobCredit | None,
    answer: str,
) -> JobFacts:
    """Return what the scheduler does not know of a job. Raises Conflict if it can start.

    Args:
        credit: credit of the job, if it is known.
        answer: the jobs of slurmctld, with those that ended lately.
    """
    slurm_job = queue.slurm_jobs[job.number]
    refusal = bank_refusal(slurm_job, credit)
    components = pending_components(slurm_job, queue, plan)
    # Backfill gives this reason to a component that has none.
    reason = RESOURCES if slurm_job.reason == NEVER_TESTED else slurm_job.reason
    stated = components.stated_wait(reason)
    if stated is None and any(start.job.number == job.number for start in plan.starts):
        stated = _stated_wait(job.name, slurm_job, refusal)
    return JobFacts(
        credit=credit,
        refusal=refusal,
        release=release_of(slurm_job),
        awaiting=_awaited_jobs(job, queue, answer),
        stated=stated,
        more_checks=components.checks(),
    )


def _stated_wait(job_id: str, slurm_job: SlurmJob, refusal: BankRefusal | None) -> StatedWait:
    """Return why a job waits that the model would start. Raises Conflict if it can start, unless
    the bank would refuse that.
    """
    reason = slurm_job.reason
    is_tested = reason != NEVER_TESTED
    if not is_tested and refusal is not None:
        return StatedWait(reason, "waits for the next pass of slurmctld")
    if not is_tested:
        raise Conflict(
            f"job {job_id} can start: nothing that is known here keeps it waiting",
            field="JOBID",
            remedy=(
                "slurmctld starts it with its next pass; ask again if it still waits in a minute"
            ),
        )
    try:
        sentence = explain_reason(reason).removesuffix(".")
    except NotFound:  # a text of the site, from a plug-in or an administrator
        sentence = "it gives no other reason"
    # Of these two a test between passes may be out of date.
    passing = ", so it may start with the next pass" if reason in (RESOURCES, PRIORITY) else ""
    return StatedWait(
        reason, f"waits, says slurmctld: {sentence}; no check here finds why{passing}"
    )


def _awaited_jobs(job: PendingJob, queue: LiveQueue, answer: str) -> OpenDependencies:
    """Return the jobs that it depends on; `answer` also lists those that ended lately."""
    numbers = {
        dependency.job
        for dependency in queue.slurm_jobs[job.number].dependencies.items
        if dependency.job is not None
    }
    return open_dependencies(job, queue.slurm_jobs, read_ended_jobs(answer, numbers))
