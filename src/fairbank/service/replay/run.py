"""Replay of a trace: every start and end of a job becomes a request, at the time of the trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from fractions import Fraction

from msgspec.structs import asdict

from fairbank.bank.pricing import cost
from fairbank.bank.refusals import remedies, sentence
from fairbank.bank.requests import Charge, Ending, Hold, Release, SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.replay.grants import grant, uid_of
from fairbank.service.replay.plan import OpenTrace, Progress, ReplayPlan
from fairbank.service.replay.result import ReplayCounts, ReplayResult, result
from fairbank.simulator.engine.bank_replay import (
    CreditDemand,
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

_BATCH = 500


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
        self._bank, self._demand, self._plan, self._projects, self._progress = (
            bank,
            demand,
            plan,
            projects,
            progress,
        )
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
            owner=uid_of(job.user),
            amount=_cost(job, limit),
            start=moment.at,
            until=Instant(
                min(moment.at + limit + self._bank.policy.hold_grace_seconds, LAST_INSTANT)
            ),
            partition=header.partitions.get(job.partition, "")[:64],
            billing=str(job.processors),
            limit_seconds=limit,
            job_details=start_details(job, header),
        )

    def _resolution(self, moment: ReplayEvent, header: Header) -> Charge | Release:
        job, run, outcome = (
            moment.job,
            self._run(moment.job, header),
            outcome_of(moment.job, header),
        )
        free = job.run_time == 0 or outcome in self._bank.policy.free_states
        end = Ending(
            run=run,
            ended=moment.at,
            outcome=outcome,
            elapsed_seconds=job.run_time,
            job_details=end_details(job),
        )
        if free:
            return Release(**asdict(end))
        return Charge(amount=_cost(job, job.run_time), **asdict(end))

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
