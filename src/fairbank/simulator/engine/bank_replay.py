"""Recorded workload as the bank sees it: credit that it needs, starts and ends in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from fairbank.bank.pricing import cost
from fairbank.bank.requests import CreateProject
from fairbank.cluster.job import COMPLETED, JobDetails
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import is_name
from fairbank.core.slurm_numbers import CPU_SECONDS_MAX, CPUS_MAX
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import SuMinutes
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import Status, SwfJob
from fairbank.simulator.traces.swf import JobStream
from fairbank.simulator.traces.workload import TraceJob

OPEN_MAX = 1_000_000
"""Maximum number of jobs that wait or run at one time. Memory holds only these, 1 KiB each."""

_FIRST_GID, _FIRST_UID = 20_000, 100_000

_FEWER = "look at the wait times; a trace that is right can be replayed in parts"


class Payer(Enum):
    """Column that names the project that pays."""

    GROUP = "group"
    USER = "user"


class Fund(NamedTuple):
    """Payer and resource: a group (or user) of the trace, billed for a resource."""

    payer: int
    resource: str


def project_request(payer: Payer, number: int) -> CreateProject:
    """Return the request for the project of a payer of the trace."""
    name = f"{payer.value[0]}{number}"
    return CreateProject(gname=name, gid=_FIRST_GID + number, account=name)


def replay_uid(user: int) -> int:
    """Return the uid that stands for a user of the trace; unknown users share one."""
    return _FIRST_UID + max(user, 0)


def processor_price(processors: int, seconds: int) -> SuMinutes:
    """Return the price of a job, with one billing unit for each processor."""
    return cost(Fraction(processors), Fraction(1), seconds)


class CreditDemand(msgspec.Struct):
    """Credit that a trace needs: processor-seconds of each fund, the members of each payer, and the
    time span.

    `jobs` is the number of lines; of these `never_ran` and `without_size` have nothing to bill.
    """

    payer: Payer
    seconds: dict[Fund, int] = {}
    members: dict[int, set[int]] = {}
    begin: Instant = LAST_INSTANT
    end: Instant = Instant(0)
    jobs: int = 0
    never_ran: int = 0
    without_size: int = 0


class ReplayEvent(NamedTuple):
    """Start or end of a job, ordered by time. At one time ends free credit before starts; a job of
    length 0 ends after its start.
    """

    at: Instant
    kind: int
    number: int
    job: SwfJob

    @property
    def is_start(self) -> bool:
        return self.kind == _START


_END, _START, _END_AT_ONCE = 0, 1, 2


def resource_of(job: SwfJob | TraceJob, header: Header) -> str:
    """Return gpu for a job of a partition whose name begins with "gpu", else cpu."""
    return "gpu" if header.partitions.get(job.partition, "").lower().startswith("gpu") else "cpu"


def payer_of(job: SwfJob | TraceJob, payer: Payer) -> int:
    """Return the number of the group or user that pays; 0 if it is unknown."""
    return max(job.group if payer is Payer.GROUP else job.user, 0)


def billable_until(job: SwfJob) -> int | None:
    """Return the end of a job that ran and whose size is known; None for one with nothing to bill.

    A part of a run that has its own line is not billed twice.
    """
    return None if job.processors is None or job.is_part else job.end_time


SECOND_MAX = 1_000_000
"""Limit of the runs submitted in one second: waiting and running jobs are kept in memory."""


def distinct(jobs: Iterator[SwfJob]) -> Iterator[SwfJob]:
    """Yield the jobs, and check that no run appears twice.

    A run is identified by number and submit time. Traces are sorted by submit time, so only the
    jobs of one second have to be remembered. Lines with nothing to bill may repeat a number.

    Raises:
        InvalidInput: a run appears twice (with both line numbers), or more than SECOND_MAX runs are
            submitted in one second.
    """
    second, known = -1, dict[int, int]()
    for job in jobs:
        if job.submit_time != second:
            second = job.submit_time
            known.clear()
        line = jobs.line if isinstance(jobs, JobStream) else 0
        if billable_until(job) is not None:
            if job.number in known:
                what = f"line {line}: job {job.number} stands in line {known[job.number]} already"
                raise InvalidInput(what, field="FILE", remedy="keep one line for each job")
            if len(known) == SECOND_MAX:
                what = f"line {line}: more than {SECOND_MAX:,} jobs are submitted in one second"
                raise InvalidInput(
                    what,
                    field="FILE",
                    remedy="spread their submit times, or replay a part of the trace",
                )
            known[job.number] = line
        yield job


def demand_of(header: Header, jobs: Iterable[SwfJob], payer: Payer | None = None) -> CreditDemand:
    """Sum the credit that jobs need.

    Args:
        header: header of the trace, with the names of its partitions.
        jobs: all jobs of the trace.
        payer: column that pays; None: groups if there are any, else users.
    """
    by_group, by_user = CreditDemand(Payer.GROUP), CreditDemand(Payer.USER)
    groups = False
    for job in jobs:
        groups = groups or job.group > 0
        for demand in (by_group, by_user):
            _count(demand, job, header)
    return by_group if (payer is Payer.GROUP or (payer is None and groups)) else by_user


def _count(demand: CreditDemand, job: SwfJob, header: Header) -> None:
    demand.jobs += 1
    end = billable_until(job)
    if end is None:
        demand.without_size += job.processors is None
        demand.never_ran += job.end_time is None and job.processors is not None
        return
    who = payer_of(job, demand.payer)
    fund = Fund(who, resource_of(job, header))
    demand.seconds[fund] = demand.seconds.get(fund, 0) + (job.processors or 0) * job.run_time
    demand.members.setdefault(who, set()).add(max(job.user, 0))
    zero = header.unix_start_time or 0
    demand.begin = Instant(min(demand.begin, zero + job.start_time))
    demand.end = Instant(max(demand.end, zero + end))


def run_events(header: Header, jobs: Iterable[SwfJob]) -> Iterator[ReplayEvent]:
    """Yield all starts and ends of the billable jobs, in order. Memory holds only the jobs that
    wait or run at one time.

    Raises InvalidInput, with the job, if these are more than OPEN_MAX.
    """
    zero = header.unix_start_time or 0
    events: list[ReplayEvent] = []
    open_jobs = 0
    for job in jobs:
        while events and events[0].at < zero + job.submit_time:
            event = heappop(events)
            open_jobs -= not event.is_start
            yield event
        end = billable_until(job)
        if end is not None:
            open_jobs += 1
            if open_jobs > OPEN_MAX:
                raise InvalidInput(
                    f"job {job.number}: more than {OPEN_MAX:,} jobs wait or run at one time",
                    field="FILE",
                    remedy=_FEWER,
                )
            heappush(events, ReplayEvent(Instant(zero + job.start_time), _START, job.number, job))
            heappush(
                events,
                ReplayEvent(
                    Instant(zero + end), _END if job.run_time else _END_AT_ONCE, job.number, job
                ),
            )
    while events:
        yield heappop(events)


def outcome_of(job: SwfJob, header: Header) -> str:
    """Return the final state in Slurm's words."""
    if job.number in header.node_failures:
        return "NODE_FAIL"
    if job.time_limit is not None and job.run_time > job.time_limit:
        return "TIMEOUT"
    if not -1 <= job.status <= 5:
        return COMPLETED
    return {Status.FAILED: "FAILED", Status.CANCELLED: "CANCELLED"}.get(
        Status(job.status), COMPLETED
    )


def qos_of(job: SwfJob, header: Header) -> str | None:
    """Return the name of the queue from the header, else `queue` with its number, or None."""
    if job.queue < 0:
        return None
    name = header.queues.get(job.queue, "")
    return name if is_name(name) and " " not in name else f"queue{job.queue}"


def start_details(
    job: SwfJob, header: Header, gpu_processors: int | None = None
) -> JobDetails | None:
    """Return the job details that the trace has at the start; None for a job of impossible size.

    Args:
        header: header of the trace, with the names of its queues.
        gpu_processors: the number of its processors with one GPU; None if it has no GPUs.
    """
    cpus = _processors(job)
    if not _is_possible(job):
        return None
    gpus = f",gres/gpu={cpus // gpu_processors}" if gpu_processors else ""
    tres, limit = f"cpu={cpus}{gpus}", job.time_limit
    return JobDetails(cpus=cpus, qos=qos_of(job, header), tres=tres, limit_seconds=limit)


def end_details(job: SwfJob) -> JobDetails | None:
    """Return the job details that the trace has at the end; None if they are unknown.

    Traces have the average time that one processor was busy. The bank judges a time longer than the
    run, as with any other cluster.
    """
    used = job.average_cpu_time * _processors(job)
    if not _is_possible(job) or not 0 <= used <= CPU_SECONDS_MAX:
        return None
    return JobDetails(cpu_seconds=used)


def _is_possible(job: SwfJob) -> bool:
    """Return True if a machine could have run the job."""
    return (
        _processors(job) <= CPUS_MAX and _processors(job) * max(job.run_time, 0) <= CPU_SECONDS_MAX
    )


def _processors(job: SwfJob) -> int:
    """Return the allocated processors, which may be more than the requested ones."""
    return job.allocated_processors if job.allocated_processors > 0 else (job.processors or 0)
