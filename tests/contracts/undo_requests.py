"""Requests shared by the tests that undo entries."""

from __future__ import annotations

from typing import Any

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import Policy
from fairbank.bank.query import AllocationQuery, EntryQuery, Page, RunQuery
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import (
    Amend,
    Deposit,
    Refund,
    Request,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
    undo_of,
)
from fairbank.bank.rules import Outcome
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.small_site import (
    START,
    allocation,
    ask,
    charge,
    contents,
    granted,
    hold,
    job,
    project,
)

TEN = SuMinutes(10)


def by(store: Store, actor: int, *requests: Request) -> list[Outcome]:
    return Ledger(store, Policy()).apply(
        [SubmittedRequest(request, START, actor) for request in requests]
    )


def open_allocations(store: Store) -> None:
    """Return two allocations of one resource, 1 and 2."""
    granted(store, project("physics", 5001), project("chemistry", 5002))
    granted(store, allocation(1), allocation(2))


def undo_request(store: Store, number: int, **options: Any) -> Undo:
    """Return the request to undo the entry, as a route creates it."""
    with store.reading() as reader:
        (entry,) = reader.entries(EntryQuery(ids=frozenset({number})), Page())
        run = next(
            (
                row.reported.run
                for row in reader.runs(RunQuery(), Page(1_000))
                if row.id == entry.run
            ),
            None,
        )
        project = next(
            (
                row.terms.project
                for row in reader.allocations(
                    AllocationQuery(ids=frozenset({entry.allocation})), Page()
                )
            ),
            None,
        )
    return undo_of(entry, run=run, project=project, **options)


def move_credit(store: Store, kind: str) -> int:
    """Return the number of an entry that moved credit."""
    requests: dict[str, Request] = {
        "deposit": Deposit(allocation=1, amount=TEN),
        "withdraw": Withdraw(allocation=1, amount=TEN),
        "transfer": Transfer(source=1, target=2, amount=TEN),
    }
    return granted(store, requests[kind])[0].entry


def refund_run(store: Store) -> int:
    """Return the number of the entry of a refund."""
    granted(store, hold(1, 60), charge(1, 40))
    return granted(store, Refund(run=job(1), amount=TEN))[0].entry


def amend_allocation(store: Store, **changes: Any) -> int:
    return granted(store, Amend(allocation=1, project=1, resource="cpu", **changes))[0].entry


def reason_of(store: Store, request: Request, at: int = START) -> Reason:
    before = contents(store)
    (no,) = ask(store, request, at=at)
    assert isinstance(no, Refusal)
    assert contents(store) == before
    return no.reason


def row_of(store: Store) -> Allocation:
    row: Allocation = next(row for row in contents(store)[2] if row.id == 1)
    return row


def findings_of(store: Store) -> list[object]:
    return list(Audit(store).verify().findings)
