"""Simulation of a trace on a machine under a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.simulator.engine.clock import JobStarts, SimulationClock, SimulationScheduler
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.results.delivered_shares import DeliveredShare, DeliveryMeter, Week
from fairbank.simulator.results.measures import (
    FairStarts,
    JobRuns,
    LateStarts,
    MeasureAccumulator,
    ScheduleMeasures,
    ScheduleStarts,
    in_columns,
)
from fairbank.simulator.results.time_series import TimeSeries
from fairbank.simulator.traces.fast_reader import FastTrace, ReaderNotes, TraceNames
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import Correction, OmittedJob, TraceJob, Workload, size_of

if TYPE_CHECKING:
    from fairbank.simulator.engine.bank_gate import BankGate
    from fairbank.simulator.engine.grants import Grants
    from fairbank.simulator.engine.simulated_bank import CreditResult, SimulatedBank


class SimulationPlan(NamedTuple):
    """Simulation to run, and additional measures.

    `processors`: size of the machine, None: as the trace says. `fair_starts`: compute the fair
    start of every n-th job, 0: of none. `shares`: shares of accounts (None: do not measure), which
    are users of the trace, or with `by_group` groups. `has_time_series`: record the course over
    time and by size. `has_job_runs`: record every job. `grants`: credit of the bank; None: there is
    no bank, and jobs cost nothing.
    """

    processors: int | None = None
    fair_starts: int = 0
    shares: Mapping[int, int] | None = None
    by_group: bool = False
    has_time_series: bool = False
    has_job_runs: bool = False
    grants: Grants | None = None


class SimulationResult(NamedTuple):
    """Result of a policy.

    `lines` is the number of jobs of the trace; `omitted` has the numbers of those that were not
    simulated, by reason; `corrections` counts those that were read otherwise than written; `notes`
    are the reader's. `credit` is the use of the grants. `header_jobs`: number of jobs by the header
    of the trace. `runs`: every job, if requested; its users and groups are in `people` if the trace
    has names. `remarks`: settings of the policy file without effect. `unmatched_accounts`: accounts
    with shares but without a job in the trace.
    """

    policy: str
    processors: int
    lines: int
    omitted: Mapping[OmittedJob, list[int]]
    corrections: Mapping[Correction, int]
    figures: ScheduleMeasures | None
    late_starts: LateStarts | None
    share_error: float | None
    jain_of_shares: float | None
    delivered: list[DeliveredShare]
    starts: ScheduleStarts
    notes: ReaderNotes
    weeks: list[Week]
    time_series: TimeSeries | None
    credit: CreditResult | None
    header_jobs: int | None
    runs: JobRuns | None
    remarks: Sequence[str] = ()
    unmatched_accounts: Sequence[str] = ()
    people: TraceNames | None = None


Tick = Callable[[int], None]
"""Function that is called with the number of jobs read so far."""
TICK = 1_024
BATCH = 256
"""Number of start times that become columns together: fast, and little memory."""


def _check_plan(policy: SimulationPolicy, plan: SimulationPlan) -> None:
    check_has_bank(policy, has_bank=plan.grants is not None)
    if plan.fair_starts and plan.grants is not None:
        what = "--fair-starts cannot be combined with --grant"
        raise InvalidInput(what, field="fair-starts", remedy="leave out --fair-starts or --grant")


def simulate(
    trace: FastTrace, policy: SimulationPolicy, plan: SimulationPlan, tick: Tick | None = None
) -> SimulationResult:
    """Run a trace under a policy.

    Raises InvalidInput for a trace that cannot be read, a machine of unknown size, or a policy that
    uses credit without a bank.

    Args:
        trace: header and lines of the trace.
        policy: scheduling policy.
        plan: size of the machine and measures.
        tick: called with the number of jobs read so far.
    """
    _check_plan(policy, plan)
    size = size_of(trace, plan.processors)
    workload = Workload(trace.jobs, size, distinct=trace.names is None)
    scheduler, bank = policy.scheduler(size), None
    if plan.grants is not None:
        scheduler, bank = _with_bank(scheduler, plan.grants, trace.header)
    clock = SimulationClock(size, scheduler)
    measures, starts = MeasureAccumulator(), ScheduleStarts()
    fairness = FairStarts(clock, plan.fair_starts) if plan.fair_starts else None
    sharing = DeliveryMeter(plan.shares, _account_of(plan)) if plan.shares else None
    time_series = TimeSeries(size) if plan.has_time_series else None
    runs = JobRuns() if plan.has_job_runs else None
    jobs = with_ticks(workload, tick)
    _run(
        clock.run(jobs, fairness.record_arrival if fairness else None),
        [table for table in (measures, starts, runs) if table is not None],
        [meter for meter in (fairness, sharing, time_series) if meter is not None],
    )
    return SimulationResult(
        policy=policy.name,
        processors=size,
        lines=workload.lines,
        omitted=workload.omitted,
        corrections=workload.corrections,
        figures=measures.figures(size, clock.lost),
        late_starts=fairness.late_starts() if fairness else None,
        share_error=sharing.share_error() if sharing else None,
        jain_of_shares=sharing.jain() if sharing else None,
        delivered=sharing.delivered() if sharing else [],
        starts=starts,
        notes=trace.notes,
        weeks=sharing.weeks() if sharing else [],
        time_series=time_series,
        credit=bank.close() if bank else None,
        header_jobs=trace.header.jobs,
        runs=runs,
        remarks=policy.remarks,
        people=trace.names,
    )


def with_ticks(workload: Workload, tick: Tick | None) -> Iterable[TraceJob]:
    """Return the jobs; while they are read, `tick` gets the number of lines from time to time."""
    return workload if tick is None else _ticking(workload, tick)


def _ticking(workload: Workload, tick: Tick) -> Iterator[TraceJob]:
    reported = 0
    for job in workload:
        if workload.lines - reported >= TICK:
            reported = workload.lines
            tick(reported)
        yield job


def _run(
    job_starts: Iterator[JobStarts],
    tables: Sequence[MeasureAccumulator | ScheduleStarts | JobRuns],
    meters: Sequence[FairStarts | DeliveryMeter | TimeSeries],
) -> None:
    """Run a simulation. Tables take starts as columns, and meters take them time by time."""
    while batch := list(islice(job_starts, BATCH)):
        started = in_columns(batch)
        for table in tables:
            table.take(started)
        for meter in meters:
            for starts_at_time in batch:
                meter.take(starts_at_time)


def _with_bank(
    scheduler: SimulationScheduler, grants: Grants, header: Header
) -> tuple[BankGate, SimulatedBank]:
    """Return the scheduler with a bank that approves starts, and the bank."""
    # Imported here: only simulations with grants need the bank.
    from fairbank.simulator.engine.bank_gate import BankGate  # noqa: PLC0415
    from fairbank.simulator.engine.simulated_bank import SimulatedBank  # noqa: PLC0415

    bank = SimulatedBank(grants, header)
    return BankGate(scheduler, bank, grants.budget.unpaid), bank


def check_has_bank(policy: SimulationPolicy, *, has_bank: bool) -> None:
    """Raise InvalidInput for a policy that uses credit if there is no bank."""
    if policy.uses_credit and not has_bank:
        remedy = "grant credit: --grant PERCENT; or leave [site_factor] out"
        raise InvalidInput(
            f"{policy.name} uses remaining credit, and there is no bank",
            field="policy",
            remedy=remedy,
        )


def _account_of(plan: SimulationPlan) -> Callable[[TraceJob], int]:
    """Return the function from a job to its account. With a bank the unknown one is 0."""
    account = attrgetter("group" if plan.by_group else "user")
    return account if plan.grants is None else lambda job: max(account(job), 0)
