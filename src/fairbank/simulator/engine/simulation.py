"""One simulation: a trace, a machine and a policy in; what came of it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.engine.scheduler import SimulationScheduler
from fairbank.simulator.results.delivered_shares import DeliveredShare, DeliveryMeter, Week
from fairbank.simulator.results.fairness import FairStarts, LateStarts
from fairbank.simulator.results.job_runs import JobRuns
from fairbank.simulator.results.measures import MeasureAccumulator, ScheduleMeasures
from fairbank.simulator.results.starts import ScheduleStarts, in_columns
from fairbank.simulator.results.time_series import TimeSeries
from fairbank.simulator.traces.fast_reader import FastTrace, People, ReaderNotes
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import OmittedJob, Read, TraceJob, Workload, size_of

if TYPE_CHECKING:
    from fairbank.simulator.engine.bank_gate import BankGate
    from fairbank.simulator.engine.grants import Grants
    from fairbank.simulator.engine.simulated_bank import CreditResult, SimulatedBank


class SimulationPlan(NamedTuple):
    """What is simulated, and what is measured beside the usual figures.

    `processors`: of the machine, None as the trace says. `fair_starts`: look at the fair start of every so-many-th job, 0 of none.
    `shares`: of each account (None: nobody asks), which is a user of the trace, or with `by_group` a group.
    `course`: how it goes over time and by size.
    `every`: what became of every job. `grants`: what the bank has granted; None: there is no bank, and nothing to pay.
    """

    processors: int | None = None
    fair_starts: int = 0
    shares: Mapping[int, int] | None = None
    by_group: bool = False
    course: bool = False
    every: bool = False
    grants: Grants | None = None


class SimulationResult(NamedTuple):
    """What came of a policy. `lines` is how many jobs the trace has; `left` are the numbers of those that were not simulated, by the
    reason; `read` counts those of which something was read otherwise than it stands there; `notes` are the reader's. `credit` is what
    became of what the bank had granted.
    `announced`: how many jobs the header of the trace speaks of, where it does. `runs`: every job, where they were asked for, whose users
    and groups are `people` where the trace has names. `remarks`: what the file of the policy says in vain. `strangers` are accounts with
    shares of which the trace has no job."""

    policy: str
    processors: int
    lines: int
    left: Mapping[OmittedJob, list[int]]
    read: Mapping[Read, int]
    figures: ScheduleMeasures | None
    misses: LateStarts | None
    astray: float | None
    jain_of_shares: float | None
    delivered: list[DeliveredShare]
    starts: ScheduleStarts
    notes: ReaderNotes
    weeks: list[Week]
    course: TimeSeries | None
    credit: CreditResult | None
    announced: int | None
    runs: JobRuns | None
    remarks: Sequence[str] = ()
    strangers: Sequence[str] = ()
    people: People | None = None


Tick = Callable[[int], None]
"""Told how many jobs have been read."""
TICK = 1_024
MOMENTS = 256
"""So many are put into columns together: enough to be fast, and few enough to be no weight in memory."""


def simulate(
    trace: FastTrace, policy: SimulationPolicy, plan: SimulationPlan, tick: Tick | None = None
) -> SimulationResult:
    """Run a trace under a policy. Raises InvalidInput for a trace that cannot be read, a machine whose size nobody says, or a policy that goes
    by credit where there is none."""
    check_bank(policy, there=plan.grants is not None)
    if plan.fair_starts and plan.grants is not None:
        what = "whether a start was fair is not asked where a bank refuses jobs"
        raise InvalidInput(what, field="fair-starts", remedy="leave out --fair-starts or --grant")
    size = size_of(trace, plan.processors)
    workload = Workload(trace.jobs, size, distinct=trace.people is None)
    scheduler, till = policy.scheduler(size), None
    if plan.grants is not None:
        scheduler, till = _paying(scheduler, plan.grants, trace.header)
    clock = SimulationClock(size, scheduler)
    measures, starts = MeasureAccumulator(), ScheduleStarts()
    fairness = FairStarts(clock, plan.fair_starts) if plan.fair_starts else None
    sharing = DeliveryMeter(plan.shares, _account_of(plan)) if plan.shares else None
    course = TimeSeries(size) if plan.course else None
    runs = JobRuns() if plan.every else None
    watching: list[Callable[[JobStarts], None]] = [
        each.take for each in (fairness, sharing, course) if each is not None
    ]
    told, coming = 0, clock.run(workload, fairness.arrived if fairness else None)
    while moments := list(islice(coming, MOMENTS)):
        started = in_columns(moments)
        measures.take(started)
        starts.take(started)
        if runs is not None:
            runs.take(started)
        for take in watching:
            for moment in moments:
                take(moment)
        if tick is not None and workload.lines - told >= TICK:
            told = workload.lines
            tick(told)
    return SimulationResult(
        policy=policy.name,
        processors=size,
        lines=workload.lines,
        left=workload.left,
        read=workload.read,
        figures=measures.figures(size, clock.lost),
        misses=fairness.misses() if fairness else None,
        astray=sharing.astray() if sharing else None,
        jain_of_shares=sharing.jain() if sharing else None,
        delivered=sharing.delivered() if sharing else [],
        starts=starts,
        notes=trace.notes,
        weeks=sharing.weeks() if sharing else [],
        course=course,
        credit=till.close() if till else None,
        announced=trace.header.jobs,
        runs=runs,
        remarks=policy.remarks,
        people=trace.people,
    )


def _paying(
    scheduler: SimulationScheduler, grants: Grants, header: Header
) -> tuple[BankGate, SimulatedBank]:
    """The same scheduler with a bank to ask."""
    from fairbank.simulator.engine.bank_gate import BankGate  # noqa: PLC0415  only who grants credit pays for the bank
    from fairbank.simulator.engine.simulated_bank import SimulatedBank  # noqa: PLC0415

    till = SimulatedBank(grants, header)
    return BankGate(scheduler, till, grants.budget.unpaid), till


def check_bank(policy: SimulationPolicy, *, there: bool) -> None:
    """Raises InvalidInput for a policy that goes by credit where there is no bank."""
    if policy.asks_bank and not there:
        remedy = "grant credit: --grant PERCENT; or leave [site_factor] out"
        raise InvalidInput(
            f"{policy.name} goes by the credit that is left, and there is no bank",
            field="policy",
            remedy=remedy,
        )


def _account_of(plan: SimulationPlan) -> Callable[[TraceJob], int]:
    """Whose share a job takes: a bank knows whoever is unknown as 0."""
    account = _group if plan.by_group else _user
    return account if plan.grants is None else lambda job: max(account(job), 0)


def _user(job: TraceJob) -> int:
    return job.user


def _group(job: TraceJob) -> int:
    return job.group
