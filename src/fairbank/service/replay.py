"""A recorded workload run through a bank at the trace's own clock."""

from __future__ import annotations

import gzip
import hashlib
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from pathlib import Path

import msgspec

from fairbank.bank.charge import cost
from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.project import Role
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.refusal import Reason
from fairbank.bank.wish import Asked, Charge, Found, Hold, Open, Release, Request, SetMember
from fairbank.cluster.job import Run
from fairbank.service.audit import Audit
from fairbank.service.bank import Bank
from fairbank.simulator.header import Header
from fairbank.simulator.job_line import SwfJob
from fairbank.simulator.replay import Demand, Fund, Moment, Payer, demand_of, moments, outcome_of, payer_of, resource_of
from fairbank.simulator.swf import Trace, read
from fairbank.values.time import DAY, LAST_INSTANT, Instant
from fairbank.values.trouble import Conflict, Malformed, Trouble, Unknown
from fairbank.values.units import SUM_MAX, SuMinutes

OpenTrace = Callable[[], AbstractContextManager[Trace]]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

_BATCH = 500
_FIRST_GID, _FIRST_UID = 20_000, 100_000


class Plan(msgspec.Struct, frozen=True):
    """How the trace meets the bank. `percent` of what each fund really used is granted, in `periods` allocations one
    after the other; `payer` names the column that pays (None: groups where there are any, else users).
    `days`: how long the periods are together (None: as long as the trace)."""

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0


class Balance(msgspec.Struct, frozen=True):
    """The end of one allocation, in SU-minutes."""

    account: str
    resource: str
    start: Instant
    end: Instant
    deposited: int
    charged: int
    held: int
    available: int


class Check(msgspec.Struct, frozen=True):
    """An invariant, whether it held, and the figures."""

    what: str
    held: bool
    figures: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. Amounts in SU-minutes; `operations` are holds, charges, releases and refusals together."""

    demand: Demand
    holds: int
    charges: int
    releases: int
    refusals: dict[str, int]
    written_off: int
    held_peak: int
    operations: int
    seconds: float
    balances: list[Balance]
    checks: list[Check]

    @property
    def fingerprint(self) -> str:
        """Equal for equal final balances, on whatever store."""
        return hashlib.sha256(msgspec.json.encode(self.balances)).hexdigest()[:16]


@contextmanager
def open_trace(path: Path) -> Iterator[Trace]:
    """A trace from a file, compressed or not. Raises Unknown when it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        remedy = "name a trace in the Standard Workload Format"
        raise Unknown(f"cannot read {path}: {error.strerror}", field="FILE", remedy=remedy) from error
    with file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        with gzip.open(file) if packed else file as stream:
            yield read(stream)


def replay(bank: Bank, open_trace: OpenTrace, plan: Plan, progress: Progress | None = None) -> Replayed:
    """Run a whole trace through `bank`, whose store must be empty. Reads the trace twice: to size the allocations, then to play it.

    Raises Malformed for a trace that cannot be read, Conflict for a store that is not empty.
    """
    with open_trace() as trace:
        demand = demand_of(trace.header, trace.jobs, plan.payer)
    if not demand.seconds:
        raise Malformed(
            "there is no job to replay in this trace", field="FILE", remedy="a job needs a size and a run time; look at the file"
        )
    player = _Player(bank, demand, plan, progress)
    player.grant()
    begun = time.perf_counter()
    with open_trace() as trace:
        player.play(trace)
    return player.result(time.perf_counter() - begun)


class _Player:
    def __init__(self, bank: Bank, demand: Demand, plan: Plan, progress: Progress | None) -> None:
        self._bank, self._demand, self._plan, self._progress = bank, demand, plan, progress
        self._projects: dict[int, int] = {}
        self._accounts: dict[int, str] = {}
        self._refused: set[Run] = set()
        self._holding: dict[Run, int] = {}
        self._batch: list[tuple[Moment, Hold | Charge | Release]] = []
        self._tally: Tally[str] = Tally()
        self._refusals: Tally[str] = Tally()
        self._held = self._peak = self._expected = self._written_off = 0

    # --- granting ---

    def grant(self) -> None:
        """Enter a project for each payer, with its members, and open its allocations."""
        payers = sorted(self._demand.members)
        letter = self._demand.payer.value[0]
        with self._bank.store.reading() as reader:
            if reader.office().seq:
                raise Conflict("this store is not empty", field="store", remedy="replay into a new one")
        founding: list[Request] = [Found(gname=f"{letter}{each}", gid=_FIRST_GID + each, account=f"{letter}{each}") for each in payers]
        for payer, outcome in zip(payers, self._ask(founding), strict=True):
            self._projects[payer] = _granted(outcome).project or 0
            self._accounts[self._projects[payer]] = f"{letter}{payer}"
        members: list[Request] = [
            SetMember(project=self._projects[payer], uid=_FIRST_UID + user, role=Role.MEMBER)
            for payer in payers
            for user in sorted(self._demand.members[payer])
        ]
        opening: list[Request] = [wish for fund in sorted(self._demand.seconds) for wish in self._opening(fund)]
        for outcome in self._ask(members + opening):
            _granted(outcome)

    def _opening(self, fund: Fund) -> Iterator[Open]:
        """The fund's allocations: the granted credit in equal parts over equal periods."""
        begin = self._demand.begin
        end = min(self._demand.end + 1 if self._plan.days is None else begin + self._plan.days * DAY, LAST_INSTANT)
        minutes = self._demand.seconds[fund] * self._plan.percent // 6_000
        for each in range(self._plan.periods):
            start, stop = (begin + (end - begin) * part // self._plan.periods for part in (each, each + 1))
            share = minutes * (each + 1) // self._plan.periods - minutes * each // self._plan.periods
            if start < stop:
                yield Open(
                    project=self._projects[fund.payer],
                    resource=fund.resource,
                    category="replay",
                    start=Instant(start),
                    end=Instant(stop),
                    deposit=SuMinutes(min(share, SUM_MAX)),
                )

    def _ask(self, wishes: list[Request]) -> list[Outcome]:
        return self._bank.ask([Asked(wish, self._demand.begin, self._plan.actor) for wish in wishes])

    # --- playing ---

    def play(self, trace: Trace) -> None:
        """Every start a hold, every end a charge or a release."""
        total = 2 * (self._demand.jobs - self._demand.never_ran - self._demand.without_size)
        for done, moment in enumerate(moments(trace.header, trace.jobs)):
            if moment.starts or self._run(moment.job, trace.header) not in self._refused:
                self._batch.append((moment, (self._hold if moment.starts else self._resolution)(moment, trace.header)))
            if len(self._batch) >= _BATCH:
                self._flush()
            if self._progress and done % 1_000 == 0:
                self._progress("replaying", done, total)
        self._flush()
        if self._progress:
            self._progress("replaying", total, total)

    def _hold(self, moment: Moment, header: Header) -> Hold:
        job = moment.job
        limit = job.time_limit or job.run_time
        return Hold(
            run=self._run(job, header),
            line=(self._projects[payer_of(job, self._demand.payer)],),
            resource=resource_of(job, header),
            owner=_FIRST_UID + max(job.user, 0),
            amount=_cost(job, limit),
            start=moment.at,
            until=Instant(min(moment.at + limit + self._bank.policy.hold_grace_seconds, LAST_INSTANT)),
            partition=header.partitions.get(job.partition, "")[:64],
            billing=str(job.processors),
            limit_seconds=limit,
        )

    def _resolution(self, moment: Moment, header: Header) -> Charge | Release:
        job, run, outcome = moment.job, self._run(moment.job, header), outcome_of(moment.job, header)
        if job.run_time == 0 or outcome in self._bank.policy.free_states:
            return Release(run=run, ended=moment.at, outcome=outcome, elapsed_seconds=job.run_time)
        return Charge(run=run, amount=_cost(job, job.run_time), ended=moment.at, outcome=outcome, elapsed_seconds=job.run_time)

    def _run(self, job: SwfJob, header: Header) -> Run:
        return Run(self._plan.cluster, job.number, (header.unix_start_time or 0) + job.submit_time)

    def _flush(self) -> None:
        actor = self._plan.actor
        outcomes = self._bank.ask([Asked(wish, moment.at, actor) for moment, wish in self._batch])
        for (moment, wish), outcome in zip(self._batch, outcomes, strict=True):
            self._note(moment, wish, outcome)
        self._batch.clear()

    def _note(self, moment: Moment, wish: Hold | Charge | Release, outcome: Outcome) -> None:
        if not isinstance(outcome, Done):
            if moment.starts:
                self._refusals[outcome.reason.name] += 1
                self._refused.add(wish.run)
            elif wish.run not in self._refused:  # the end of a job that was refused in this very batch says NO_HOLD
                raise Trouble(f"job {moment.number} could not be settled: {outcome.reason.value}")
            return
        self._tally[type(wish).__name__] += 1
        if isinstance(wish, Hold):
            if outcome.again:
                raise Malformed(f"job {moment.number} stands twice in the trace", remedy="keep one line for each job")
            self._holding[wish.run] = outcome.amount
            self._held += outcome.amount
            self._peak = max(self._peak, self._held)
        else:
            self._held -= self._holding.pop(wish.run)
            self._written_off += outcome.written_off
            self._expected += wish.amount if isinstance(wish, Charge) else 0

    # --- the end ---

    def result(self, seconds: float) -> Replayed:
        """The balances, and the invariants checked against the store and an audit of it."""
        balances = self._balances()
        return Replayed(
            demand=self._demand,
            holds=self._tally["Hold"],
            charges=self._tally["Charge"],
            releases=self._tally["Release"],
            refusals=dict(self._refusals),
            written_off=self._written_off,
            held_peak=self._peak,
            operations=self._tally.total() + self._refusals.total(),
            seconds=seconds,
            balances=balances,
            checks=self._checks(balances),
        )

    def _balances(self) -> list[Balance]:
        found: list[Balance] = []
        after = None
        with self._bank.store.reading() as reader:
            while page := reader.allocations(AllocationQuery(), Page(PAGE_MAX, after=after)):
                after = page[-1].id
                found += (
                    Balance(
                        self._accounts[each.project],
                        each.resource,
                        each.start,
                        each.end,
                        each.deposited,
                        each.charged,
                        each.held,
                        each.available,
                    )
                    for each in page
                )
        return found

    def _checks(self, balances: list[Balance]) -> list[Check]:
        charged, held = sum(each.charged for each in balances), sum(each.held for each in balances)
        lowest = min((each.available for each in balances), default=0)
        progress = self._progress
        verdict = Audit(self._bank.store).verify(progress=(lambda done, of: progress("auditing", done, of)) if progress else None)
        due = self._expected - self._written_off
        open_runs = self._tally["Hold"] - self._tally["Charge"] - self._tally["Release"]
        return [
            Check("no allocation is overdrawn", lowest >= 0, f"the least available is {lowest} SU-minutes"),
            Check(
                "every run is resolved once, nothing stays held",
                held == 0 and open_runs == 0,
                f"{open_runs} runs open, {held} SU-minutes held",
            ),
            Check("charges equal the trace's own sum", charged == due, f"{charged} charged, {due} due, {self._written_off} written off"),
            Check(
                "the journal says the same as every row",
                not verdict.findings,
                f"{verdict.entries} entries read, {len(verdict.findings)} findings",
            ),
        ]


def _cost(job: SwfJob, seconds: int) -> SuMinutes:
    return cost(Fraction(job.processors or 0), Fraction(1), seconds)


def _granted(outcome: Outcome) -> Done:
    if isinstance(outcome, Done):
        return outcome
    raise Trouble(f"the replay could not be set up: {Reason(outcome.reason).value}")
