"""Values keep their exact form in every store, beside any other values, and pass the audit."""

from __future__ import annotations

import pytest

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.entry import Entry
from fairbank.bank.project import Role
from fairbank.bank.query import UserRow
from fairbank.bank.requests import (
    Amend,
    AuditNote,
    Charge,
    Deposit,
    Hold,
    Lapse,
    Refund,
    Request,
    RevokeToken,
    SetCap,
    SetMember,
    Transfer,
)
from fairbank.bank.run import RunRecord
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.small_site import (
    ALICE,
    BOB,
    END,
    START,
    adjust,
    allocation,
    ask,
    charge,
    contents,
    deposits,
    fill,
    granted,
    hold,
    job,
    late_charge,
    project,
    release,
    token,
)


@pytest.mark.parametrize(
    ("bank_request", "field"),
    [
        (Deposit(allocation=1, amount=SuMinutes(-5)), "amount"),
        (allocation(1, -5, resource="gpu"), "deposit"),
        (allocation(1, resource="gpu", credit_limit=SuMinutes(-5)), "credit_limit"),
        (
            Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(-5)),
            "credit_limit",
        ),
        (SetCap(allocation=1, uid=ALICE, cap=SuMinutes(-5)), "cap"),
    ],
)
def test_negative_sums_are_rejected_by_every_store(
    store: Store, bank_request: Request, field: str
) -> None:
    fill(store)
    before = contents(store)
    with pytest.raises(InvalidInput, match="is negative") as bad:
        ask(store, bank_request)
    assert bad.value.field == field
    assert contents(store) == before


def test_short_term_allocation_keeps_its_partition_and_reservation(store: Store) -> None:
    fill(store)
    granted(store, allocation(1, 300, resource="gpu", partition="course", reservation="c 5"))
    amend = Amend(allocation=3, project=1, resource="gpu", event=AllocationEvent.FREEZE)
    granted(store, amend)
    short = contents(store)[2][2]
    assert (short.terms.partition, short.terms.reservation) == ("course", "c 5")
    assert short.state.value == "frozen"
    assert not Audit(store).verify().findings


def test_missing_and_given_values_are_stored_side_by_side(store: Store) -> None:
    """In one batch: with and without a key, a comment, a cap, a hold before the charge."""
    fill(store)
    output = Deposit(allocation=1, amount=SuMinutes(10), key="d1", comment="said")
    granted(
        store,
        hold(1, 60),
        output,
        SetCap(allocation=1, uid=ALICE, cap=SuMinutes(500)),
        hold(2, 30, project=2, owner=BOB),
        late_charge(3, 7),
    )
    granted(store, charge(1, 55), adjust(2, 40, START, project=2, owner=BOB))
    with store.reading() as reader:
        entries = {row.id: row for row in reader.scan(Entry)}
        assert [entry.key for entry in entries.values() if entry.comment is not None] == ["d1"]
        assert [entries[run.id].key for run in reader.scan(RunRecord)] == [None, None, None]
        assert {user.uid: user.sums.cap for user in reader.scan(UserRow)} == {ALICE: 500, BOB: None}
        assert [run.end and run.end.outcome for run in reader.scan(RunRecord)] == [
            "COMPLETED",
            "COMPLETED",
            None,
        ]
    assert not Audit(store).verify().findings


PRINTABLE = 'a"b\\c\'d{e},f\\\\"g%h$1:i/é日\U0001f9ea'
# the doors let none in; a store loses nothing all the same
CONTROLLED = 'tab\t newline\n bell\x07 delete\x7f backslash\\n quote"'


@pytest.mark.parametrize("others", [0, 400])
@pytest.mark.parametrize("odd", [PRINTABLE, CONTROLLED, "\\", "NULL", "{}"])
def test_texts_are_stored_unchanged(store: Store, odd: str, others: int) -> None:
    """In small batches and in large ones, which may use another method."""
    fill(store)
    request = Deposit(allocation=1, amount=SuMinutes(1), key=odd, comment=odd)
    granted(
        store,
        request,
        Deposit(allocation=1, amount=SuMinutes(1), key="\\\\", comment=""),
        hold(1, 1, partition=odd),
        *deposits(others),
    )
    assert granted(store, request)[0].again
    *_, runs, entries, _, _ = contents(store)
    assert [entry.comment for entry in entries if entry.key == odd] == [odd]
    assert [entry.comment for entry in entries if entry.key == "\\\\"] == [""]
    assert [run.reported.partition for run in runs] == [odd]
    assert Audit(store).verify().findings == ()


@pytest.mark.parametrize("size", [49, 50, 51, 130])
def test_large_batch_stores_every_row(store: Store, size: int) -> None:
    """Stores insert many rows at a time: all of them, in order, also if no two rows omit the same
    columns.
    """
    fill(store)
    begun = [
        hold(n, n % 7 + 1, key=f"k{n}" if n % 3 else None, comment="odd" if n % 2 else None)
        for n in range(1, size + 1)
    ]
    ended = [charge(n, n % 5) for n in range(1, size + 1)]
    granted(store, *begun)
    granted(store, *ended)
    *_, runs, entries, _, _ = contents(store)
    kept = [(entry.amount, entry.key, entry.comment) for entry in entries if entry.run is not None]
    requests: list[Hold | Charge] = [*begun, *ended]
    assert kept == [(request.amount, request.key, request.comment) for request in requests]
    assert [(run.reported.run, run.charged) for run in runs] == [
        (request.reported.run, request.amount) for request in ended
    ]
    assert Audit(store).verify().findings == ()


def test_every_kind_of_request_passes_the_audit(store: Store) -> None:
    fill(store)
    granted(
        store,
        project("optics", 101, parent=1),
        allocation(2, 0, resource="gpu", credit_limit=SuMinutes(50)),
    )
    granted(
        store,
        SetMember(project=1, uid=ALICE, role=Role.PI),
        SetMember(project=1, uid=BOB, role=Role.MEMBER),
    )
    granted(
        store,
        SetMember(project=1, uid=ALICE, role=Role.COORDINATOR),
        SetMember(project=1, uid=BOB, role=None),
    )
    granted(
        store,
        Transfer(source=1, target=2, amount=SuMinutes(100)),
        SetCap(allocation=1, uid=BOB, cap=SuMinutes(20)),
    )
    granted(
        store,
        hold(1, 100),
        hold(2, 10, owner=BOB),
        late_charge(3, 7),
        AuditNote(details='{"as":7}'),
    )
    ask(
        store,
        hold(4, 100, owner=BOB),
        hold(5, 10_000),
        hold(6, 1, project=3),
        Amend(allocation=1, project=1, resource="cpu", end=END),
    )
    granted(store, charge(1, 40), release(2, owner=BOB), Refund(run=job(3)))
    granted(store, token(), token("phone"), RevokeToken(token=1))
    granted(store, hold(7, 5, until=START + 60))
    granted(store, Lapse(run=job(7)), at=START + 61)
    granted(
        store,
        Amend(
            allocation=1,
            project=1,
            resource="cpu",
            end=Instant(END + 1),
            shared=True,
            credit_limit=SuMinutes(3),
        ),
    )
    verdict = Audit(store).verify()
    assert verdict.findings == ()
    assert (verdict.entries, verdict.runs) == (len(contents(store)[5]), 4)
