"""Requests of a replay: projects and their credit, then a hold and an end for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import remedies, sentence
from fairbank.bank.requests import (
    Charge,
    CreateProject,
    Hold,
    Open,
    Release,
    Request,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules import Done, Outcome
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.errors import FairbankError
from fairbank.core.time import DAY, LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.simulator.engine.bank_replay import (
    CreditDemand,
    Fund,
    Payer,
    ReplayEvent,
    distinct,
    end_details,
    outcome_of,
    payer_of,
    processor_price,
    project_request,
    replay_uid,
    resource_of,
    run_events,
    start_details,
)
from fairbank.simulator.results.replay_result import ReplayCounts
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import SwfJob

if TYPE_CHECKING:
    from fairbank.simulator.engine.simulation import Tick


class ReplayPlan(msgspec.Struct, frozen=True):
    """Plan of a replay.

    `percent` of the usage of each fund is granted, in `periods` allocations one after the other.
    `payer` is the column that pays (None: groups if there are any, else users). `days` is the
    length of all periods together (None: that of the trace). `gpu_processors` is the number of
    processors with one GPU, in jobs that are billed as gpu; traces do not have it (None: unknown).
    """

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0
    gpu_processors: int | None = None


# --- before a replay: projects, their members and allocations ---


def project_requests(demand: CreditDemand) -> dict[int, CreateProject]:
    """Return the request for the project of each payer."""
    return {payer: project_request(demand.payer, payer) for payer in sorted(demand.members)}


def credit_requests(
    demand: CreditDemand, projects: Mapping[int, int], plan: ReplayPlan
) -> list[SetMember | Open]:
    """Return the requests for the members and allocations of the projects.

    Args:
        demand: funds and members that the trace has.
        projects: ids of the projects by the number of the payer.
        plan: part of the use that is granted, and in how many periods.
    """
    members = [
        SetMember(project=projects[payer], uid=replay_uid(user), role=Role.MEMBER)
        for payer in projects
        for user in sorted(demand.members[payer])
    ]
    openings = [
        request
        for fund in sorted(demand.seconds)
        for request in _openings(projects[fund.payer], fund, demand, plan)
    ]
    return [*members, *openings]


def _openings(project: int, fund: Fund, demand: CreditDemand, plan: ReplayPlan) -> Iterator[Open]:
    """Yield the fund's allocations: the granted credit in equal parts over equal periods."""
    begin = demand.begin
    end = min(demand.end + 1 if plan.days is None else begin + plan.days * DAY, LAST_INSTANT)
    minutes = demand.seconds[fund] * plan.percent // 6_000
    for period in range(plan.periods):
        start, stop = (
            begin + (end - begin) * part // plan.periods for part in (period, period + 1)
        )
        share = minutes * (period + 1) // plan.periods - minutes * period // plan.periods
        if start < stop:
            yield Open(
                terms=AllocationTerms(
                    project=project,
                    resource=fund.resource,
                    category="replay",
                    start=Instant(start),
                    end=Instant(stop),
                ),
                deposit=SuMinutes(min(share, AMOUNT_MAX)),
            )


# --- the replay ---


class ReplayRuns:
    """Runs of a trace: the requests of their starts and ends, and the counts of the answers."""

    def __init__(
        self,
        header: Header,
        policy: Policy,
        payer: Payer,
        projects: Mapping[int, int],
        plan: ReplayPlan,
    ) -> None:
        self.counts = ReplayCounts()
        self._header, self._policy, self._payer = header, policy, payer
        self._projects, self._plan = projects, plan
        # Runs are removed from both at their end, so that neither grows with the trace.
        self._refused: set[Run] = set()
        self._holding: dict[Run, tuple[str, int]] = {}
        self._held: dict[str, int] = {}

    def requests(self, jobs: Iterator[SwfJob], tick: Tick | None) -> Iterator[SubmittedRequest]:
        """Yield a hold for each start, and a charge or a release for each end of a run that was not
        refused. `tick` gets the number of starts and ends from time to time.
        """
        for done, moment in enumerate(run_events(self._header, distinct(jobs))):
            if moment.is_start:
                yield SubmittedRequest(self._hold(moment), moment.at, self._plan.actor)
            elif not self._was_refused(self._run(moment.job)):
                yield SubmittedRequest(self._resolution(moment), moment.at, self._plan.actor)
            if tick and done % 1_000 == 0:
                tick(done)

    def take(self, request: Request, outcome: Outcome) -> None:
        """Count the answer to a request. Raises FairbankError for a run that cannot be settled."""
        if isinstance(request, Hold):
            self._note_hold(request, outcome)
        elif isinstance(request, Charge | Release):
            self._note_end(request, outcome)

    def _hold(self, moment: ReplayEvent) -> Hold:
        job, header = moment.job, self._header
        limit = job.time_limit or job.run_time
        resource = resource_of(job, header)
        gpu_processors = self._plan.gpu_processors if resource == "gpu" else None
        details = start_details(job, header, gpu_processors)
        until = self._policy.hold_end(moment.at, limit)
        reported = self._reported(job, moment.at, until, details)
        return Hold(
            reported=reported,
            chain=(reported.project,),
            resource=resource,
            owner=replay_uid(job.user),
            amount=processor_price(job.processors or 0, limit),
            billing=str(job.processors),
        )

    def _resolution(self, moment: ReplayEvent) -> Charge | Release:
        job, outcome = moment.job, outcome_of(moment.job, self._header)
        free = job.run_time == 0 or outcome in self._policy.free_states
        start = Instant(moment.at - job.run_time)
        reported = self._reported(job, start, moment.at, end_details(job))
        owner, end = replay_uid(job.user), RunEnd(outcome, job.run_time, moment.at)
        if free:
            return Release(reported=reported, owner=owner, end=end)
        amount = processor_price(job.processors or 0, job.run_time)
        return Charge(reported=reported, owner=owner, end=end, amount=amount)

    def _reported(
        self, job: SwfJob, start: Instant, until: Instant, details: JobDetails | None
    ) -> ReportedRun:
        return ReportedRun(
            run=self._run(job),
            project=self._projects[payer_of(job, self._payer)],
            partition=self._header.partitions.get(job.partition, "")[:64],
            start=start,
            until=until,
            job_details=details,
        )

    def _was_refused(self, run: Run) -> bool:
        """Return True if the run was refused, and forget it. Called once, at the end of a run."""
        refused = run in self._refused
        self._refused.discard(run)
        return refused

    def _run(self, job: SwfJob) -> Run:
        zero = self._header.unix_start_time or 0
        return Run(self._plan.cluster, job.number, zero + job.submit_time)

    def _note_hold(self, request: Hold, outcome: Outcome) -> None:
        played = self.counts
        if not isinstance(outcome, Done):
            name = outcome.reason.name
            played.refusals[name] = played.refusals.get(name, 0) + 1
            self._refused.add(request.reported.run)
            return
        played.holds += 1
        resource = request.resource
        self._holding[request.reported.run] = resource, outcome.amount
        self._held[resource] = held = self._held.get(resource, 0) + outcome.amount
        played.held_peak[resource] = max(played.held_peak.get(resource, 0), held)

    def _note_end(self, request: Charge | Release, outcome: Outcome) -> None:
        if not isinstance(outcome, Done):
            # The end of a job that was refused in this same batch is refused with NO_HOLD.
            if not self._was_refused(request.reported.run):
                raise FairbankError(
                    f"job {request.reported.run.job_id} could not be settled: {sentence(outcome)}",
                    remedy=remedies(outcome)[0],
                )
            return
        played = self.counts
        resource, held = self._holding.pop(request.reported.run)
        self._held[resource] -= held
        written_off = played.written_off.get(resource, 0) + outcome.written_off
        played.written_off[resource] = written_off
        if isinstance(request, Charge):
            played.charges += 1
            played.expected[resource] = played.expected.get(resource, 0) + request.amount
        else:
            played.releases += 1
