"""The replay itself: every start and end of the trace as a wish, in batches, at the trace's own clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction

from fairbank.bank.charge import cost
from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.refusal import remedies, sentence
from fairbank.bank.wish import Asked, Charge, EndFacts, Hold, Release
from fairbank.cluster.job import Run
from fairbank.core.errors import Malformed, Trouble
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.replay.distinct_jobs import distinct
from fairbank.service.replay.grants import grant, uid_of
from fairbank.service.replay.plan import OpenTrace, Progress, ReplayPlan
from fairbank.service.replay.result import Played, ReplayResult, result
from fairbank.simulator.engine.bank_replay import (
    CreditDemand,
    ReplayEvent,
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
from fairbank.simulator.traces.swf import Trace

_BATCH = 500


def replay(
    bank: Ledger, open_trace: OpenTrace, plan: ReplayPlan, progress: Progress | None = None
) -> ReplayResult:
    """Run a whole trace through `bank`, whose store must be empty. Reads the trace twice: to size the allocations, then to play it.

    Raises Malformed for a trace that cannot be read, Conflict for a store that is not empty.
    """
    with open_trace() as trace:
        demand = demand_of(trace.header, distinct(trace.jobs), plan.payer)
    if not demand.seconds:
        raise Malformed(
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
        player.played,
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
        self.played = Played()
        self._bank, self._demand, self._plan, self._projects, self._progress = (
            bank,
            demand,
            plan,
            projects,
            progress,
        )
        # Both forget a run at its end, so that neither grows with the trace.
        self._refused: set[Run] = set()
        self._holding: dict[Run, int] = {}
        self._held = 0
        self._batch: list[tuple[ReplayEvent, Hold | Charge | Release]] = []

    def play(self, trace: Trace) -> None:
        """Every start a hold, every end a charge or a release."""
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
            line=(self._projects[payer_of(job, self._demand.payer)],),
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
            particulars=start_details(job, header),
        )

    def _resolution(self, moment: ReplayEvent, header: Header) -> Charge | Release:
        job, run, outcome = (
            moment.job,
            self._run(moment.job, header),
            outcome_of(moment.job, header),
        )
        free = job.run_time == 0 or outcome in self._bank.policy.free_states
        facts: EndFacts = {
            "run": run,
            "ended": moment.at,
            "outcome": outcome,
            "elapsed_seconds": job.run_time,
            "particulars": end_details(job),
        }
        return Release(**facts) if free else Charge(amount=_cost(job, job.run_time), **facts)

    def _was_refused(self, run: Run) -> bool:
        """Asked once, at the end of a run."""
        refused = run in self._refused
        self._refused.discard(run)
        return refused

    def _run(self, job: SwfJob, header: Header) -> Run:
        return Run(self._plan.cluster, job.number, (header.unix_start_time or 0) + job.submit_time)

    def _flush(self) -> None:
        """Ask for what has gathered, and note the answers."""
        actor = self._plan.actor
        outcomes = self._bank.ask([Asked(wish, moment.at, actor) for moment, wish in self._batch])
        for (moment, wish), outcome in zip(self._batch, outcomes, strict=True):
            if isinstance(wish, Hold):
                self._note_hold(wish, outcome)
            else:
                self._note_end(moment, wish, outcome)
        self._batch.clear()

    def _note_hold(self, wish: Hold, outcome: Outcome) -> None:
        played = self.played
        if not isinstance(outcome, Done):
            name = outcome.reason.name
            played.refusals[name] = played.refusals.get(name, 0) + 1
            self._refused.add(wish.run)
            return
        played.holds += 1
        self._holding[wish.run] = outcome.amount
        self._held += outcome.amount
        played.held_peak = max(played.held_peak, self._held)

    def _note_end(self, moment: ReplayEvent, wish: Charge | Release, outcome: Outcome) -> None:
        if not isinstance(outcome, Done):
            if not self._was_refused(
                wish.run
            ):  # the end of a job that was refused in this very batch says NO_HOLD
                raise Trouble(
                    f"job {moment.number} could not be settled: {sentence(outcome)}",
                    remedy=remedies(outcome)[0],
                )
            return
        played = self.played
        self._held -= self._holding.pop(wish.run)
        played.written_off += outcome.written_off
        if isinstance(wish, Charge):
            played.charges += 1
            played.expected += wish.amount
        else:
            played.releases += 1


def _cost(job: SwfJob, seconds: int) -> SuMinutes:
    return cost(Fraction(job.processors or 0), Fraction(1), seconds)
