"""Replay of a recorded workload through a bank: every start and end of a job becomes a request, at
the time of the trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from fractions import Fraction

import msgspec

from fairbank.bank.pricing import cost
from fairbank.bank.project import Role
from fairbank.bank.refusals import remedies, sentence
from fairbank.bank.requests import (
    Charge,
    CreateProject,
    Ending,
    Hold,
    Open,
    Release,
    Request,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules import Done, Outcome
from fairbank.cluster.job import Run
from fairbank.core.errors import Conflict, FairbankError, InvalidInput
from fairbank.core.time import DAY, LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.simulation.replay_result import Progress, ReplayCounts, ReplayResult, result
from fairbank.simulator.engine.bank_replay import (
    CreditDemand,
    Fund,
    Payer,
    ReplayEvent,
    billable_until,
    demand_of,
    end_details,
    outcome_of,
    payer_of,
    resource_of,
    run_events,
    start_details,
)
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import SwfJob
from fairbank.simulator.traces.swf import JobStream, Trace

OpenTrace = Callable[[], AbstractContextManager[Trace]]

_BATCH = 500


class ReplayPlan(msgspec.Struct, frozen=True):
    """Plan of a replay.

    `percent` of the usage of each fund is granted, in `periods` allocations one after the other.
    `payer` is the column that pays (None: groups if there are any, else users). `days` is the
    length of all periods together (None: that of the trace).
    """

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0


def replay(
    bank: Ledger, open_trace: OpenTrace, plan: ReplayPlan, progress: Progress | None = None
) -> ReplayResult:
    """Run a whole trace through an empty bank. Reads the trace twice: to size the allocations, then
    to play it.

    Raises InvalidInput for a trace that cannot be read, Conflict for a store that is not empty.
    """
    with open_trace() as trace:
        demand = demand_of(trace.header, distinct(trace.jobs), plan.payer)
    if not demand.seconds:
        raise InvalidInput(
            "there is no job to replay in this trace",
            field="FILE",
            remedy="a job needs a size and a run time; look at the file",
        )
    payers = grant(bank, demand, plan)
    player = _Player(bank, demand, plan, payers.projects, progress)
    begun = time.perf_counter()
    with open_trace() as trace:
        player.play(trace)
    return result(
        bank.store,
        bank.policy,
        demand,
        payers.accounts,
        player.counts,
        time.perf_counter() - begun,
        progress,
    )


class _Player:
    def __init__(
        self,
        bank: Ledger,
        demand: CreditDemand,
        plan: ReplayPlan,
        projects: Mapping[int, int],
        progress: Progress | None,
    ) -> None:
        self.counts = ReplayCounts()
        self._bank, self._demand, self._plan = bank, demand, plan
        self._projects, self._progress = projects, progress
        # Runs are removed from both at their end, so that neither grows with the trace.
        self._refused: set[Run] = set()
        self._holding: dict[Run, int] = {}
        self._held = 0
        self._batch: list[tuple[ReplayEvent, Hold | Charge | Release]] = []

    def play(self, trace: Trace) -> None:
        """Turn every start into a hold and every end into a charge or a release."""
        total = 2 * (self._demand.jobs - self._demand.never_ran - self._demand.without_size)
        for done, moment in enumerate(run_events(trace.header, distinct(trace.jobs))):
            if moment.is_start:
                self._batch.append((moment, self._hold(moment, trace.header)))
            elif not self._was_refused(self._run(moment.job, trace.header)):
                self._batch.append((moment, self._resolution(moment, trace.header)))
            if len(self._batch) >= _BATCH:
                self._flush()
            if self._progress and done % 1_000 == 0:
                self._progress("replaying", done, total)
        self._flush()
        if self._progress:
            self._progress("replaying", total, total)

    def _hold(self, moment: ReplayEvent, header: Header) -> Hold:
        job = moment.job
        limit = job.time_limit or job.run_time
        return Hold(
            run=self._run(job, header),
            chain=(self._projects[payer_of(job, self._demand.payer)],),
            resource=resource_of(job, header),
            owner=replay_uid(job.user),
            amount=_cost(job, limit),
            start=moment.at,
            until=self._bank.policy.hold_end(moment.at, limit),
            partition=header.partitions.get(job.partition, "")[:64],
            billing=str(job.processors),
            limit_seconds=limit,
            job_details=start_details(job, header),
        )

    def _resolution(self, moment: ReplayEvent, header: Header) -> Charge | Release:
        job, outcome = moment.job, outcome_of(moment.job, header)
        free = job.run_time == 0 or outcome in self._bank.policy.free_states
        end = Ending(
            run=self._run(job, header),
            ended=moment.at,
            outcome=outcome,
            elapsed_seconds=job.run_time,
            job_details=end_details(job),
        )
        if free:
            return Release(**msgspec.structs.asdict(end))
        return Charge(amount=_cost(job, job.run_time), **msgspec.structs.asdict(end))

    def _was_refused(self, run: Run) -> bool:
        """Return True if the run was refused, and forget it. Called once, at the end of a run."""
        refused = run in self._refused
        self._refused.discard(run)
        return refused

    def _run(self, job: SwfJob, header: Header) -> Run:
        return Run(self._plan.cluster, job.number, (header.unix_start_time or 0) + job.submit_time)

    def _flush(self) -> None:
        """Apply the collected requests and count the outcomes."""
        actor = self._plan.actor
        outcomes = self._bank.apply(
            [SubmittedRequest(request, moment.at, actor) for moment, request in self._batch]
        )
        for (moment, request), outcome in zip(self._batch, outcomes, strict=True):
            if isinstance(request, Hold):
                self._note_hold(request, outcome)
            else:
                self._note_end(moment, request, outcome)
        self._batch.clear()

    def _note_hold(self, request: Hold, outcome: Outcome) -> None:
        played = self.counts
        if not isinstance(outcome, Done):
            name = outcome.reason.name
            played.refusals[name] = played.refusals.get(name, 0) + 1
            self._refused.add(request.run)
            return
        played.holds += 1
        self._holding[request.run] = outcome.amount
        self._held += outcome.amount
        played.held_peak = max(played.held_peak, self._held)

    def _note_end(self, moment: ReplayEvent, request: Charge | Release, outcome: Outcome) -> None:
        if not isinstance(outcome, Done):
            # The end of a job that was refused in this same batch is refused with NO_HOLD.
            if not self._was_refused(request.run):
                raise FairbankError(
                    f"job {moment.number} could not be settled: {sentence(outcome)}",
                    remedy=remedies(outcome)[0],
                )
            return
        played = self.counts
        self._held -= self._holding.pop(request.run)
        played.written_off += outcome.written_off
        if isinstance(request, Charge):
            played.charges += 1
            played.expected += request.amount
        else:
            played.releases += 1


def _cost(job: SwfJob, seconds: int) -> SuMinutes:
    return cost(Fraction(job.processors or 0), Fraction(1), seconds)


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


# --- before a replay: projects, their members and allocations ---

_FIRST_GID, _FIRST_UID = 20_000, 100_000


class ReplayPayers(msgspec.Struct, frozen=True):
    """The project of each payer, and the account of each project."""

    projects: dict[int, int]
    accounts: dict[int, str]


def grant(bank: Ledger, demand: CreditDemand, plan: ReplayPlan) -> ReplayPayers:
    """Create the projects, their members and allocations. Raises Conflict for a store that is not
    empty.
    """
    with bank.store.reading() as reader:
        if reader.registry().seq:
            raise Conflict("this store is not empty", field="store", remedy="replay into a new one")
    letter = demand.payer.value[0]
    names = {each: f"{letter}{each}" for each in sorted(demand.members)}
    created = _ask(
        bank,
        demand,
        plan,
        [
            CreateProject(gname=name, gid=_FIRST_GID + each, account=name)
            for each, name in names.items()
        ],
    )
    projects = {each: done.project or 0 for each, done in zip(names, created, strict=True)}
    members = [
        SetMember(project=projects[each], uid=replay_uid(user), role=Role.MEMBER)
        for each in names
        for user in sorted(demand.members[each])
    ]
    openings = [
        request
        for fund in sorted(demand.seconds)
        for request in _openings(projects[fund.payer], fund, demand, plan)
    ]
    _ask(bank, demand, plan, [*members, *openings])
    return ReplayPayers(projects, {projects[each]: name for each, name in names.items()})


def replay_uid(user: int) -> int:
    """Return the uid that stands for a user of the trace; unknown users share one."""
    return _FIRST_UID + max(user, 0)


def _openings(project: int, fund: Fund, demand: CreditDemand, plan: ReplayPlan) -> Iterator[Open]:
    """Yield the fund's allocations: the granted credit in equal parts over equal periods."""
    begin = demand.begin
    end = min(demand.end + 1 if plan.days is None else begin + plan.days * DAY, LAST_INSTANT)
    minutes = demand.seconds[fund] * plan.percent // 6_000
    for each in range(plan.periods):
        start, stop = (begin + (end - begin) * part // plan.periods for part in (each, each + 1))
        share = minutes * (each + 1) // plan.periods - minutes * each // plan.periods
        if start < stop:
            yield Open(
                project=project,
                resource=fund.resource,
                category="replay",
                start=Instant(start),
                end=Instant(stop),
                deposit=SuMinutes(min(share, AMOUNT_MAX)),
            )


def _ask(
    bank: Ledger, demand: CreditDemand, plan: ReplayPlan, requests: list[Request]
) -> list[Done]:
    """Apply requests of the set-up. Raises FairbankError when any is refused."""
    return [
        _granted(outcome)
        for outcome in bank.apply(
            [SubmittedRequest(request, demand.begin, plan.actor) for request in requests]
        )
    ]


def _granted(outcome: Outcome) -> Done:
    if isinstance(outcome, Done):
        return outcome
    raise FairbankError(
        f"the replay could not be set up: {sentence(outcome)}", remedy=remedies(outcome)[0]
    )
