"""Search for a change that starts a job earlier: changes are tried one after the other, the
smallest sacrifice first.

For a job that waits for nodes they are another partition, less memory, shared nodes, a shorter
limit. Each is planned, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from fairbank.core.time import MINUTE, show_duration
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice
from fairbank.scheduling.machines.node_snapshot import OnNodes, replace_job
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes

ChoosePartitions = Callable[[PendingJob, str], tuple[str, ...] | None]
"""Function that returns the partitions to request so that a job may also, or only, run in another
one; None if it may not.
"""


def add_partition(job: PendingJob, name: str) -> tuple[str, ...]:
    """Return the job's partitions and another one."""
    return (*job.partitions, name)


SHORTER = "a shorter -t"
"""Name of the search for a limit among the changes that were tried."""


class Candidate(NamedTuple):
    """Change, as an option of sbatch or in words, and a function that returns the start with it if
    that is before a time (None: never).
    """

    option: str
    start_before: Callable[[int | None], EarlierStart | None]


def find_earlier_start(expected: int | None, tries: Iterable[Candidate]) -> EarlierStartAdvice:
    """Return the earliest start before `expected` (None: never). Of equal ones the first wins."""
    suggestion, tried = None, list[str]()
    for candidate in tries:
        tried.append(candidate.option)
        suggestion = (
            candidate.start_before(expected if suggestion is None else suggestion.at) or suggestion
        )
    return EarlierStartAdvice(suggestion, tuple(tried))


def request_change(option: str, start: Callable[[], int | None]) -> Candidate:
    """Return a change of the request. `start` returns the start with it; None: never."""

    def before(other: int | None) -> EarlierStart | None:
        start_time = start()
        if start_time is not None and (other is None or start_time < other):
            return EarlierStart(option, start_time)
        return None

    return Candidate(option, before)


def shorter_limit(limit: int, start: Callable[[int], int | None]) -> Iterator[Candidate]:
    """Yield the search for the longest limit in whole minutes below `limit` with which the job
    starts as early as with one minute.

    `start` returns the start with a limit in seconds. There is no shorter limit than a minute.
    """

    def before(other: int | None) -> EarlierStart | None:
        soonest = start(MINUTE)
        if soonest is None or (other is not None and soonest >= other):
            return None
        low, high = 1, -(-limit // MINUTE)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if start(middle * MINUTE) == soonest else (low, middle)
        return EarlierStart(f"-t {show_duration(low * MINUTE)}", soonest)

    if limit > MINUTE:
        yield Candidate(SHORTER, before)


def suggest_earlier_start(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    plan: SchedulePlan[PendingJob, Placement],
    number: int,
    now: int,
    choose_partitions: ChoosePartitions = add_partition,
) -> EarlierStartAdvice:
    """Return the one change that starts the job earliest, and earlier than `plan` does; of equal
    ones the smallest sacrifice. Nothing is tried for a held job.

    Each change takes one pass over the whole queue with the job changed, so that it delays no job
    ahead.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        plan: plan of the passes without a change.
        number: number of the job.
        now: time in seconds since 1970.
        choose_partitions: the partitions that the site lets the job request.
    """
    job = snapshot.queue.job(number)
    if job is None or job.held is not None:
        return EarlierStartAdvice(None, ())

    def start(changed: PendingJob) -> int | None:
        return _start(run_passes(replace_job(snapshot, changed), parameters, now), number, now)

    return find_earlier_start(
        _start(plan, number, now), _tries(job, snapshot, start, choose_partitions)
    )


def _start(plan: SchedulePlan[PendingJob, Placement], number: int, now: int) -> int | None:
    """Return the start of the job; None if it is unknown."""
    if any(start.job.number == number for start in plan.starts):
        return now
    return next(
        (reservation.at for reservation in plan.reservations if reservation.job.number == number),
        None,
    )


def _tries(
    job: PendingJob,
    snapshot: OnNodes,
    start: Callable[[PendingJob], int | None],
    choose_partitions: ChoosePartitions,
) -> Iterator[Candidate]:
    """Yield the changes, the smallest sacrifice first."""
    for option, changed in _changes(job, snapshot, choose_partitions):
        yield request_change(option, partial(start, changed))
    yield from shorter_limit(
        _limit(job, snapshot),
        lambda seconds: start(msgspec.structs.replace(job, limit=seconds, time_min=None)),
    )


def _changes(
    job: PendingJob, snapshot: OnNodes, choose_partitions: ChoosePartitions
) -> Iterator[tuple[str, PendingJob]]:
    """Yield the changes other than the limit."""
    wanted, memory = job.wanted, job.wanted.memory_per_node
    for name, rules in snapshot.machine.cluster.rules.items():
        is_new = name not in job.partitions and rules.starts_jobs
        partitions = choose_partitions(job, name) if is_new else None
        if partitions is not None:
            yield (
                f"-p {','.join(partitions)}",
                msgspec.structs.replace(job, partitions=partitions, priorities=()),
            )
    if memory is None and wanted.memory_per_cpu is None:
        least = (
            min(node.memory // max(node.cpus, 1) for node in snapshot.machine.cluster.nodes)
            * wanted.cpus_per_task
        )
        if least:  # --mem=0 would be all there is
            yield f"--mem={least}M", _wanting(job, memory_per_node=least)
    elif memory is not None and memory > 1:
        yield f"--mem={memory // 2}M", _wanting(job, memory_per_node=memory // 2)
    if wanted.exclusive:
        yield "without --exclusive", _wanting(job, exclusive=False)


def _wanting(job: PendingJob, **other: object) -> PendingJob:
    return msgspec.structs.replace(job, wanted=msgspec.structs.replace(job.wanted, **other))


def _limit(job: PendingJob, snapshot: OnNodes) -> int:
    """Return how many seconds the job may run now."""
    rules = snapshot.machine.cluster.rules
    return max((job.seconds(rules[name]) for name in job.partitions if name in rules), default=0)
