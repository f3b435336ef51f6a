"""Query about one job of a simulation: its state while it waited, and its start in the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import Explanation
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.engine.simulation import TICK, Tick
from fairbank.simulator.engine.state import SimulationState, StateRecorder
from fairbank.simulator.results.explanation import SampleSettings, explain_wait
from fairbank.simulator.traces.fast_reader import FastTrace
from fairbank.simulator.traces.workload import TraceJob, Workload, size_of


class JobQuery(NamedTuple):
    """Number of the job in the trace, and the time of the query in seconds since 1970 (`absolute`)
    or of the trace; None: when it arrived.
    """

    job: int
    at: int | None = None
    absolute: bool = False
    processors: int | None = None
    sample: SampleSettings = SampleSettings()


class JobQueryResult(NamedTuple):
    """Explanation, with what trace and simulation know of the job. Times are seconds since 1970."""

    why: Explanation
    policy: str
    user: str
    processors: int
    limit: int
    submitted: int
    as_of: int
    started: int


def explain_job(
    trace: FastTrace, policy: SimulationPolicy, query: JobQuery, tick: Tick | None = None
) -> JobQueryResult:
    """Simulate until the job starts, and explain why it waited.

    Raises NotFound for a job that does not exist, is not simulated or never waits; InvalidInput for
    a time at which it does not wait, for a number that two jobs of a trace have, for a policy that
    uses credit; and as `simulate` does.

    Args:
        trace: header and lines of the trace.
        policy: scheduling policy.
        query: job and time of the query.
        tick: called with the number of jobs read so far.
    """
    if policy.uses_credit:
        what = f"{policy.name} uses remaining credit, and there is no bank here"
        raise InvalidInput(what, field="policy", remedy="name a policy without [site_factor]")
    zero = trace.header.unix_start_time or 0
    workload = Workload(trace.jobs, size := size_of(trace, query.processors))
    search = _Search(workload, query, zero, tick, distinct=trace.names is None)
    states: list[SimulationState] = []
    recorder = StateRecorder(size, policy.scheduler(size), states.append)
    jobs = search.jobs(recorder)
    for now, starts in recorder.run(jobs):
        if search.job is not None and search.job in starts:
            if search.distinct:
                deque(jobs, maxlen=0)  # the search refuses a later job with the same number
            state = states[0] if states else None
            return _result(trace, policy, search.job, state, now, zero, query)
    raise search.missing()


class _Search:
    """Search for a job among all that are simulated."""

    def __init__(
        self, workload: Workload, query: JobQuery, zero: int, tick: Tick | None, *, distinct: bool
    ) -> None:
        self._workload, self._query, self._zero, self._tick = workload, query, zero, tick
        self.distinct = distinct
        self.job: TraceJob | None = None

    def jobs(self, recorder: StateRecorder) -> Iterator[TraceJob]:
        """Yield all jobs, and set the time of the query in the recorder when it is known."""
        query, zero = self._query, self._zero
        at = -1 if query.at is None else query.at - zero if query.absolute else query.at
        if query.at is not None:
            recorder.record_at(at)
        for job in self._workload:
            if job.name == query.job and self.job is not None and self.distinct:
                what = (
                    f"there are two jobs {job.name} in this trace, of second {self.job.submitted}"
                    f" and of second {job.submitted}"
                )
                raise InvalidInput(
                    what,
                    field="JOBID",
                    remedy="give one of them another number there, in the first column",
                )
            if job.name == query.job and self.job is None:
                if query.at is None:
                    recorder.record_at(job.submitted)
                elif at < job.submitted:
                    what = (
                        f"job {job.name} is submitted later: at {iso(zero + job.submitted)},"
                        f" second {job.submitted} of the trace"
                    )
                    raise InvalidInput(
                        what, field="at", remedy="name a time while it waits, or none"
                    )
                self.job = job
            if self._tick is not None and self._workload.lines % TICK == 0:
                self._tick(self._workload.lines)
            yield job

    def missing(self) -> NotFound:
        name = self._query.job
        for reason, numbers in self._workload.omitted.items():
            if name in numbers:
                return NotFound(
                    f"job {name} is not simulated: {reason.value}",
                    field="JOBID",
                    remedy="name another job",
                )
        return NotFound(
            f"there is no job {name} in this trace",
            field="JOBID",
            remedy="give its number in the trace, the first column",
        )


def _partition(trace: FastTrace, number: int) -> str:
    """Return the name of a partition; empty for none."""
    if trace.names is not None:
        return trace.names.partitions.name(number)
    return trace.header.partitions.get(number, str(number)) if number >= 0 else ""


def _result(
    trace: FastTrace,
    policy: SimulationPolicy,
    job: TraceJob,
    state: SimulationState | None,
    started: int,
    zero: int,
    query: JobQuery,
) -> JobQueryResult:
    when = f"{iso(zero + started)}, second {started} of the trace"
    if started == job.submitted:
        raise NotFound(
            f"job {job.name} did not wait: under {policy.name} it started when it was submitted,"
            f" at {when}",
            field="JOBID",
        )
    if state is None:
        what = f"job {job.name} does not wait any more: under {policy.name} it started at {when}"
        raise InvalidInput(
            what,
            field="at",
            remedy=f"name a time from {iso(zero + job.submitted)} on and before that",
        )
    return JobQueryResult(
        explain_wait(state, job.number, zero, query.sample, partial(_partition, trace)),
        policy.name,
        (
            trace.names.users.name(job.user)
            if trace.names is not None
            else str(job.user)
            if job.user >= 0
            else ""
        ),
        job.processors,
        job.limit,
        zero + job.submitted,
        zero + state.at,
        zero + started,
    )
