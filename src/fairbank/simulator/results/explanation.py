"""Why a job of a trace waits at an instant under a policy, when it will start, and what would start it sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from fairbank.core.time import iso, show_duration
from fairbank.scheduling.explain.answer import (
    EarlierStart,
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
)
from fairbank.scheduling.explain.start_range import PASSES, RUNS, start_range
from fairbank.scheduling.machines.processor_queue import PartitionQueue
from fairbank.scheduling.plan import NEVER_TESTED, PRIORITY, RESOURCES
from fairbank.simulator.engine.state import SimulationState
from fairbank.simulator.traces.workload import TraceJob


class Drawing(NamedTuple):
    """How many rehearsals the range is drawn from, the seed, and how many passes of the scheduler all of them together may take."""

    runs: int = RUNS
    seed: int = 1
    passes: int = PASSES


def why(
    there: SimulationState,
    number: int,
    zero: int,
    drawing: Drawing,
    partition: Callable[[int], str] = str,
) -> Explanation:
    """Why the job with this place in the queue waits; it does. `zero`: when the seconds of the trace begin, since 1970; `partition`: how
    the one with a number is called."""
    job = next(each for each in there.waiting if each.number == number)
    snapshot, scheduler = there.begin()
    line = [each for _, each in scheduler.line(snapshot, there.at)]
    apart = isinstance(scheduler.queue, PartitionQueue)
    ahead = list(_ahead(line, job, apart=apart))
    free, expected = snapshot.machine.free, there.in_full(job)
    code = PRIORITY if ahead else RESOURCES if job.processors > free else NEVER_TESTED
    found = start_range(
        partial(there.drawn, job), runs=drawing.runs, seed=drawing.seed, passes=drawing.passes
    )
    at = (
        ""
        if expected is None
        else f" If everybody uses the whole time limit, it starts at {iso(zero + expected)}."
    )
    return Explanation(
        number=job.name,
        code=code,
        headline=_headline(job, code, free, there.size, ahead) + at,
        checks=(
            _wide_enough(job, there),
            _free(job, there, free, zero),
            _turn(job, ahead, there, zero),
        ),
        position=line.index(job) + 1,
        ahead=tuple(each.name for each in ahead),
        waiting=len(line),
        expected=None if expected is None else zero + expected,
        likely=_since(found, zero) if isinstance(found, StartRange) else None,
        untold=found if isinstance(found, NoStartRange) else None,
        advice=_advise(there, job, expected, zero, partition if apart else None),
    )


def _ahead(line: Iterable[TraceJob], job: TraceJob, *, apart: bool) -> Iterator[TraceJob]:
    """Whoever stands before it; where partitions wait apart, in its own."""
    for each in line:
        if each.number == job.number:
            return
        if not apart or each.partition == job.partition:
            yield each


def _headline(job: TraceJob, code: str, free: int, size: int, ahead: list[TraceJob]) -> str:
    if code == PRIORITY:
        some = (
            f"job {ahead[0].name}"
            if len(ahead) == 1
            else f"{len(ahead):,} jobs, first of them job {ahead[0].name}"
        )
        return f"Job {job.name} waits behind {some} ({code})."
    if code == RESOURCES:
        return f"Job {job.name} waits for {_processors(job.processors)}: {free:,} of the {size:,} are free now ({code})."
    return f"Job {job.name} waits for the next pass of the scheduler: {_processors(job.processors)} are free for it ({code})."


def _processors(number: int) -> str:
    return "1 processor" if number == 1 else f"{number:,} processors"


def _wide_enough(job: TraceJob, there: SimulationState) -> JobCheck:
    return JobCheck(
        "the machine is wide enough",
        True,
        f"it wants {job.processors:,} of {_processors(there.size)}",
    )


def _free(job: TraceJob, there: SimulationState, free: int, zero: int) -> JobCheck:
    said = [f"{free:,} free now, and it wants {job.processors:,}"]
    if there.running:
        first, last = (
            iso(zero + max(each.ends, there.at + 1))
            for each in (there.running[0], there.running[-1])
        )
        many = f"{len(there.running):,} jobs run, of which the first ends by {first}, the last by {last}"
        said.append(many if len(there.running) > 1 else f"1 job runs, and ends by {first}")
    return JobCheck("processors that are free", free >= job.processors, "; ".join(said))


def _turn(job: TraceJob, ahead: list[TraceJob], there: SimulationState, zero: int) -> JobCheck:
    """Whether somebody is before it; if so, when the first of them has room, and whether it could be gone by then."""
    if not ahead:
        return JobCheck("its turn", True, "nobody is ahead")
    snapshot, _ = there.begin()
    slot = snapshot.machine.ahead(snapshot.running, there.at).earliest(ahead[0])
    wide = sum(each.processors for each in ahead)
    said = [f"ahead {'is' if len(ahead) == 1 else 'are'} job {ahead[0].name}"]
    if slot is not None:
        said.append(
            f", which wants {_processors(ahead[0].processors)} and has them by {iso(zero + slot.begin)}"
        )
    if len(ahead) > 1:
        said.append(f", and {len(ahead) - 1:,} more; together they want {_processors(wide)}")
    if slot is not None and job.processors <= snapshot.machine.free:
        said.append(
            f"; this one fits now, and may run for {show_duration(job.limit)}, until {iso(zero + there.at + job.limit)}"
        )
    return JobCheck("its turn", False, "".join(said))


def _since(found: StartRange, zero: int) -> StartRange:
    latest = None if found.latest is None else zero + found.latest
    return msgspec.structs.replace(found, earliest=zero + found.earliest, latest=latest)


def _advise(
    there: SimulationState,
    job: TraceJob,
    expected: int | None,
    zero: int,
    partition: Callable[[int], str] | None,
) -> EarlierStartAdvice:
    """The one change that starts the job soonest; of several as soon the smallest sacrifice.

    Each is tried on the queue as it is, with everybody using the whole time limit.
    """
    advice = find_earlier_start(expected, _tries(there, job, partition))
    found = advice.suggestion
    return EarlierStartAdvice(found and EarlierStart(found.option, zero + found.at), advice.tried)


def _tries(
    there: SimulationState, job: TraceJob, partition: Callable[[int], str] | None
) -> Iterator[Candidate]:
    """Where partitions wait apart another of those that are in use; a shorter limit; half as many processors."""
    if partition is not None:
        used = {each.partition for each in there.waiting} | {
            each.job.partition for each in there.running
        }
        for other in sorted(used - {job.partition}):
            if name := partition(other):
                yield request_change(
                    f"-p {name}", partial(there.in_full, job._replace(partition=other))
                )
    yield from shorter_limit(job.limit, lambda seconds: there.in_full(job._replace(limit=seconds)))
    if job.processors > 1:
        half = job.processors // 2
        yield request_change(f"-n {half}", partial(there.in_full, job._replace(processors=half)))
