"""Bank of a simulation: the ledger applies holds at starts and charges at ends, with the time of
the simulation.

Memory holds the rows of allocations and open runs only. The audit reads each entry when it is
written, and the entry is then dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from fairbank.bank.audit.fold import Fold
from fairbank.bank.entry import REGISTRY
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import sentence
from fairbank.bank.requests import Charge, Hold, Request, SubmittedRequest
from fairbank.bank.rules import Done, Outcome, apply
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.transaction_data import (
    Changes,
    NewIds,
    RegistryHead,
    RegistryRows,
    TransactionData,
)
from fairbank.cluster.job import COMPLETED, Run
from fairbank.core.errors import Corrupt, FairbankError
from fairbank.core.time import Instant
from fairbank.core.units import show_minutes
from fairbank.priority.site_factor import RemainingCredit
from fairbank.simulator.engine.bank_replay import Fund, processor_price, project_request, replay_uid
from fairbank.simulator.engine.grants import Grants, fund_of, terms_of
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import TraceJob

_ACTOR = 0


class FundCredit(NamedTuple):
    """Use of an account's credit for one resource, in SU-minutes of it.

    `expired`: unused credit of allocations that have ended, or of the last one at the end.
    `refused` jobs never ran; `unpaid` ones ran without payment, which would have cost
    `unpaid_minutes`.
    """

    account: int | str
    resource: str
    granted: int
    charged: int
    expired: int
    refused: int
    unpaid: int
    unpaid_minutes: int


class CreditResult(NamedTuple):
    """Use of all credit, and the number of journal entries. The ledger was audited."""

    funds: list[FundCredit]
    entries: int


class SimulatedBank:
    """Bank with all allocations of a simulation. Times are seconds of the trace."""

    def __init__(self, grants: Grants, header: Header) -> None:
        self._grants, self._header, self._zero = grants, header, header.unix_start_time or 0
        numbers = [count(1) for _ in range(3)]
        self._data = TransactionData(
            registry=RegistryRows(head=RegistryHead()), ids=NewIds(*numbers)
        )
        self._policy = Policy()
        self._folds: dict[int, Fold] = {}
        self._entries = 0
        self._charged: Counter[Fund] = Counter()
        self._refused: Counter[Fund] = Counter()
        self._unpaid: Counter[Fund] = Counter()
        self._unpaid_minutes: Counter[Fund] = Counter()
        self._projects: dict[int, int] = {}
        self._due: dict[int, int] = {}
        self._last_due = (-1, 0)
        """Time, and the last due end of the allocations that are open then."""
        self._open()

    def _open(self) -> None:
        at = Instant(self._zero + self._grants.begin)
        for payer in sorted({fund.payer for fund in self._grants.seconds}):
            entered = self._apply_or_raise(project_request(self._grants.payer, payer), at)
            self._projects[payer] = entered.project or 0
        for terms in terms_of(self._grants, self._projects, self._zero):
            opened = self._apply_or_raise(terms.request, at)
            self._due[opened.allocation or 0] = terms.due

    def hold(self, job: TraceJob, now: int) -> bool:
        """Return True if a hold for the highest cost of a job that starts now is granted."""
        start = self._zero + now
        payer, resource = self._fund(job)
        project = self._projects.get(payer)
        if project is None:  # None of the payer's jobs was in the workload as recorded.
            return False
        request = Hold(
            reported=self._reported(job, project, start, self._policy.hold_end(start, job.limit)),
            chain=(project,),
            resource=resource,
            owner=replay_uid(job.user),
            amount=processor_price(job.processors, job.limit),
        )
        return isinstance(self._apply(request, Instant(start)), Done)

    def charge(self, job: TraceJob, now: int) -> None:
        """Charge what a paid job really used at its end."""
        amount, at = processor_price(job.processors, job.run), Instant(self._zero + now)
        fund = self._fund(job)
        project = self._projects[fund.payer]
        request = Charge(
            reported=self._reported(job, project, at - job.run, at),
            owner=replay_uid(job.user),
            end=RunEnd(COMPLETED, job.run, at),
            amount=amount,
        )
        self._apply_or_raise(request, at)
        self._charged[fund] += amount
        record = self._data.runs.pop(request.reported.run)
        self._folds[record.allocation].check_run(record)

    def count_refused(self, job: TraceJob) -> None:
        """Count a job that never runs."""
        self._refused[self._fund(job)] += 1

    def count_unpaid(self, job: TraceJob) -> None:
        """Count a job that runs unpaid."""
        fund = self._fund(job)
        self._unpaid[fund] += 1
        self._unpaid_minutes[fund] += processor_price(job.processors, job.run)

    def remaining_credit(self, job: TraceJob, now: int) -> RemainingCredit:
        """Return the state of the allocation that would pay now; zeros if there is none."""
        at = self._zero + now
        payer, resource = self._fund(job)
        own = next(
            (
                allocation
                for allocation in self._data.allocations_of(self._projects.get(payer, 0), resource)
                if allocation.is_in_period(at)
            ),
            None,
        )
        if own is None:
            return RemainingCredit(0, 0, 0, 0)
        if self._last_due[0] != at:
            self._last_due = (
                at,
                max(
                    self._due[allocation.id]
                    for allocation in self._data.allocations.values()
                    if allocation.is_in_period(at)
                ),
            )
        return RemainingCredit(
            own.deposited,
            own.charged + own.held,
            max(0, self._due[own.id] - at),
            max(0, self._last_due[1] - at),
        )

    def close(self) -> CreditResult:
        """Return the result after all jobs. Raises Corrupt if the ledger does not add up."""
        funds = sorted({*self._grants.seconds, *self._refused, *self._unpaid})
        uses = {fund: self._use_of(fund) for fund in funds}
        if wrong := list(self._errors(uses)):
            raise Corrupt(
                f"the ledger of the simulation does not add up: {wrong[0]}",
                remedy="this is a fault of Fairbank: please report it",
            )
        return CreditResult(list(uses.values()), self._entries)

    def _errors(self, uses: dict[Fund, FundCredit]) -> Iterator[str]:
        allocations = self._data.allocations.values()
        for allocation in allocations:
            if allocation.remaining < 0 or allocation.held:
                yield (
                    f"allocation {allocation.id} has {allocation.remaining} left and"
                    f" {allocation.held} held"
                )
        if self._data.runs:
            yield f"{len(self._data.runs)} runs never ended"
        for fund, use in uses.items():
            if use.charged != (due := self._charged[fund]):
                yield f"charges of {show_minutes(use.charged)}, due {show_minutes(due)}"
        for allocation in allocations:
            self._folds[allocation.id].check_allocation(allocation)
        for (number, uid), sums in self._data.users.items():
            self._folds[number].check_user(uid, sums)
        for project in self._data.projects.values():
            self._folds[REGISTRY].registry.check_project(project)
        for fold in self._folds.values():
            fold.finish()
            fold.check_left_over()
            yield from (f"journal {finding.journal}: {finding.what}" for finding in fold.findings)

    def _use_of(self, fund: Fund) -> FundCredit:
        paying = (self._projects.get(fund.payer), fund.resource)
        own = [
            allocation
            for allocation in self._data.allocations.values()
            if (allocation.terms.project, allocation.terms.resource) == paying
        ]
        return FundCredit(
            *fund,
            granted=sum(allocation.deposited for allocation in own),
            charged=sum(allocation.charged for allocation in own),
            expired=sum(allocation.remaining for allocation in own),
            refused=self._refused[fund],
            unpaid=self._unpaid[fund],
            unpaid_minutes=self._unpaid_minutes[fund],
        )

    def _fund(self, job: TraceJob) -> Fund:
        return fund_of(job, self._grants.payer, self._header)

    def _reported(self, job: TraceJob, project: int, start: int, until: int) -> ReportedRun:
        run = Run("trace", job.number + 1, self._zero + job.submitted)
        return ReportedRun(run, project, "", Instant(start), Instant(until))

    def _apply_or_raise(self, request: Request, at: Instant) -> Done:
        outcome = self._apply(request, at)
        if isinstance(outcome, Done):
            return outcome
        raise FairbankError(f"the bank of the simulation refused: {sentence(outcome)}")

    def _apply(self, request: Request, at: Instant) -> Outcome:
        """Apply a request, pass the new entries to the audit, and drop them."""
        data = self._data
        outcome = apply(data, SubmittedRequest(request, at, _ACTOR), self._policy)
        self._entries += len(data.entries)
        for entry in data.entries:
            fold = self._folds.get(entry.allocation)
            if fold is None:
                fold = self._folds[entry.allocation] = Fold(entry.allocation)
            fold.add(entry)
        data.entries.clear()
        data.run_entries.clear()
        data.changes = Changes()
        return outcome
