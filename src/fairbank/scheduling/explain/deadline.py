"""Deadline of a waiting job (`--deadline`): the latest start with which the job can end by it,
compared with the expected start (slurm-rules.md, "Deadlines").
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import JobCheck, StartRange
from fairbank.scheduling.explain.job_view import JobView
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.node_table import NodeTable


class DeadlineRisk(Enum):
    """Risk that a job misses its deadline. The value is a sentence for the headline, if any."""

    IN_TIME = ""
    AT_RISK = "It may start too late to end by its deadline."
    TOO_LATE = "Its expected start is too late to end by its deadline."
    MISSED = "It cannot end by its deadline any more: slurmctld will remove it (DeadLine)."


class DeadlineOutlook(NamedTuple):
    """Risk of a job with a deadline, and the check with its times."""

    risk: DeadlineRisk
    check: JobCheck


def deadline_outlook(view: JobView, likely: StartRange | None) -> DeadlineOutlook | None:
    """Return whether the job can end by its deadline; None without one."""
    job = view.job
    latest = latest_start(job, view.snapshot.machine.cluster)
    if job.deadline is None or latest is None:
        return None
    risk, start = _compare(view, likely, latest)
    evidence = f"it must end by {iso(job.deadline)}, so it must start by {iso(latest)}; {start}"
    return DeadlineOutlook(risk, JobCheck("deadline", risk is DeadlineRisk.IN_TIME, evidence))


def latest_start(job: PendingJob, cluster: NodeTable) -> int | None:
    """Return the latest start with which the job can end by its deadline; None without one."""
    if job.deadline is None:
        return None
    rules = cluster.rules
    seconds = [job.least_seconds(rules[name]) for name in job.partitions if name in rules]
    return job.deadline - min(seconds, default=job.time_min or job.limit or 0)


def _compare(view: JobView, likely: StartRange | None, latest: int) -> tuple[DeadlineRisk, str]:
    """Compare the start with the latest one, and return it in words."""
    if view.now > latest:
        return DeadlineRisk.MISSED, "that is over"
    if likely is not None and likely.earliest is not None:
        until = "an unknown time" if likely.latest is None else iso(likely.latest)
        start = f"its likely start is from {iso(likely.earliest)} to {until}"
        if likely.earliest > latest:
            return DeadlineRisk.TOO_LATE, start
        is_in_time = likely.latest is not None and likely.latest <= latest
        return (DeadlineRisk.IN_TIME if is_in_time else DeadlineRisk.AT_RISK), start
    if view.reservation is None:
        return DeadlineRisk.AT_RISK, "its start is unknown"
    # All jobs ahead are assumed to use their whole limits, so it may start earlier.
    start = f"its reserved start is {iso(view.reservation.at)}"
    return (DeadlineRisk.TOO_LATE if view.reservation.at > latest else DeadlineRisk.IN_TIME), start
