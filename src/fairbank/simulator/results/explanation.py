"""Explanation of why a job of a trace waits, when it starts, and what would help."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from fairbank.core.time import iso, show_duration
from fairbank.scheduling.explain.answer import (
    RUNS,
    EarlierStartAdvice,
    Explanation,
    JobCheck,
    NoStartRange,
    StartRange,
)
from fairbank.scheduling.explain.earlier_start import (
    Candidate,
    find_earlier_start,
    request_change,
    shorter_limit,
    soonest_known,
)
from fairbank.scheduling.explain.start_range import MAX_PASSES, start_range
from fairbank.scheduling.machines.processor_queue import PartitionQueue
from fairbank.scheduling.plan import NEVER_TESTED, PRIORITY, RESOURCES
from fairbank.simulator.engine.state import SimulationState
from fairbank.simulator.traces.workload import TraceJob


class SampleSettings(NamedTuple):
    """Number of simulated runs, seed, and number of passes of all runs together."""

    runs: int = RUNS
    seed: int = 1
    passes: int = MAX_PASSES


def explain_wait(
    state: SimulationState,
    number: int,
    zero: int,
    sample: SampleSettings,
    partition: Callable[[int], str] = str,
) -> Explanation:
    """Explain why a pending job waits.

    Args:
        number: number of the job in the simulation.
        zero: second since 1970 in which the trace begins.
        sample: size and seed of the sample.
        partition: function from the number of a partition to its name.
    """
    job = next(other for other in state.waiting if other.number == number)
    snapshot, scheduler = state.resume()
    order = [other for _, other in scheduler.order(snapshot, state.at)]
    is_by_partition = isinstance(scheduler.queue, PartitionQueue)
    ahead = list(_ahead(order, job, apart=is_by_partition))
    free, expected = snapshot.machine.free, state.start_with_full_limits(job)
    code = PRIORITY if ahead else RESOURCES if job.processors > free else NEVER_TESTED
    likely = start_range(
        partial(state.sample_start, job), runs=sample.runs, seed=sample.seed, passes=sample.passes
    )
    headline = _headline(job, code, free, state.size, ahead)
    if expected is not None:
        at = iso(zero + expected)
        headline += f" If all running jobs use their whole time limit, it starts at {at}."
    soonest, shown = soonest_known(expected, likely), partition if is_by_partition else None
    return Explanation(
        number=job.name,
        code=code,
        headline=headline,
        checks=(
            _size_check(job, state),
            _free_check(job, state, free, zero),
            _position_check(job, ahead, state, zero),
        ),
        position=order.index(job) + 1,
        ahead=tuple(other.name for other in ahead),
        waiting=len(order),
        expected=None if expected is None else zero + expected,
        likely=_since(likely, zero) if isinstance(likely, StartRange) else None,
        missing_range_reason=likely if isinstance(likely, NoStartRange) else None,
        advice=_advise(state, job, soonest, zero, shown),
    )


def _ahead(order: Iterable[TraceJob], job: TraceJob, *, apart: bool) -> Iterator[TraceJob]:
    """Yield the jobs before it; if partitions have separate queues, those of its own."""
    for other in order:
        if other.number == job.number:
            return
        if not apart or other.partition == job.partition:
            yield other


def _headline(job: TraceJob, code: str, free: int, size: int, ahead: list[TraceJob]) -> str:
    if code == PRIORITY:
        some = (
            f"job {ahead[0].name}"
            if len(ahead) == 1
            else f"{len(ahead):,} jobs, the first of which is job {ahead[0].name}"
        )
        return f"Job {job.name} waits behind {some} ({code})."
    if code == RESOURCES:
        return (
            f"Job {job.name} waits for {_processors(job.processors)}: {free:,} of the {size:,} are"
            f" free now ({code})."
        )
    return (
        f"Job {job.name} waits for the next pass of the scheduler: {_processors(job.processors)}"
        f" are free for it ({code})."
    )


def _processors(number: int) -> str:
    return "1 processor" if number == 1 else f"{number:,} processors"


def _size_check(job: TraceJob, state: SimulationState) -> JobCheck:
    return JobCheck(
        "machine size", True, f"it needs {job.processors:,} of {_processors(state.size)}"
    )


def _free_check(job: TraceJob, state: SimulationState, free: int, zero: int) -> JobCheck:
    evidence = [f"{free:,} are free now, and it needs {job.processors:,}"]
    if state.running:
        first, last = (
            iso(zero + max(running.ends, state.at + 1))
            for running in (state.running[0], state.running[-1])
        )
        text = (
            f"{len(state.running):,} jobs are running: the first ends by {first}, the last by"
            f" {last}"
        )
        evidence.append(
            text if len(state.running) > 1 else f"1 job is running, and ends by {first}"
        )
    return JobCheck("free processors", free >= job.processors, "; ".join(evidence))


def _position_check(
    job: TraceJob, ahead: list[TraceJob], state: SimulationState, zero: int
) -> JobCheck:
    """Check that no job is ahead; else tell when the first of them has processors, and whether this
    job could end by then.
    """
    if not ahead:
        return JobCheck("no job ahead", True, "it is the next job")
    snapshot, _ = state.resume()
    slot = snapshot.machine.profile(snapshot.running, state.at).earliest_slot(ahead[0])
    wide = sum(other.processors for other in ahead)
    evidence = [
        f"job {ahead[0].name}, which needs {_processors(ahead[0].processors)} and gets them by"
        f" {iso(zero + slot.begin)}"
    ]
    if len(ahead) > 1:
        evidence.append(f", and {len(ahead) - 1:,} more; together they need {_processors(wide)}")
    if job.processors <= snapshot.machine.free:
        evidence.append(
            f"; this job fits now, and may run for {show_duration(job.limit)}, until"
            f" {iso(zero + state.at + job.limit)}"
        )
    return JobCheck("no job ahead", False, "".join(evidence))


def _since(likely: StartRange, zero: int) -> StartRange:
    return msgspec.structs.replace(
        likely,
        earliest=None if likely.earliest is None else zero + likely.earliest,
        median=None if likely.median is None else zero + likely.median,
        latest=None if likely.latest is None else zero + likely.latest,
    )


def _advise(
    state: SimulationState,
    job: TraceJob,
    expected: int | None,
    zero: int,
    partition: Callable[[int], str] | None,
) -> EarlierStartAdvice:
    """Return the one change that starts the job earliest, and before `expected` (None: never); of
    equal ones the smallest sacrifice.

    Each change is tried on the queue as it is, if all jobs use their whole time limit.
    """
    advice = find_earlier_start(expected, _tries(state, job, partition))
    suggestion = advice.suggestion
    return EarlierStartAdvice(
        suggestion and msgspec.structs.replace(suggestion, at=zero + suggestion.at), advice.tried
    )


def _tries(
    state: SimulationState, job: TraceJob, partition: Callable[[int], str] | None
) -> Iterator[Candidate]:
    """Yield the changes: another partition in use, if partitions have separate queues; a shorter
    limit; half as many processors.
    """
    if partition is not None:
        used = {item.partition for item in state.waiting} | {
            item.job.partition for item in state.running
        }
        for other in sorted(used - {job.partition}):
            if name := partition(other):
                yield request_change(
                    f"-p {shlex.quote(name)}",
                    partial(state.start_with_full_limits, job._replace(partition=other)),
                )
    yield from shorter_limit(
        job.limit, lambda seconds: state.start_with_full_limits(job._replace(limit=seconds))
    )
    if job.processors > 1:
        half = job.processors // 2
        yield request_change(
            f"-n {half}", partial(state.start_with_full_limits, job._replace(processors=half))
        )
