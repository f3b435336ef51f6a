"""A recorded workload as the bank meets it: who needs how much credit, and every start and end in the order of the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from fairbank.cluster.job import COMPLETED
from fairbank.cluster.job_details import JobDetails
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import is_name
from fairbank.core.slurm_numbers import CPU_SECONDS_MAX, CPUS_MAX
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import Status, SwfJob

OPEN_MAX = 1_000_000
"""Jobs that wait or run at one time: they are what is kept in memory of a trace, a KiB each."""

_FEWER = "look at the wait times; a trace that is right can be replayed in parts"


class Payer(Enum):
    """Which column names the project that pays."""

    GROUP = "group"
    USER = "user"


class Fund(NamedTuple):
    """What is billed to whom: a group (or user) of the trace on a resource."""

    payer: int
    resource: str


class CreditDemand(msgspec.Struct):
    """What a trace asks of a bank: processor-seconds used by each fund, the members of each payer, and the time it spans.

    `jobs` is how many lines there are; `never_ran` and `without_size` of them have nothing to bill.
    """

    payer: Payer
    seconds: dict[Fund, int] = {}
    members: dict[int, set[int]] = {}
    begin: Instant = LAST_INSTANT
    end: Instant = Instant(0)
    jobs: int = 0
    never_ran: int = 0
    without_size: int = 0


class Moment(NamedTuple):
    """A job starts or ends. Ordered by time; at one instant whoever ends makes room before anybody starts, and a job of no
    length ends after it started."""

    at: Instant
    turn: int
    number: int
    job: SwfJob

    @property
    def starts(self) -> bool:
        return self.turn == _START


_END, _START, _END_AT_ONCE = 0, 1, 2


def resource_of(job: SwfJob, header: Header) -> str:
    """What its partition bills."""
    return billed_in(job.partition, header)


def billed_in(partition: int, header: Header) -> str:
    """A partition whose name begins with "gpu" bills gpu, every other bills cpu."""
    return "gpu" if header.partitions.get(partition, "").lower().startswith("gpu") else "cpu"


def payer_of(job: SwfJob, payer: Payer) -> int:
    """The number of the group or user that pays; 0 stands for whoever is unknown."""
    return max(job.group if payer is Payer.GROUP else job.user, 0)


def billable_until(job: SwfJob) -> int | None:
    """When a job ended that ran and whose size is known; None for one that has nothing to bill.

    Parts of a run that has a line of its own are not counted twice.
    """
    return None if job.processors is None or job.is_part else job.end_time


def demand_of(header: Header, jobs: Iterable[SwfJob], payer: Payer | None = None) -> CreditDemand:
    """Add up what the jobs need. Without `payer`, groups pay where the trace names any, else users."""
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


def moments(header: Header, jobs: Iterable[SwfJob], most: int = OPEN_MAX) -> Iterator[Moment]:
    """Every start and end of the billable jobs, in order. Holds no more jobs than wait or run at one time.

    Raises InvalidInput, with the job, where those are more than `most`.
    """
    zero = header.unix_start_time or 0
    ahead: list[Moment] = []
    there = 0
    for job in jobs:
        while ahead and ahead[0].at < zero + job.submit_time:
            moment = heappop(ahead)
            there -= not moment.starts
            yield moment
        end = billable_until(job)
        if end is not None:
            there += 1
            if there > most:
                raise InvalidInput(
                    f"job {job.number}: more than {most:,} jobs wait or run at one time",
                    field="FILE",
                    remedy=_FEWER,
                )
            heappush(ahead, Moment(Instant(zero + job.start_time), _START, job.number, job))
            heappush(
                ahead,
                Moment(
                    Instant(zero + end), _END if job.run_time else _END_AT_ONCE, job.number, job
                ),
            )
    while ahead:
        yield heappop(ahead)


def outcome_of(job: SwfJob, header: Header) -> str:
    """The final state in Slurm's words."""
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
    """What its queue is called in the header, where that is a name; else `queue` with its number. None where no queue is told."""
    if job.queue < 0:
        return None
    called = header.queues.get(job.queue, "")
    return called if is_name(called) else f"queue{job.queue}"


def particulars_of(job: SwfJob, header: Header) -> JobDetails | None:
    """What the trace says of it when it starts; None for a job of a size that no machine has."""
    cpus = _given(job)
    if not _is_possible(job):
        return None
    return JobDetails(
        cpus=cpus, qos=qos_of(job, header), tres=f"cpu={cpus}", limit_seconds=job.time_limit
    )


def time_used_by(job: SwfJob) -> JobDetails | None:
    """What the trace says of it when it ends: logs have the time that one processor was busy on average. None where it is unknown.

    Where that is longer than the run, it is for the bank to judge, as with any other cluster.
    """
    used = job.average_cpu_time * _given(job)
    return (
        None
        if not _is_possible(job) or not 0 <= used <= CPU_SECONDS_MAX
        else JobDetails(cpu_seconds=used)
    )


def _is_possible(job: SwfJob) -> bool:
    """Whether some machine could have run it."""
    return _given(job) <= CPUS_MAX and _given(job) * max(job.run_time, 0) <= CPU_SECONDS_MAX


def _given(job: SwfJob) -> int:
    """Its processors: those that it got, which may be more than it asked for."""
    return job.allocated_processors if job.allocated_processors > 0 else (job.processors or 0)
